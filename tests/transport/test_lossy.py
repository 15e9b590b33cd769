"""Paths that break, fall silent, or are slow: what they bring is right, and what they do not bring is not there."""

import asyncio
import random

import pytest

from tests.transport.conformance import POISON, SIZE, extent, target
from tests.transport.exporter import pattern
from tests.transport.test_wrappers import loopback, source
from worldmove.errors import TransportError
from worldmove.transport.lossy import LossPlan, Lossy
from worldmove.transport.slow import Delay, Slow

PIECE = 16 << 10
WHOLE = pattern(SIZE)


def arrived(seed: int, plan: LossPlan) -> bytes:
    """What is there after one pull of everything; a pull that fails is the channel's last."""

    async def story() -> bytes:
        into, path = target(), loopback()
        lossy = Lossy(path, rng=random.Random(seed), plan=plan)
        channel = await lossy.connect(await lossy.export(source()))
        try:
            async with asyncio.timeout(0.05):
                await channel.pull([extent(0, SIZE)], into.buffer)
        except (TransportError, TimeoutError):
            with pytest.raises(TransportError, match="broke"):
                await channel.pull([extent(0, 1)], into.buffer)
        await channel.close()
        return bytes(into.buffer)

    return asyncio.run(story())


@pytest.mark.parametrize(
    "plan", [LossPlan(cut=0.1, piece_bytes=PIECE), LossPlan(cut=0.0, silence=0.1, piece_bytes=PIECE)]
)
def test_what_comes_before_the_loss_is_right_and_nothing_comes_after_it(plan: LossPlan) -> None:
    numbers = []
    for seed in range(30):
        memory = arrived(seed, plan)
        numbers.append(next(num for num in range(0, SIZE + 1, PIECE) if memory[num:] == bytes([POISON]) * (SIZE - num)))
        assert memory[: numbers[-1]] == WHOLE[: numbers[-1]]
    assert SIZE in numbers, "some pulls come through"
    assert len(set(numbers)) > 4, "and the others break in different places"


def test_equal_seeds_lose_equal_pieces() -> None:
    plan = LossPlan(cut=0.1, piece_bytes=PIECE)
    assert [arrived(seed, plan) for seed in range(5)] == [arrived(seed, plan) for seed in range(5)]


def test_a_slow_path_takes_its_time_and_brings_every_byte() -> None:
    async def story() -> float:
        into, loop = target(), asyncio.get_running_loop()
        slow = Slow(loopback(), rng=random.Random(1), delay=Delay(least_s=0.002, most_s=0.004, piece_bytes=PIECE))
        channel = await slow.connect(await slow.export(source()))
        begun = loop.time()
        await channel.pull([extent(0, SIZE)], into.buffer)
        assert bytes(into.buffer) == WHOLE
        return loop.time() - begun

    assert asyncio.run(story()) >= 0.002 * SIZE / PIECE


@pytest.mark.parametrize(
    "plan",
    [
        lambda: LossPlan(cut=1.1),
        lambda: LossPlan(cut=0.6, silence=0.5),
        lambda: LossPlan(piece_bytes=0),
        lambda: Delay(least_s=2.0, most_s=1.0),
        lambda: Delay(least_s=-1.0),
    ],
)
def test_a_plan_that_makes_no_sense_is_said(plan) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(TransportError):
        plan()


def test_they_are_named_after_what_they_wrap() -> None:
    assert Lossy(loopback(), rng=random.Random(1)).name == "lossy-loopback"
    assert Slow(loopback(), rng=random.Random(1)).name == "slow-loopback"
