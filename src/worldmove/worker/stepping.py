"""One step of an engine: a block, what is said of it, and its digests. ``step`` runs in the engine's thread."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from worldmove.engine.base import Block, Engine, EngineSpec, Follows, KeyChange, Streams
from worldmove.errors import WorldMoveError
from worldmove.worker.block_made import frames_of, notes_of
from worldmove.worker.foreign import engine_trusted
from worldmove.worker.message import Notes
from worldmove.worker.messages import Note
from worldmove.worker.pictures import Pictures, Taking, taken
from worldmove.worker.states import digest_of

_NOTES = msgspec.msgpack.Decoder(Notes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """What the engine's thread brings back of one block."""

    notes: tuple[Note, ...]
    pictures: Pictures
    compute_s: float
    state_digest: str

    async def hashed(self) -> "Stepped":
        """Return it with the digests of its pictures, once they are there."""
        known = Pictures(frames=self.pictures.frames, frame_sha256=await self.pictures.hashed())
        return replace(self, pictures=known)


def step(
    engine: Engine[Any],
    session: Any,
    changes: tuple[KeyChange, ...],
    clock: Callable[[], float],
    *,
    wants_digest: bool,
    final: Callable[[str], None] | None = None,
    hand: Callable[[bytes], None] | None = None,
    taking: Taking = taken,
) -> Stepped:
    """Step one block and take its digests. Runs in the engine's thread. Raises EngineFailed.

    ``final``: wants to hear there which leaves are final, of an engine that can say so; ``hand``: what a component of
    it is stepped on elsewhere.
    """
    begin = clock()
    with engine_trusted("step a block"):
        if hand is not None and isinstance(engine, Follows):
            block = engine.step_handing(session, changes, final or _unheard, hand)
        elif final is not None and isinstance(engine, Streams):
            block = engine.step_streaming(session, changes, final)
        else:
            block = engine.step(session, changes)
        compute_s = clock() - begin
        spec = engine.spec
        return Stepped(
            notes=_notes_of(block, spec),
            pictures=taking(frames_of(block, spec)),
            compute_s=compute_s,
            state_digest=_digest(engine, session) if wants_digest else "",
        )


def _digest(engine: Engine[Any], session: Any) -> str:
    """Return the state's digest; empty, and so equal to nothing, where the state cannot be carried."""
    try:
        return digest_of(engine, session)
    except WorldMoveError:
        return ""


def _notes_of(block: Block, spec: EngineSpec) -> tuple[Note, ...]:
    """Return what an engine says of its frames as it travels. Raises an error where no message can say it.

    A world that was made up may count as far as it likes: sent, that would end the link of all the worker's worlds.
    """
    notes = [Note(y=n.pose[0], x=n.pose[1], action=n.action, number=n.number) for n in notes_of(block, spec)]
    return _NOTES.decode(msgspec.msgpack.encode(notes))


def _unheard(path: str) -> None:
    """Nobody wants to know which leaves are final."""
