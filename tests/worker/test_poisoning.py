"""A slot is poisoned in pieces, between which the thread is others'."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pytest

from worldmove.state.arena import Arena
from worldmove.units import MIB, PAGE_BYTES
from worldmove.worker.poisoning import poisoned

T = TypeVar("T")


@pytest.mark.parametrize(("size", "num_pieces"), [(PAGE_BYTES, 1), (16 * MIB, 1), (35 * MIB + PAGE_BYTES, 3)])
def test_a_large_slot_is_poisoned_in_pieces_as_it_is_in_one(size: int, num_pieces: int) -> None:
    jobs: list[int] = []

    async def copying(function: Callable[[], T], /) -> T:
        jobs.append(len(jobs))
        return function()

    in_pieces, in_one = Arena(size, "pieces"), Arena(size, "one")
    try:
        told = list[int]()
        asyncio.run(poisoned(in_pieces, copying, lambda: told.append(len(jobs))))
        in_one.poison()
        assert len(jobs) == num_pieces
        assert told == [number + 1 for number in jobs]  # who waits for it hears of each
        assert np.array_equal(in_pieces.memory, in_one.memory)
        assert in_one.memory.all()
    finally:
        in_pieces.close()
        in_one.close()
