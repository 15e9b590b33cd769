"""A session's state before one block, copied aside into a slot of its own, while the session plays on.

    slot, boundary     |--|
    copy                  |-|            in the engine's thread: between two blocks
    read                    |---- ... ---|    by anybody, for as long as it takes
    free                                 |

Whoever took a snapshot frees it, whatever became of what it was taken for.
"""

from functools import partial

from worldmove.errors import MoveRefused
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.landing import landed
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement
from worldmove.worker.boundaries import next_boundary
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.slots import Slot, SlotPool, SlotState
from worldmove.worker.states import CopyAside, copy_aside_in
from worldmove.worker.tools import Tools
from worldmove.worker.turns import Turn


class Snapshot:
    """What lies in its slot: the state before ``block``."""

    def __init__(self, copy: SessionCopy, slot: Slot, block: int, manifest: Manifest, placement: Placement) -> None:
        self.block = block
        self.manifest = manifest
        self.placement = placement
        self._copy = copy
        self._slot = slot
        self._is_freed = False

    @property
    def arena(self) -> AnyArena:
        """Where it may be read, until it is freed."""
        return self._slot.arena

    def capture(self) -> Capture:
        """Return it as a state, to be digested. From a device it is read for that: not for the event loop's thread."""
        return landed(self.manifest, self.placement, self._slot.arena)

    def free(self) -> None:
        """Give its slot back. Idempotent."""
        if not self._is_freed:
            self._is_freed = True
            self._slot.enter(SlotState.FREE)
            self._copy.changed()


async def take_snapshot(copy: SessionCopy, pool: SlotPool, tools: Tools, of: CopyAside = copy_aside_in) -> Snapshot:
    """Copy a session's state into a free slot at its next block boundary; or what ``of`` copies of it.

    Raises MoveRefused('no_slot' | 'not_played'), StateRefused or ArenaFull. However it ends without a snapshot,
    cancelled included, the slot is free again.
    """
    slot = pool.take(SlotState.SNAPSHOT, 0)
    copy.changed()
    try:
        with copy.users.one_more():
            return await _copied(copy, slot, tools, of)
    except BaseException:
        slot.enter(SlotState.FREE)
        copy.changed()
        raise


async def _copied(copy: SessionCopy, slot: Slot, tools: Tools, of: CopyAside) -> Snapshot:
    while copy.replays and copy.phase is CopyPhase.LIVE:  # its state is of a block that was shown already
        await copy.turned()
    await next_boundary(copy, tools.spec.period_s)
    async with tools.turns.take(Turn.BOUNDARY) as engine_thread:
        if copy.phase is not CopyPhase.LIVE:
            raise MoveRefused("not_played", f"{copy.name} is {copy.phase.value} here, and is not played any more")
        job = partial(of, tools.engine, copy.engine_session, slot.arena, tools.progress.one_more)
        manifest, placement = await engine_thread(job)
        return Snapshot(copy, slot, copy.next_block, manifest, placement)
