"""What happened in one session, counted and checked, and told to whoever watches."""

from collections.abc import Sequence

import msgspec

from worldmove.fleet.reports import Outcome
from worldmove.serve.audience import Audience
from worldmove.serve.checks import CheckBook, digests_of
from worldmove.serve.follows import FollowBook
from worldmove.serve.metrics import Metrics
from worldmove.serve.play_messages import Check, Counts
from worldmove.worker.messages import BlockDone, CheckDone, Followed

COUNTED = {Outcome.COMMITTED: "moved", Outcome.REFUSED: "refused", Outcome.ABORTED: "aborted"}


class Tally:
    """One session's counts, and the checks of its future."""

    def __init__(self, audience: Audience, metrics: Metrics) -> None:
        self.counts = Counts(moved=0, refused=0, aborted=0, lost=0, blocks_late=0)
        self._audience = audience
        self._metrics = metrics
        self._checks = CheckBook()
        self._follows = FollowBook()

    def moved(self, outcome: Outcome) -> None:
        """A move has ended."""
        if outcome in COUNTED:
            self._count(COUNTED[outcome])

    def lost(self) -> None:
        """No copy is left."""
        self._count("lost")

    def late(self) -> None:
        """A block came late."""
        self._count("blocks_late")

    def shown(self, block: BlockDone) -> None:
        """The owner's block was shown."""
        self._follows.shown(block.block, block.frame_sha256)
        self._tell(self._checks.shown(block.block, digests_of(block)))

    def stepped(self, done: CheckDone) -> None:
        """A retired copy has computed a block."""
        self._tell(self._checks.stepped(done.block, done.attempt, digests_of(done)))

    def followed(self, done: Followed) -> None:
        """A copy that follows has computed a block."""
        self._follows.stepped(done.attempt, done.block, done.frame_sha256)

    def first_difference(self, attempt: str) -> int | None:
        """Return the first block of which an attempt's follower made other frames than were shown."""
        return self._follows.first_difference(attempt)

    def _count(self, field: str) -> None:
        self.counts = msgspec.structs.replace(self.counts, **{field: getattr(self.counts, field) + 1})
        self._audience.say(self.counts)

    def _tell(self, checks: Sequence[Check]) -> None:
        for check in checks:
            self._metrics.checked(equal=check.equal)
            self._audience.say(check)
