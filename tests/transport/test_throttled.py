"""Paths of a settable speed: what their names say, and how long their bytes take."""

import asyncio
import time
from collections.abc import Sequence

import pytest

from tests.transport.conformance import SIZE, extent, target
from tests.transport.exporter import pattern
from tests.transport.test_wrappers import loopback, source
from worldmove.errors import TransportError
from worldmove.state.extent import Extent
from worldmove.transport.link_speed import limit_of, rate_of_link, throttled_name
from worldmove.transport.throttled import LEAST_PIECE_BYTES, Throttled, ThrottledChannel, WithThrottled


@pytest.mark.parametrize(
    ("link", "rate"),
    [("100gbit", 12.5e9), ("25gbit", 3.125e9), ("1gbit", 1.25e8), ("2.5mbit", 312_500.0), ("800kbit", 100_000.0)],
)
def test_a_speed_is_said_as_a_network_says_it(link: str, rate: float) -> None:
    assert rate_of_link(link) == rate
    assert limit_of(throttled_name(link, "shm")) == (rate, "shm")


@pytest.mark.parametrize("link", ["", "fast", "0gbit", "-1gbit", "1Gbit", "1gbit ", "99999gbit", "1e3mbit", "1"])
def test_what_is_no_speed_is_none(link: str) -> None:
    assert rate_of_link(link) is None
    assert limit_of(throttled_name(link, "shm")) is None


@pytest.mark.parametrize("name", ["shm", "throttled-shm", "throttled-1gbit", "throttled-1gbit-", "slow-1gbit-shm"])
def test_a_path_that_names_no_speed_or_nothing_that_it_slows_down_has_no_limit(name: str) -> None:
    assert limit_of(name) is None


def test_every_path_is_there_at_every_speed_and_none_of_those_is_listed() -> None:
    paths = WithThrottled({"loopback": loopback()})
    assert paths["throttled-3mbit-loopback"].name == "throttled-3mbit-loopback"
    assert (list(paths), len(paths)) == (["loopback"], 1)
    for unknown in ("throttled-3mbit-shm", "throttled-fast-loopback", "throttled-1gbit-throttled-1gbit-loopback"):
        assert paths.get(unknown) is None


@pytest.mark.parametrize("piece_bytes", [10_000, None])
def test_a_throttled_path_takes_its_time_and_brings_every_byte(piece_bytes: int | None) -> None:
    async def story() -> float:
        path = Throttled(loopback(), rate_bytes_per_s=SIZE / 0.1, piece_bytes=piece_bytes)
        into = target()
        channel = await path.connect(await path.export(source()))
        begun = asyncio.get_running_loop().time()
        await channel.pull([extent(0, SIZE)], into.buffer)
        took = asyncio.get_running_loop().time() - begun
        assert bytes(into.buffer) == pattern(SIZE)
        return took

    assert 0.1 <= asyncio.run(story()) < 0.2


def test_a_speed_of_nothing_is_no_speed() -> None:
    with pytest.raises(TransportError, match="carries something"):
        Throttled(loopback(), rate_bytes_per_s=0.0)
    assert LEAST_PIECE_BYTES > 0


class Straight:
    """A channel that takes no time and counts its pulls."""

    def __init__(self) -> None:
        self.pulls: list[int] = []

    async def pull(self, extents: Sequence[Extent], _into: memoryview) -> None:
        self.pulls.append(len(extents))

    async def close(self) -> None:
        """Nothing is held."""


def test_many_small_extents_travel_together() -> None:
    async def story() -> list[int]:
        inner = Straight()
        channel = ThrottledChannel(inner, rate_bytes_per_s=1e9, piece_bytes=1000)
        await channel.pull([extent(100 * at, 100) for at in range(25)], memoryview(b""))
        return inner.pulls

    assert asyncio.run(story()) == [10, 10, 5]


def test_chunks_that_are_shorter_than_a_timers_grain_come_at_the_paths_rate_all_the_same() -> None:
    """A hundred pulls of 0.1 ms each: a timer that sleeps a millisecond for each would make it ten times slower."""

    async def story() -> float:
        loop = asyncio.get_running_loop()
        channel, begun = ThrottledChannel(Straight(), rate_bytes_per_s=1e6, piece_bytes=100), loop.time()
        for _ in range(400):
            await channel.pull([extent(0, 100)], memoryview(b""))
        return loop.time() - begun

    # The fastest of a few: a busy machine may be slow, and no path is ever too fast.
    took = [asyncio.run(story()) for _ in range(3)]
    assert all(each > 0.039 for each in took)
    assert min(took) < 0.2


def test_a_path_that_was_idle_is_not_faster_afterwards() -> None:
    async def story() -> float:
        loop = asyncio.get_running_loop()
        channel = ThrottledChannel(Straight(), rate_bytes_per_s=1e6, piece_bytes=1000)
        await channel.pull([extent(0, 100)], memoryview(b""))
        time.sleep(0.01)  # the loop is held up, as by another block
        begun = loop.time()
        await channel.pull([extent(0, 1000)], memoryview(b""))
        return loop.time() - begun

    assert asyncio.run(story()) >= 0.001
