"""A state that was computed at the destination: it stands still where its source does, and is digested there."""

import asyncio
from collections.abc import Callable

from worldmove.move.attempt import Attempt, GaveUpError, Prove
from worldmove.move.follower import Follower
from worldmove.move.messages import Ready
from worldmove.move.protocol import DestinationEvent
from worldmove.state.capture import Capture
from worldmove.state.digest import BeginPass, Pass
from worldmove.state.proof import MoveProof


class Meeting:
    """One follower, from its snapshot to where it meets its source."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        follower: Follower,
        at_most_s: float,
        begin: BeginPass,
        prove: Prove,
        stands: Callable[[], None],
    ) -> None:
        """``at_most_s``: how long it may take to come there. ``stands`` is called when it has."""
        self._attempt = attempt
        self._follower = follower
        self._at_most_s = at_most_s
        self._begin = begin
        self._prove = prove
        self._stands = stands
        self._stands_at: int | None = None
        """The block before which it stands still."""

    async def run(self) -> tuple[int, Capture, MoveProof]:
        """Return the next block, what is installed before it, and its digests. Raises GaveUpError and others."""
        await self._follower.run()
        block, capture, begun = await self._halted()
        self._stands()
        with self._attempt.times.phase("verify"):
            ours = await self._prove(capture, block, begun)
        # So that its source freezes, if it has not: nobody waits for this end then.
        self._attempt.send(self._attempt.peer, Ready)
        return block, capture, ours

    def require_met(self, block: int) -> None:
        """Raise GaveUpError where it stands still before another block than its source."""
        if self._stands_at not in (None, block):
            said = f"it stands before block {self._stands_at}, and the source before block {block}"
            raise GaveUpError(DestinationEvent.ABANDON, "overshot", said)

    async def _halted(self) -> tuple[int, Capture, Pass | None]:
        """Have it stand still where the source has said: before that has frozen, where it can be."""
        try:
            async with asyncio.timeout(self._at_most_s):
                with self._attempt.times.phase("halt"):
                    self._stands_at, capture, begun = await self._follower.halt(self._begin)
        except TimeoutError as error:
            raise GaveUpError(DestinationEvent.TIME_OUT, "time_out", "it did not come to where they meet") from error
        return self._stands_at, capture, begun
