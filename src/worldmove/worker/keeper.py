"""A keeper's work: it pulls a snapshot, proves it, and installs it when its owner is gone.

    poison, pull      into a slot of its own; the write window is closed before the digests are taken
    prove             every group of what has landed, against what the owner has said of it
    ... and later
    install, prove    a session is made of it, and what will be played is compared once more

A snapshot that has changed since it was proven, or that is not installed as it was, is no copy: it is let go, and said.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from worldmove.errors import MoveRefused, StateRefused, TransportError, WorldMoveError
from worldmove.move.damage import say_damage
from worldmove.move.device_path import open_window
from worldmove.move.host import Host
from worldmove.move.sayable import said
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.extent import Extent
from worldmove.state.landing import landed
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement, check_placement, extents
from worldmove.state.proof import MoveProof, prove
from worldmove.state.runs import Runs
from worldmove.transport.base import Channel
from worldmove.worker.copies import CopyTable
from worldmove.worker.installing import install_tree, tree_in
from worldmove.worker.kept import Keeping, KeptState, KeptTable
from worldmove.worker.messages import Failed, Keep, Kept, NotDone, Revive
from worldmove.worker.poisoning import poisoned
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.slots import Slot, SlotPool, SlotState
from worldmove.worker.taking import ATTEMPT
from worldmove.worker.tools import Tools
from worldmove.worker.turns import Turn

PIECE_BYTES, MOST_BYTES, QUICK_S = 8 << 20, 256 << 20, 0.1
"""A snapshot comes in pieces, for its keeper says how it gets on. After one that came quickly the next is twice as
large: each costs the worlds that are played here a little."""
PULL_S = 30.0
"""For one piece of a snapshot: a path that carries less in that time carries nothing."""


class Keeper:
    """One worker's."""

    def __init__(
        self,
        *,
        host: Host,
        pool: SlotPool,
        tools: Tools,
        table: KeptTable,
        copies: CopyTable,
        play: Callable[[SessionCopy, int], None],
        beside: Callable[[str, str, Coroutine[Any, Any, None]], "asyncio.Task[None]"],
    ) -> None:
        """``play`` drives a copy that is installed here as a retired one; it is needed until that block has left.

        ``beside`` runs a task of a session, whatever becomes of who has begun it.
        """
        self.table = table
        self._host = host
        self._pool = pool
        self._tools = tools
        self._copies = copies
        self._play = play
        self._beside = beside
        self._under_way: set[str] = set()
        """Sessions of which a snapshot is on its way here."""

    async def keep(self, asked: Keep) -> Kept | NotDone:
        """Pull and prove a snapshot, and let an older one go. What cannot be met is answered."""
        try:
            return await self._keep(asked)
        except MoveRefused as error:
            return _not_done(asked, error.reason, error.detail)
        except WorldMoveError as error:
            return _not_done(asked, error.code, str(error))

    async def _keep(self, asked: Keep) -> Kept:
        session, keeping = asked.session, self.table.get(asked.session)
        if keeping is None:
            raise MoveRefused("not_expected", f"no snapshot of {session} is expected here")
        if session in self._under_way:  # nobody waits for it any more: a second one would take another slot
            raise MoveRefused("busy", f"an earlier snapshot of {session} is still on its way here")
        self._require_not_played(session)
        self._under_way.add(session)
        try:
            state = await self._pulled(asked)
        finally:
            self._under_way.discard(session)
        try:
            self._require_not_played(session)  # a move may have brought it here meanwhile
            if not self.table.hold(keeping, state):
                raise MoveRefused("not_expected", f"a snapshot of {session} is no longer expected here")
        except MoveRefused:
            state.slot.enter(SlotState.FREE)
            self._copies.report_soon()
            raise
        return Kept(session=session, request=asked.request, block=state.block)

    def _require_not_played(self, session: str) -> None:
        """A snapshot beside what is played saves that from no death, and takes a slot. Raises MoveRefused."""
        copy = self._copies.get(session)
        if copy is not None and copy.phase is CopyPhase.LIVE:
            raise MoveRefused(
                "not_expected", f"{self._host.worker} plays {session} itself, and keeps no snapshot of it"
            )

    async def revive(self, asked: Revive) -> None:
        """Install what is kept, and let it wait for the session. Does nothing where it is not here, or was done."""
        keeping = self.table.get(asked.session)
        state = None if keeping is None or keeping.is_revived else keeping.state
        if keeping is None or state is None or state.block != asked.block or self._copies.get(asked.session):
            return
        keeping.is_revived = True
        try:
            engine_session = await self._installed(state)
        except WorldMoveError as error:
            detail = error.detail if isinstance(error, MoveRefused) else str(error)
            self.cannot_be_used(asked, error.code, detail)
        else:
            self._go_on(keeping, state, engine_session, asked)
        finally:
            keeping.is_revived = False

    def cannot_be_used(self, asked: Revive, code: str, detail: str) -> None:
        """Let go of what should have been revived, and say why."""
        keeping = self.table.get(asked.session)
        if keeping is not None and keeping.state is not None and keeping.state.block == asked.block:
            self.table.drop(keeping)
            why = said(f"its snapshot of block {asked.block} cannot be used: {detail}")
            self._tools.send(Failed(session=asked.session, code=code, message=why))

    def _go_on(self, keeping: Keeping, state: KeptState, engine_session: Any, asked: Revive) -> None:
        if self.table.get(keeping.session) is not keeping:
            state.slot.enter(SlotState.FREE)  # its session was closed meanwhile
            self._copies.report_soon()
            return
        if self._copies.get(keeping.session) is not None:
            return  # a move has brought a copy here meanwhile: this one is kept on
        copy = self._copies.revive(keeping, state, engine_session, asked.epoch)
        copy.stays = not keeping.is_needless  # a block that a dead owner had sent may leave later: that frees nobody
        self.table.hand_on(keeping)
        self._play(copy, asked.next_block)

    async def _pulled(self, asked: Keep) -> KeptState:
        facts = asked.snapshot
        manifest = Manifest.from_bytes(facts.manifest)
        transport = self._host.transports.get(asked.transport)
        if transport is None:
            raise MoveRefused("transport", f"{self._host.worker} has no path named {asked.transport}")
        slot, channel = self._pool.take(SlotState.KEPT, manifest.num_bytes), None
        self._copies.report_soon()
        try:
            check_placement(manifest, facts.placement, slot.arena.size)
            await poisoned(slot.arena, self._tools.copying, self._gets_on)
            channel = await transport.connect(facts.ticket)
            await self._land(channel, slot, extents(manifest, facts.placement))
            await channel.close()
            theirs = MoveProof(
                attempt=ATTEMPT,
                epoch=facts.epoch,
                boundary=facts.block,
                num_bytes=manifest.num_bytes,
                manifest_digest=manifest.digest,
                groups=facts.groups,
            )
            await self._require(lambda: landed(manifest, facts.placement, slot.arena), theirs, asked.nonce)
        except BaseException:
            slot.enter(SlotState.QUARANTINED)
            self._copies.report_soon()
            # Whoever ends this keeping, once more say, does not end that: nobody else gives the slot back.
            await asyncio.shield(self._beside("release", asked.session, self._release(slot, channel)))
            raise
        return KeptState(
            epoch=facts.epoch,
            block=facts.block,
            slot=slot,
            manifest=manifest,
            placement=facts.placement,
            proof=theirs,
            nonce=asked.nonce,
        )

    async def _release(self, slot: Slot, channel: Channel | None) -> None:
        """Give a slot back once its path has let go of it: one that does not keeps it."""
        if channel is not None:
            await channel.close()
        slot.enter(SlotState.FREE)
        self._copies.report_soon()

    async def _land(self, channel: Channel, slot: Slot, wanted: Sequence[Extent]) -> None:
        """Pull every byte, and close the window."""
        window, clock = open_window(slot.arena), asyncio.get_running_loop().time
        try:
            rest, num_bytes = Runs.of(wanted), PIECE_BYTES
            while rest.num_bytes:
                (piece, rest), begun = rest.parted(num_bytes), clock()
                async with asyncio.timeout(PULL_S):
                    await window.fill(channel, piece)
                self._gets_on()
                if clock() - begun < QUICK_S:
                    num_bytes = min(2 * num_bytes, MOST_BYTES)
        except TimeoutError:
            window.abandon()
            raise TransportError(f"nothing more of the snapshot arrived within {PULL_S:.0f} s") from None
        except BaseException:
            window.abandon()
            raise
        window.close()

    def _gets_on(self) -> None:
        self._host.gets_on("")

    async def _installed(self, state: KeptState) -> Any:
        """Make a session of what is kept; what will be played is what was proven. Raises StateRefused."""
        async with self._tools.turns.take(Turn.BOUNDARY) as engine_thread:
            job = partial(_install, self._tools, state.manifest, state.placement, state.slot.arena)
            session, captured = await engine_thread(job)
        if captured.manifest != state.manifest:
            raise StateRefused("", f"as installed, {state.manifest.difference(captured.manifest)[0]}")
        await self._require(lambda: captured, state.proof, state.nonce)
        return session

    async def _require(self, captured: Callable[[], Capture], theirs: MoveProof, nonce: bytes) -> None:
        """Compare every group of a state with what its owner has said of it. Raises MoveRefused('mismatch')."""

        def proven() -> tuple[MoveProof, Manifest]:
            capture = captured()
            found = prove(
                capture,
                self._host.digester,
                attempt=theirs.attempt,
                epoch=theirs.epoch,
                boundary=theirs.boundary,
                nonce=nonce,
                layout_digest=capture.manifest.digest,
                gets_on=self._gets_on,
            )
            return found, capture.manifest

        ours, manifest = await self._host.blocking(proven)
        differences = ours.compare(theirs, manifest)
        if differences:
            raise MoveRefused("mismatch", say_damage(differences, ours.num_groups, "of the snapshot"))


def _install(tools: Tools, manifest: Manifest, placement: Placement, arena: AnyArena) -> tuple[Any, Capture]:
    return install_tree(tools.engine, tree_in(tools.engine, manifest, placement, arena))


def _not_done(asked: Keep, code: str, why: str) -> NotDone:
    return NotDone(session=asked.session, request=asked.request, code=code, message=said(why))
