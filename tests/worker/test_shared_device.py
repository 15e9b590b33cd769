"""Two workers on one device, whose time they share: a follower at the one, worlds at both, and nobody is late."""

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.move import virtual
from worldmove.fleet.pace import Load
from worldmove.worker.courtesy import Courtesy
from worldmove.worker.leeway import MARGIN

PERIOD_S = 0.1
PERIODS = 30


@dataclass(slots=True)
class Device:
    """Computes for all who ask at once, each at an equal part of its speed."""

    left: dict[int, float] = field(default_factory=dict)
    change: asyncio.Event = field(default_factory=asyncio.Event)
    asked: int = 0

    async def compute(self, seconds: float) -> None:
        """Return when so much was computed, in seconds of the whole device."""
        self.asked += 1
        me, self.left = self.asked, {**self.left, self.asked: seconds}
        self.change.set()
        while self.left[me] > 1e-12:
            await asyncio.sleep(0)  # whoever else waits has heard of the change
            self.change.clear()
            begin, among = asyncio.get_running_loop().time(), len(self.left)
            try:
                async with asyncio.timeout(self.left[me] * among):
                    await self.change.wait()
            except TimeoutError:
                pass
            self.left[me] -= (asyncio.get_running_loop().time() - begin) / among
        del self.left[me]
        self.change.set()


async def shared(here: list[float], there: list[float], block_s: float) -> tuple[int, int]:
    """Play worlds of these phases beside a follower, and others at another worker of the device.

    Return how many blocks were late, and how many the follower made.
    """
    device, courtesy, loop = Device(), Courtesy(PERIOD_S), asyncio.get_running_loop()
    load = Load(period_s=PERIOD_S, block_s=block_s, own=len(here), others=(len(there),) if there else ())
    begun, late, stepped = loop.time(), 0, 0

    async def world(name: str, phase: float, engine: asyncio.Lock, *, is_beside: bool) -> None:
        nonlocal late
        for number in range(PERIODS):
            list_at = begun + (phase + number) * PERIOD_S
            await asyncio.sleep(max(0.0, list_at - loop.time()))
            if is_beside:
                courtesy.owner_began(name)
            async with engine:
                await device.compute(block_s)
            if is_beside:
                courtesy.owner_ended(name)
            late += loop.time() > list_at + PERIOD_S + 1e-9

    async def follower(engine: asyncio.Lock) -> None:
        nonlocal stepped
        while True:
            await courtesy.permission(unless=lambda: False, takes_s=MARGIN * (load.beside_s or block_s))
            async with engine:
                await device.compute(block_s)
            stepped += 1

    engines = asyncio.Lock(), asyncio.Lock()
    follows = asyncio.create_task(follower(engines[0]))
    await asyncio.gather(
        *(world(f"r-{place}", phase, engines[0], is_beside=True) for place, phase in enumerate(here)),
        *(world(f"m-{place}", phase, engines[1], is_beside=False) for place, phase in enumerate(there)),
    )
    follows.cancel()
    await asyncio.gather(follows, return_exceptions=True)
    return late, stepped


phases = st.integers(0, 19).map(lambda twentieth: twentieth / 20)


@given(resident=phases, moved=phases, block=st.integers(20, 31))
@settings(max_examples=25, deadline=None)
def test_beside_a_resident_and_the_moved_world_on_one_device_a_follower_catches_up_and_none_is_late(
    resident: float, moved: float, block: int
) -> None:
    """``block``: percent of a period; three of them leave little."""
    late, stepped = virtual.run(shared([resident], [moved], block / 100 * PERIOD_S))
    assert late == 0
    assert stepped > PERIODS


@given(here=st.lists(phases, min_size=2, max_size=2), block=st.integers(20, 31))
@settings(max_examples=25, deadline=None)
def test_beside_two_residents_of_its_own_device_a_follower_catches_up_and_none_is_late(
    here: list[float], block: int
) -> None:
    """U is 0.6 at most, and the follower has to make more than a block a period."""
    late, stepped = virtual.run(shared(here, [], block / 100 * PERIOD_S))
    assert late == 0
    assert stepped > PERIODS


def test_two_at_once_take_twice_as_long() -> None:
    async def run() -> list[float]:
        device, loop = Device(), asyncio.get_running_loop()
        begin, ended = loop.time(), list[float]()

        async def one(after_s: float, takes_s: float) -> None:
            await asyncio.sleep(after_s)
            await device.compute(takes_s)
            ended.append(loop.time() - begin)

        await asyncio.gather(one(0.0, 0.3), one(0.1, 0.1))
        return ended

    assert virtual.run(run()) == pytest.approx([0.3, 0.4])
