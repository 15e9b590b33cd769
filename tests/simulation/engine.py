"""A counter with a digest for an engine: a session's frames say everything that it was ever given, in order.

No tensor work, a few kilobytes of state, and as awkward to move as a real one: an array that every block rebinds, a
window that is written in place, a cursor, a counter of the program's, and keys that are held down.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from worldmove.engine.base import Block, EngineSpec, FrameNote, KeyChange
from worldmove.units import ALIGNMENT_BYTES

HEIGHT, WIDTH, FRAMES = 2, 3, 2
FRAME_BYTES = HEIGHT * WIDTH * 3
WINDOW = 16
REPEATS = 1 + FRAMES * FRAME_BYTES // 32
CACHE = (8, 64)
KEYS = ("up", "down", "left", "right")
PERIOD_S = 0.25

SPEC = EngineSpec(
    name="counter",
    preset="simulation",
    weights_sha256="00" * 32,
    height=HEIGHT,
    width=WIDTH,
    frames_per_block=FRAMES,
    frames_per_s=FRAMES / PERIOD_S,
    keys=KEYS,
    num_threads=1,
)


@dataclass(slots=True)
class World:
    """One session. Every field decides about later frames."""

    seed: int
    chain: NDArray[np.uint8]
    """Digest of everything so far; every block makes a new array."""
    window: NDArray[np.uint8]
    """The last blocks' digests, written in place at ``cursor``."""
    cursor: int = 0
    block: int = 0
    number: int = 0
    held: tuple[str, ...] = ()
    cache: NDArray[np.uint8] | None = None
    """Its decoder's, which can be followed (``decoder``); None of a world without one."""
    drawn: int = 0
    """Blocks that the decoder has drawn."""

    def step(self, changes: Sequence[KeyChange]) -> Block:
        """Advance by one block."""
        frames = np.frombuffer(self.advance(changes), dtype=np.uint8).reshape(FRAMES, HEIGHT, WIDTH, 3)
        action = self.held[-1] if self.held else "stay"
        note = FrameNote(pose=(self.block, self.cursor), action=action, number=self.number)
        return Block(index=self.block - 1, frames=frames, notes=(note,) * FRAMES)

    def advance(self, changes: Sequence[KeyChange]) -> bytes:
        """Advance by one block, and return its pixels."""
        for change in changes:
            self.number = change.number
            others = tuple(key for key in self.held if key != change.key)
            self.held = (*others, change.key) if change.down else others
        told = [self.seed, self.cursor, self.block, self.number, self.held]
        told.append([(change.number, change.key, change.down) for change in changes])
        digest = hashlib.sha256(self.chain.data)
        digest.update(self.window.data)
        digest.update(repr(told).encode())
        told_again = digest.digest()
        self.chain = _room(32)
        self.chain.data[:] = told_again
        self.window[self.cursor] = self.chain
        self.cursor = (self.cursor + 1) % WINDOW
        self.block += 1
        return (self._drawn(told_again) * REPEATS)[: FRAMES * FRAME_BYTES]

    def _drawn(self, latents: bytes) -> bytes:
        """Return what its pictures are made of."""
        if self.cache is None:
            return latents
        self.cache = decode(self.cache, self.drawn, latents)
        self.drawn += 1
        return hashlib.sha256(latents + self.cache.tobytes()).digest()


def decode(cache: NDArray[np.uint8], drawn: int, latents: bytes) -> NDArray[np.uint8]:
    """Draw a block, and return what a decoder remembers then: in the same memory after every second one."""
    made = hashlib.shake_256(cache.tobytes() + latents + drawn.to_bytes(8, "little")).digest(cache.nbytes)
    into = _room(cache.nbytes).reshape(CACHE) if drawn % 2 else cache
    into.reshape(-1).data[:] = made
    return into


def begin(seed: int, *, decodes: bool = False) -> World:
    """Begin a world, with a decoder or without one."""
    cache = _room(CACHE[0] * CACHE[1]).reshape(CACHE) if decodes else None
    return World(seed=seed, chain=_room(32), window=_room(WINDOW * 32).reshape(WINDOW, 32), cache=cache)


def _room(num_bytes: int) -> NDArray[np.uint8]:
    """Return zeros at an aligned address: where a leaf lies in an arena follows from its address, and is to be the
    same in every process.
    """
    memory = np.zeros(num_bytes + ALIGNMENT_BYTES, dtype=np.uint8)
    skipped = -int(memory.__array_interface__["data"][0]) % ALIGNMENT_BYTES
    return memory[skipped : skipped + num_bytes]


Stepped = Callable[[World, tuple[KeyChange, ...]], None]


class CounterEngine:
    """An ``Engine``. ``on_step`` hears of every block before it is stepped, and of the list that it is given."""

    leaves: tuple[str, ...] = ("seed", "chain", "window", "cursor", "block", "number", "held")
    decodes = False
    """Whether its worlds have a decoder."""

    def __init__(self, on_step: Stepped, forgets: str = "") -> None:
        """``forgets``: a field that is not given away with the state: the fault of an engine's author."""
        self._on_step = on_step
        self._forgets = forgets

    @property
    def spec(self) -> EngineSpec:
        return SPEC

    @property
    def state_types(self) -> Mapping[str, type]:
        return {}

    def warm_up(self) -> None: ...

    def open(self, seed: int) -> World:
        return begin(seed, decodes=self.decodes)

    def recover(self, frame: NDArray[np.uint8], seed: int) -> World:
        """Begin a world from a picture."""
        world = begin(seed, decodes=self.decodes)
        world.chain[:] = np.resize(frame.reshape(-1), 32)
        return world

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        self._on_step(session, tuple(changes))
        return session.step(changes)

    def quiesce(self, session: World) -> None: ...

    def state(self, session: World) -> dict[str, Any]:
        return {name: getattr(session, name) for name in self.leaves if name != self._forgets}

    def install(self, state: dict[str, Any], into: World | None = None) -> World:
        forgotten = {self._forgets: getattr(self.open(0), self._forgets)} if self._forgets else {}
        return World(**forgotten | state)
