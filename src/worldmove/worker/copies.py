"""The copies that a worker holds: at most one of a session, each with the task that plays it."""

import asyncio
from collections.abc import Callable

from worldmove.errors import EngineFailed, MoveRefused, WorldMoveError
from worldmove.state.layout import Layout
from worldmove.worker.background import Background
from worldmove.worker.containment import Containment
from worldmove.worker.inputs import InputLists
from worldmove.worker.kept import Keeping, KeptState, KeptTable
from worldmove.worker.loop import play
from worldmove.worker.messages import Change, Copies, Copy, Held, Left, Replayed
from worldmove.worker.outbox import Outbox
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.shadow import Shadow
from worldmove.worker.slots import Slot, SlotPool, SlotState
from worldmove.worker.snapshot import Snapshot, take_snapshot
from worldmove.worker.states import CopyAside, copy_aside_in
from worldmove.worker.tools import Tools


class CopyTable:
    """All copies of one worker, and its slots (``move.shadow_slot.Slots``)."""

    def __init__(
        self,
        pool: SlotPool,
        tools: Tools,
        background: Background,
        containment: Containment,
        *,
        worker: str,
        incarnation: int,
        log: Callable[..., None],
    ) -> None:
        self._pool = pool
        self._tools = tools
        self._background = background
        self._containment = containment
        self._worker = worker
        self._incarnation = incarnation
        self._log = log
        self._copies: dict[str, SessionCopy] = {}
        self._playing: dict[str, asyncio.Task[None]] = {}
        self._soon: asyncio.Handle | None = None
        """Of the report that this turn of the event loop ends with."""
        self.kept = KeptTable(self._kept_changed)
        """Snapshots of sessions that are played elsewhere."""
        self.on_failed: Callable[[SessionCopy, EngineFailed], None] = lambda copy, error: None
        """Hears of a copy whose engine has raised, before it is freed."""

    def get(self, session: str) -> SessionCopy | None:
        return self._copies.get(session)

    def add(self, session: str, state: SlotState, needed_bytes: int) -> SessionCopy:
        """Make a copy in a free slot and let it play as soon as it may.

        Raises MoveRefused('copy_held' | 'no_slot' | 'state_too_large').
        """
        if session in self._copies:
            held = self._copies[session]
            detail = f"the destination still holds a {held.phase.value} copy of {session}"
            if held.phase is CopyPhase.RETIRED and held.stays:
                detail += ", which stays until another worker keeps a newer snapshot"
            raise MoveRefused("copy_held", detail)
        copy = self._made(session, self._pool.take(state, needed_bytes))
        self._changed(copy)
        return copy

    def revive(self, keeping: Keeping, state: KeptState, engine_session: object, epoch: int) -> SessionCopy:
        """Make a retired copy of what was kept, with its lists, in the slot where it lies, for a later epoch."""
        state.slot.enter(SlotState.BOUND)
        copy = self._made(keeping.session, state.slot)
        copy.engine_session, copy.inputs = engine_session, keeping.inputs
        copy.epoch, copy.next_block, copy.left_gateway = epoch, state.block, keeping.left_gateway
        copy.retire("", 0)
        return copy

    def _made(self, session: str, slot: Slot) -> SessionCopy:
        copy = SessionCopy(session, slot, Outbox(self._tools.send), self._changed)
        self._copies[session] = copy
        self._playing[session] = self._containment.start("play", session, self._play(copy))
        return copy

    def reserve(self, session: str, layout: Layout, *, is_followed: bool = False) -> Shadow:
        """Take a free slot for a shadow. Raises MoveRefused('no_slot' | 'state_too_large' | 'copy_held')."""
        copy = self.add(session, SlotState.SHADOW, layout.arena_bytes)
        return Shadow(copy, self._tools, layout, is_followed=is_followed)

    def let_go(self, copy: SessionCopy, why: str) -> None:
        """End a copy whose session can go on here no more, also where its own task has failed."""
        copy.failure = copy.failure or why
        copy.end()
        if self._playing[copy.name].done():
            self._background.start(f"free {copy.name}", self._free(copy))

    async def snapshot(self, copy: SessionCopy, of: CopyAside = copy_aside_in) -> Snapshot:
        """Copy the state of a session that is played here aside, at its next block boundary; see ``take_snapshot``."""
        return await take_snapshot(copy, self._pool, self._tools, of)

    def report(self, poll: int = 0) -> None:
        """Tell the server what is held."""
        self._tools.send(
            Copies(
                worker=self._worker,
                incarnation=self._incarnation,
                copies=self.held(),
                slots_free=self._pool.count(SlotState.FREE),
                slots_quarantined=self._pool.count(SlotState.QUARANTINED),
                poll=poll,
            )
        )

    def held(self) -> tuple[Copy, ...]:
        """Return every copy, and every snapshot that is kept."""
        copies = tuple(
            Copy(
                session=c.name,
                phase=c.phase.value,
                epoch=c.epoch,
                block=c.next_block,
                attempt=c.attempt,
                left=c.left,
                stays=c.stays,
            )
            for c in self._copies.values()
        )
        return copies + self.kept.held()

    async def _play(self, copy: SessionCopy) -> None:
        try:
            await play(copy, self._tools)
        except WorldMoveError as error:  # of an engine's own, say: it ends this copy, and no other
            copy.failure = str(error)
            self.on_failed(copy, error if isinstance(error, EngineFailed) else EngineFailed(str(error)))
            copy.end()
        await self._free(copy)

    async def _free(self, copy: SessionCopy) -> None:
        """Give a copy's slot back once nobody is at its memory; once, whoever asks. A shadow's is its driver's."""
        await copy.users.gone()
        if copy.ended.is_set():
            return
        copy.engine_session = None
        if copy.slot.state is SlotState.BOUND:
            copy.slot.enter(SlotState.FREE)
        copy.ended.set()
        del self._copies[copy.name], self._playing[copy.name]
        self._tools.on_their_way.forget(copy.name)
        self._changed(copy)

    def tell_what_is_held(self) -> None:
        """Tell a new link's server every list that is held, and the newest blocks that have left."""
        self.kept.forget_unfinished()
        for keeping in self.kept.all():
            self._tell_lists(keeping.session, keeping.inputs)
        for copy in tuple(self._copies.values()):
            with self._containment.of("tell", copy.name):
                self._tell_lists(copy.name, copy.inputs)
                for done in copy.outbox.left:
                    self._tools.send(Left(session=copy.name, block=done))

    def _tell_lists(self, session: str, inputs: InputLists) -> None:
        for block, changes in inputs.held():
            told = tuple(Change(number=c.number, key=c.key, down=c.down) for c in changes)
            self._tools.send(Held(session=session, block=block, changes=told))

    def send_again(self, session: str | None = None) -> None:
        """Send what nobody has acknowledged, of one session or of all: it may have been lost, with an old link say.

        A frozen copy does too: its move waits for the acknowledgements.
        """
        for copy in tuple(self._copies.values()):
            if (copy.plays or copy.phase is CopyPhase.FROZEN) and session in (None, copy.name):
                with self._containment.of("send again", copy.name):
                    for block, frames in copy.outbox.replayed.items():  # compared before what may be shown comes
                        self._tools.send(
                            Replayed(session=copy.name, epoch=copy.epoch, block=block, frame_sha256=frames)
                        )
                    copy.outbox.send_again(copy.epoch)

    def _changed(self, copy: SessionCopy) -> None:
        """Log a change, and report once for all changes of one turn of the event loop."""
        self._log(
            "copy",
            session=copy.name,
            phase=copy.phase.value,
            slot=copy.slot.state.value,
            epoch=copy.epoch,
            block=copy.next_block,
            attempt=copy.attempt,
        )
        self._tools.courtesy.look_again()
        self.report_soon()

    def _kept_changed(self, keeping: Keeping) -> None:
        """Log what is kept of a session now, and report it."""
        state = keeping.state
        here = state is not None and self.kept.get(keeping.session) is keeping
        block, epoch = (state.block, state.epoch) if state is not None else (0, 0)
        self._log("kept", session=keeping.session, here=here, block=block, epoch=epoch)
        self.report_soon()

    def report_soon(self) -> None:
        """Report once for all changes of one turn of the event loop."""
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_soon(self.report_changes)

    def report_changes(self) -> None:
        """Report at once what would be reported soon: before an answer that says how far this worker has heard."""
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
            self.report()
