"""What can become of a state's bytes: each way changes a slot's memory, given what should be in it."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from worldmove.state.extent import Extent


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoil:
    """What a way of spoiling has at hand."""

    rng: random.Random
    memory: memoryview
    """The destination's, with every extent landed as it should be."""
    extents: Sequence[Extent]
    nth: int
    """The extent that is to be hit."""
    before: bytes
    """The destination's memory before anything landed: poison."""
    stale: bytes
    """The source's memory at an earlier boundary."""
    other: bytes
    """Another session's slot."""

    @property
    def hit(self) -> Extent:
        return self.extents[self.nth % len(self.extents)]

    def part(self, most: int = 64) -> Extent:
        """A part of the extent that is hit."""
        length = self.rng.randrange(1, min(most, self.hit.length) + 1)
        return Extent(offset=self.hit.offset + self.rng.randrange(self.hit.length - length + 1), length=length)


def flip(spoil: Spoil) -> None:
    spoil.memory[spoil.part(1).offset] ^= 1 << spoil.rng.randrange(8)


def flips(spoil: Spoil) -> None:
    """A few bits of the whole state."""
    for _ in range(spoil.rng.randrange(2, 9)):
        extent = spoil.rng.choice(list(spoil.extents))
        spoil.memory[extent.offset + spoil.rng.randrange(extent.length)] ^= 1 << spoil.rng.randrange(8)


def put(spoil: Spoil, part: Extent, data: bytes | memoryview) -> None:
    spoil.memory[part.offset : part.end] = bytes(data)[: part.length].ljust(part.length, b"\0")


def swap_chunks(spoil: Spoil) -> None:
    """Two pieces of the extent in each other's place."""
    length = spoil.rng.randrange(1, max(2, spoil.hit.length // 2))
    first = spoil.hit.offset + spoil.rng.randrange(max(1, spoil.hit.length // 2 - length + 1))
    second = min(first + spoil.hit.length // 2, spoil.hit.end - length)
    a, b = bytes(spoil.memory[first : first + length]), bytes(spoil.memory[second : second + length])
    spoil.memory[first : first + length], spoil.memory[second : second + length] = b, a


def swap_extents(spoil: Spoil) -> None:
    """What belongs to two leaves in each other's place, as far as the shorter goes."""
    other = spoil.rng.choice([extent for extent in spoil.extents if extent != spoil.hit])
    length = min(spoil.hit.length, other.length)
    a, b = (bytes(spoil.memory[e.offset : e.offset + length]) for e in (spoil.hit, other))
    spoil.memory[spoil.hit.offset : spoil.hit.offset + length] = b
    spoil.memory[other.offset : other.offset + length] = a


def shift(spoil: Spoil) -> None:
    """The right bytes, some places too far on."""
    by = spoil.rng.randrange(1, min(9, spoil.hit.length) + 1)
    data = bytes(spoil.memory[spoil.hit.offset : spoil.hit.end])
    put(spoil, spoil.hit, data[-by:] + data[:-by])


def truncate(spoil: Spoil) -> None:
    """The extent's end does not arrive."""
    keep = spoil.rng.randrange(spoil.hit.length)
    tail = Extent(offset=spoil.hit.offset + keep, length=spoil.hit.length - keep)
    put(spoil, tail, spoil.before[tail.offset : tail.end])


def truncate_all(spoil: Spoil) -> None:
    """Nothing arrives from here on."""
    for extent in spoil.extents[spoil.nth % len(spoil.extents) :]:
        put(spoil, extent, spoil.before[extent.offset : extent.end])


def repeat(spoil: Spoil) -> None:
    """A piece arrives again, over what should follow it."""
    length = spoil.rng.randrange(1, max(2, spoil.hit.length // 2))
    data = bytes(spoil.memory[spoil.hit.offset : spoil.hit.offset + length])
    put(spoil, Extent(offset=spoil.hit.offset + length, length=min(length, spoil.hit.length - length)), data)


def drop(spoil: Spoil) -> None:
    """A piece does not arrive."""
    part = spoil.part()
    put(spoil, part, spoil.before[part.offset : part.end])


def drop_extent(spoil: Spoil) -> None:
    put(spoil, spoil.hit, spoil.before[spoil.hit.offset : spoil.hit.end])


def untouched(spoil: Spoil) -> None:
    """Nothing arrives at all, and the path says that it did."""
    spoil.memory[:] = spoil.before


def zeros(spoil: Spoil) -> None:
    put(spoil, spoil.hit, b"")


def all_zeros(spoil: Spoil) -> None:
    spoil.memory[:] = bytes(len(spoil.memory))


def ones(spoil: Spoil) -> None:
    put(spoil, spoil.hit, b"\xff" * spoil.hit.length)


def stale(spoil: Spoil) -> None:
    """The extent as it was at an earlier boundary."""
    put(spoil, spoil.hit, spoil.stale[spoil.hit.offset : spoil.hit.end])


def stale_all(spoil: Spoil) -> None:
    spoil.memory[:] = spoil.stale


def stale_part(spoil: Spoil) -> None:
    part = spoil.part()
    put(spoil, part, spoil.stale[part.offset : part.end])


def other_session(spoil: Spoil) -> None:
    """The extent of another session's slot."""
    put(spoil, spoil.hit, spoil.other[spoil.hit.offset : spoil.hit.end])


def other_session_all(spoil: Spoil) -> None:
    spoil.memory[:] = spoil.other


def noise(spoil: Spoil) -> None:
    put(spoil, spoil.hit, spoil.rng.randbytes(spoil.hit.length))


WAYS: dict[str, Callable[[Spoil], None]] = {
    way.__name__.replace("_", " "): way
    for way in (
        *(flip, flips, swap_chunks, swap_extents, shift, truncate, truncate_all, repeat, drop, drop_extent),
        *(untouched, zeros, all_zeros, ones, stale, stale_all, stale_part, other_session, other_session_all, noise),
    )
}
