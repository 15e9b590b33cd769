"""What is guessed of leaves that a block has rolled: right where it is, and harmless where it is not."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from worldmove.move.foreseen import batches, foreseen
from worldmove.state.capture import capture
from worldmove.state.row_moves import apply
from worldmove.state.rows import final_leaves, rows_of

ROW_BYTES, ROOM = 32, 16384


def tree(seed: int) -> dict[str, Any]:
    made = torch.Generator().manual_seed(seed)
    shapes = {"keys": (2, 24, 8), "mouse": (5, 6, 2, 8), "sink": (1, 10, 16), "whole": (7, 8)}
    return {"caches": {name: torch.rand(shape, generator=made) for name, shape in shapes.items()}, "other": 3}


def roll(tensor: torch.Tensor, by: int, sink: int) -> None:
    tensor[:, sink:-by] = tensor[:, sink + by :].clone()
    tensor[:, -by:] = torch.rand(tensor[:, -by:].shape)


TRUTH = {"caches.keys": (1, 3, 0), "caches.mouse": (1, 2, 0), "caches.sink": (1, 3, 4)}


class Slot:
    """A state as it lies in a slot before a block, and as it is after it."""

    def __init__(self) -> None:
        held = tree(1)
        captured = capture(held, {})
        self.manifest = captured.manifest
        self.placement = tuple(number * 4096 for number in range(len(self.manifest.storages)))
        self.memory = self._laid(held)
        for path, (_, by, sink) in TRUTH.items():
            roll(held["caches"][path.removeprefix("caches.")], by, sink)
        held["caches"]["whole"].add_(1.0)
        self.after = self._laid(held)

    def _laid(self, held: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
        memory = np.zeros(ROOM, dtype=np.uint8)
        for at, tensor in zip(self.placement, held["caches"].values(), strict=True):
            data = tensor.numpy().reshape(-1).view(np.uint8)
            memory[at : at + len(data)] = data
        return memory

    def brought(self, rolled: dict[str, tuple[int, int, int]], path: str = "caches") -> int:
        """Do what is foreseen, and pull the rest; return how many bytes were pulled."""
        rows = rows_of(self.manifest, self.placement, ROW_BYTES)
        found = foreseen(rows, final_leaves(rows, self.manifest, self.placement, path), rolled, ROOM)
        apply(found.moves, self.memory.data, memoryview(bytearray(found.moves.spare_bytes)))
        for extent in found.pulls:
            self.memory[extent.offset : extent.end] = self.after[extent.offset : extent.end]
        return found.pulls.num_bytes


def test_of_what_was_rolled_as_expected_only_what_is_new_is_pulled() -> None:
    slot = Slot()
    new_bytes = 4 * (2 * 3 * 8 + 5 * 2 * 2 * 8 + 3 * 16)
    assert slot.brought(TRUTH) == new_bytes + 4 * 7 * 8
    assert np.array_equal(slot.memory, slot.after)


def test_of_a_leaf_of_which_nothing_is_said_all_is_pulled() -> None:
    slot = Slot()
    assert slot.brought({}) == slot.manifest.num_bytes
    assert np.array_equal(slot.memory, slot.after)


LEAVES = ("caches.keys", "caches.mouse", "caches.sink", "caches.whole", "caches.none")
numbers = st.integers(0, 12) | st.integers(0, 1 << 62)


@settings(max_examples=60, deadline=None)
@given(lie=st.dictionaries(st.sampled_from(LEAVES), st.tuples(st.integers(0, 4) | numbers, numbers, numbers)))
def test_a_lie_writes_to_no_row_of_another_leaf(lie: dict[str, tuple[int, int, int]]) -> None:
    slot = Slot()
    before = slot.memory.copy()
    slot.brought(lie, "caches.mouse")
    at = slot.placement[1]
    outside = np.ones(ROOM, dtype=bool)
    outside[at : at + 4 * 5 * 6 * 2 * 8] = False
    assert np.array_equal(slot.memory[outside], before[outside])


@pytest.mark.parametrize(("num_bytes", "counts"), [(1, [1, 1, 1, 1]), (3000, [2, 2]), (1 << 20, [4])])
def test_leaves_come_some_at_a_time(num_bytes: int, counts: list[int]) -> None:
    slot = Slot()
    rows = rows_of(slot.manifest, slot.placement, ROW_BYTES)
    leaves = final_leaves(rows, slot.manifest, slot.placement, "caches")
    assert [len(batch) for batch in batches(leaves, rows, num_bytes)] == counts
