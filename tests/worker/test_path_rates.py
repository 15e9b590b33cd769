"""What a worker says of its paths: measured, each by itself; and nothing of one that fails."""

import asyncio
import os
import random
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.move import virtual
from worldmove.transport.base import Transport
from worldmove.transport.loopback import Loopback
from worldmove.transport.lossy import LossPlan, Lossy
from worldmove.transport.throttled import Throttled
from worldmove.worker.path_rates import SAMPLE_BYTES, path_rates

T = TypeVar("T")


async def at_once(function: Callable[[], T], /) -> T:
    return function()


def loopback() -> Loopback:
    return Loopback(blocking=at_once, tokens=lambda: os.urandom(32))


def rates(**paths: Transport) -> dict[str, float]:
    async def measured() -> dict[str, float]:
        return await path_rates(paths, asyncio.get_running_loop().time)

    return virtual.run(measured())


def test_each_path_has_the_rate_that_was_measured_over_it() -> None:
    slow = Throttled(loopback(), rate_bytes_per_s=SAMPLE_BYTES / 0.1)
    found = rates(fast=loopback(), slow=slow)
    assert found["slow_bytes_per_s"] == pytest.approx(SAMPLE_BYTES / 0.1)
    assert found["fast_bytes_per_s"] > 2 * found["slow_bytes_per_s"]


def test_a_path_that_fails_has_no_rate_and_the_others_have_theirs() -> None:
    broken = Lossy(loopback(), rng=random.Random(1), plan=LossPlan(cut=1.0))
    assert list(rates(broken=broken, whole=loopback())) == ["whole_bytes_per_s"]
