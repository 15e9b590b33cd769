"""Paths that are worse than what they wrap."""

import asyncio
import random

import pytest

from tests.transport.conformance import POISON, SIZE, extent, target
from tests.transport.exporter import pattern
from tests.transport.test_transports import Tokens
from worldmove.errors import TransportError
from worldmove.state.arena import Arena
from worldmove.state.extent import Extent
from worldmove.transport.loopback import Loopback
from worldmove.transport.wrappers import Corrupting, Damage, DamagePlan

EXTENTS = [extent(0, 1000), extent(4096, 60_000), extent(SIZE - 7, 7)]
EXPECTED = bytearray([POISON]) * SIZE
for run in EXTENTS:
    EXPECTED[run.offset : run.end] = pattern(SIZE)[run.offset : run.end]


async def inline(function):  # type: ignore[no-untyped-def]
    return function()


def loopback() -> Loopback:
    return Loopback(blocking=inline, tokens=Tokens(0))


def source() -> Arena:
    arena = Arena(SIZE, "source")
    arena.buffer[:] = pattern(SIZE)
    return arena


def pulled(transport: Corrupting, extents: list[Extent], arena: Arena) -> bytes:
    async def story() -> bytes:
        into = target()
        channel = await transport.connect(await transport.export(arena))
        await channel.pull(extents, into.buffer)
        await channel.close()
        return bytes(into.buffer)

    return asyncio.run(story())


def differing(ours: bytes, theirs: bytes | bytearray) -> list[int]:
    return [at for at, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b]


@pytest.mark.parametrize("damage", [Damage.FLIP, Damage.DROP, Damage.SWAP, Damage.STALE])
def test_every_pull_is_damaged_inside_its_extents_and_says_nothing(damage: Damage) -> None:
    arena = source()
    path = Corrupting(loopback(), rng=random.Random(5), plan=DamagePlan(damage=damage))
    for _ in range(20):
        wrong = differing(pulled(path, EXTENTS, arena), EXPECTED)
        assert 0 < len(wrong) <= DamagePlan().num_bytes
        assert all(any(e.offset <= at < e.end for e in EXTENTS) for at in wrong)


def test_a_flip_is_one_bit() -> None:
    path = Corrupting(loopback(), rng=random.Random(5))
    arrived = pulled(path, EXTENTS, source())
    (at,) = differing(arrived, EXPECTED)
    assert (arrived[at] ^ EXPECTED[at]).bit_count() == 1


def test_dropped_bytes_are_what_was_there_before() -> None:
    path = Corrupting(loopback(), rng=random.Random(5), plan=DamagePlan(damage=Damage.DROP))
    arrived = pulled(path, EXTENTS, source())
    assert {arrived[at] for at in differing(arrived, EXPECTED)} == {POISON}


def test_damage_falls_in_other_places_and_equally_for_an_equal_seed() -> None:
    def places(seed: int) -> list[list[int]]:
        path = Corrupting(loopback(), rng=random.Random(seed))
        return [differing(pulled(path, EXTENTS, source()), EXPECTED) for _ in range(5)]

    assert places(1) == places(1)
    assert len({tuple(place) for place in places(1)}) > 1


def test_a_damage_that_would_change_nothing_still_does() -> None:
    zeros = Arena(SIZE, "zeros")
    for damage in (Damage.SWAP, Damage.STALE, Damage.FLIP):
        path = Corrupting(loopback(), rng=random.Random(5), plan=DamagePlan(damage=damage))
        assert set(pulled(path, [extent(0, 64)], zeros)[:64]) != {0}


def test_a_broken_path_says_so() -> None:
    path = Corrupting(loopback(), rng=random.Random(5), plan=DamagePlan(damage=Damage.SHORT))
    with pytest.raises(TransportError, match="half-way"):
        pulled(path, EXTENTS, source())


def test_wrappers_are_named_after_what_they_wrap() -> None:
    assert Corrupting(loopback(), rng=random.Random(1)).name == "corrupting-loopback"
