"""The source's half of a boundary copy: freeze, let the bytes be read, prove that they were still.

    settle      ...|                     the play goes on, until neither end computes
    freeze         |-----|
    boundary             |---- the destination pulls ----|
    digest               |-- first pass --|
    acknowledge          |-- frames --|
    second_digest                                        |-- second pass --|  proof

Of a session that is followed nothing is pulled: its second pass comes right after the first.

The first pass costs nothing beside the transfer. The second is taken when all has been read (``move.second_pass``):
only then do two equal passes say that nobody wrote between the freeze and the last byte read.
"""

import asyncio

from worldmove.move.attempt import Attempt
from worldmove.move.messages import Proof
from worldmove.move.passes import Passes, said_of_writes
from worldmove.move.proof_fields import fields_of
from worldmove.move.source_copy import Frozen, SourceCopy
from worldmove.move.streaming import tell_finals, tell_handed
from worldmove.move.told_boundary import ToldBoundary
from worldmove.move.told_rows import ToldRows
from worldmove.state.digest import state_digest
from worldmove.state.proof import MoveProof


class Outgoing:
    """One session's state on its way out."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        copy: SourceCopy,
        nonce: bytes,
        layout_digest: bytes,
        resend_s: float,
        is_followed: bool = False,
        rows: ToldRows | None = None,
        is_streamed: bool = False,
        hands: bool = False,
        says_still: bool = True,
    ) -> None:
        """``is_followed``: the destination computes the state from a snapshot, and nothing is pulled.

        ``rows``: it holds some of the state, and is told what its rows are.
        ``is_streamed``: until the freeze it is told which leaves are final; ``hands``: and what blocks hand to a
        component that it steps. ``says_still``: it may pull what it knows to be there before the boundary.
        """
        self.attempt = attempt
        self.is_followed = is_followed
        self.landed = asyncio.Event()
        """Set when the destination has said so."""
        self.ready = asyncio.Event()
        """Set when it computes nothing else, as it says; or, as a follower, stands digested where it is met."""
        self.num_proofs = 0
        """How often the proof was sent."""
        self._copy = copy
        self._rows = rows
        self._is_streamed = is_streamed
        self._hands = hands
        self._may_say_still = says_still and not is_followed and rows is None
        self._passes = Passes(attempt=attempt, copy=copy, nonce=nonce, layout_digest=layout_digest)
        self._boundary = ToldBoundary(
            attempt=attempt,
            copy=copy,
            rows=rows,
            resend_s=resend_s,
            is_followed=is_followed,
            is_streamed=is_streamed,
            hands=hands,
        )
        self._frozen: Frozen | None = None
        self._proof: MoveProof | None = None
        self._state_digest = ""
        self._told = ""

    async def meet(self) -> None:
        """Return when the session stands before the block at which its follower is met; see ``SourceCopy.meet``."""
        with self.attempt.times.phase("meet"):
            await self._copy.meet(self._boundary.meet)

    async def settle(self) -> None:
        """Return when the session stands before a block, if it can at a quiet moment; see ``SourceCopy.settle``."""
        await self._passes.prepare()
        telling = asyncio.create_task(self._tell_finals()) if self._is_streamed else None
        try:
            with self.attempt.times.phase("settle"):
                ready = self._follower_ready if self.is_followed else self._destination_ready
                await self._copy.settle(ready, brings=self._rows is not None)
        finally:
            if telling is not None:
                telling.cancel()
        if self._hands:
            tell_handed(self.attempt, self._copy)  # of the last block, unless that was told by then

    async def run(self) -> None:
        """Return when the proof may be sent. Raises GaveUpError(PASSES_DIFFER), StateRefused or ArenaFull."""
        frozen = self._frozen = await self._freeze()
        self._copy.hush()  # all is told, and the check blocks are nobody's to follow
        async with asyncio.TaskGroup() as beside:
            landing = beside.create_task(self._boundary.frozen(frozen, heard=self.ready, landed=self.landed))
            taken = beside.create_task(self._acknowledged(frozen.block))
            resolving = None if frozen.resolve is None else beside.create_task(frozen.resolve())
            # A task: where it is given up, the device is let go of at once.
            proof = await beside.create_task(self._proven(frozen))
            if resolving is not None:
                await self._passes.check_as_known(frozen, proof, await resolving)
            if self.is_followed:
                await landing
            landing.cancel()  # that all was read may be known before there is word of it
            await taken
        self._proof = proof

    def send_proof(self) -> None:
        """Post the proof. From the first time on, the source is in doubt."""
        if self._proof is None:
            raise ValueError("there is no proof yet")
        self.num_proofs += 1
        self.attempt.times.start("doubt")
        self.attempt.send(self.attempt.peer, Proof, **fields_of(self._proof))

    async def written(self) -> str:
        """Say what the engine has written after its boundary, where the other end has something else than was proven.

        Empty where no trace of that is found, and before the proof.
        """
        frozen, proof = self._frozen, self._proof
        if frozen is None or proof is None:
            return ""
        leaves = await self._passes.inquest(frozen, proof).written(self._copy.arena, self._rows)
        return said_of_writes(leaves) if leaves else ""

    async def take_state_digest(self) -> None:
        """Digest the frozen state under the published seed, once: when nobody waits for this end any more."""
        frozen, digester = self._frozen, self.attempt.host.digester
        if frozen is None or self._state_digest:
            return
        self.attempt.times.stop("doubt")
        with self.attempt.times.phase("state_digest"):
            digest = await self.attempt.host.blocking(lambda: state_digest(frozen.capture, digester))
        self._state_digest = digest.text

    def tell(self, outcome: str, reason: str, detail: str) -> None:
        """Tell the controller what became of the attempt here; once for each outcome."""
        if outcome == self._told:
            return
        self._told = outcome
        if outcome != "in_doubt":
            self.attempt.times.stop("doubt")
        self.attempt.end(
            "source",
            outcome,
            reason,
            detail,
            manifest=self._frozen.capture.manifest if self._frozen else None,
            num_groups=self._proof.num_groups if self._proof else 0,
            state_digest=self._state_digest if outcome == "committed" else "",
        )

    async def _tell_finals(self) -> None:
        await tell_finals(self.attempt, self._copy, lambda: self._hands)

    async def _freeze(self) -> Frozen:
        times = self.attempt.times
        asked = self.attempt.host.clock()
        still = self._boundary.still if self._may_say_still else None
        frozen = await self._copy.freeze(is_pulled=not self.is_followed, begin=self._passes.begin, still=still)
        stopped = asked if frozen.stopped_at is None else frozen.stopped_at
        times.begin_at(stopped)
        times.start("freeze", at=stopped)
        times.stop("freeze")
        return frozen

    async def _destination_ready(self) -> None:
        """Say that the freeze is near, and wait for word that nothing else is computed there. It may never come."""
        self.ready.clear()
        await self._boundary.near()
        await self.ready.wait()

    async def _follower_ready(self) -> None:
        """Wait for word that the follower stands where it is met, and has digested what it has. It may never come."""
        await self.ready.wait()

    async def _acknowledged(self, block: int) -> None:
        with self.attempt.times.phase("acknowledge"):
            await self._copy.acknowledged(block)

    async def _proven(self, frozen: Frozen) -> MoveProof:
        """Take both passes, and return what both have found: the second after all was read, where anything is."""
        if self.is_followed:
            proof = await self._passes.first(frozen)
            self._passes.check(frozen, proof, await self._passes.again(frozen))
            return proof
        second = self._passes.once_read(frozen)
        try:
            if frozen.first is not None:  # it is on the device already, and this one comes behind it there
                await second.order()
            proof = await self._passes.first(frozen)
            self._passes.check(frozen, proof, await second.run(self.landed))
        finally:
            second.let_go()
        return proof
