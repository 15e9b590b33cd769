"""What is made ready of a session that stands still before a block, for its freeze there. In the engine's thread.

It is resolved, and what has left its slot is copied there, while nobody waits: the session may be played on, and then
all of that is dropped. Frozen where it stands, it is told and pulled as it lies there at once. The first of the
source's passes reads the slot, the second one, after all was read, the memory that the engine has: where an engine
has written in between, the two differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from worldmove.engine.base import Engine
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture, DeviceStorage
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_digests import prepare
from worldmove.state.gathering import Gathered, begin_copy, begin_gather, lying_in
from worldmove.state.kits import kit_of
from worldmove.state.placement import Placement
from worldmove.state.preview import Preview
from worldmove.state.recapture import Known, recapture, remember
from worldmove.worker.foreign import engine_asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """One session before one block."""

    block: int
    known: Known
    placement: Placement
    """Where in its slot everything lies; () where it is not to be pulled."""
    copied: Capture
    """The state as it lies there, or where the engine has it."""

    def comes_early(self, offered: Preview) -> bool:
        """Say whether the greater part of it lies where an offer has foretold that it would come early."""
        manifest = self.known.capture.manifest
        kept = offered.kept(manifest, self.placement)
        return 2 * sum(manifest.storages[index].num_used_bytes for index in kept) > manifest.num_bytes

    def gathered(self, arena: AnyArena) -> Gathered:
        """Bring there once more what is staged only: host memory of a state on a device. Raises NoMemory."""
        capture = self.known.capture
        if not isinstance(arena, DeviceArena):
            return Gathered(placement=self.placement)
        staged = [index for index, each in enumerate(capture.storages) if not isinstance(each, DeviceStorage)]
        started = begin_copy(capture, self.placement, staged, arena)
        return Gathered(placement=self.placement, moved=tuple(staged), started=started)


def resolved_in(engine: Engine[Any], session: Any, known: Known | None) -> Known:
    """Resolve a session that stands still, and may be played on: what makes its freeze cheaper. Raises StateRefused."""
    with engine_asked("give away its state"):
        engine.quiesce(session)
        tree = engine.state(session)
        if known is not None:
            return recapture(known, tree)
        return remember(tree, engine.state_types, kit_of(engine.spec.device))


def ahead_in(arena: AnyArena, known: Known, block: int, early: Sequence[int] = ()) -> Ahead:
    """Bring what was resolved into its slot, where it has left that. Raises StateRefused, ArenaFull, TransportError.

    ``early``: the storages of which an offer has foretold that they come early.
    """
    gathered = begin_gather(known.capture, arena)
    copied = known.capture
    if gathered.moved:
        copied = lying_in(known.capture, gathered.placement, arena)
        prepare(copied, [index for index in early if index < len(copied.storages)])
    gathered.wait()
    return Ahead(block=block, known=known, placement=gathered.placement, copied=copied)
