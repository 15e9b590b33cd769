"""What the row and the two ends have said of how a try ended, and what follows from it."""

from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.grants import is_granted
from worldmove.fleet.reports import Outcome
from worldmove.fleet.tries import Ending, Plan, taken_back
from worldmove.fleet.workers import WorkerRecord, may_hold_shadow
from worldmove.move.ledger_row import Row
from worldmove.move.messages import Ended


class Testimony:
    """Collects the ends' own words. Where the row contradicts them, the row is right."""

    def __init__(self, plan: Plan, desk: LedgerDesk) -> None:
        self._plan = plan
        self._desk = desk
        self._ended: dict[str, Ended] = {}
        self._granted = False
        self._taken_back = False
        self._cut: dict[str, None] = {}
        """Ends whose words may be lost."""
        self._thawed_at: int | None = None
        """The next block when the source had said that it plays on: no boundary that it has proved is later."""

    def take(self, ended: Ended) -> None:
        """An end has said how it ended there."""
        self._ended[ended.side] = ended
        if ended.side == "source" and self._thawed_at is None:
            self._thawed_at = self._desk.next_block(self._plan.session)

    def cut_off(self, worker: str) -> None:
        """What an end said may be lost."""
        self._cut[worker] = None

    def row_changed(self, row: Row) -> None:
        """The session's row was written. What made an epoch is not in it any more once the next one has begun."""
        granted = is_granted(self._plan, row, before=self._granted)
        self._taken_back = self._taken_back or (self._granted and not granted)
        self._granted = granted

    @property
    def is_complete(self) -> bool:
        """Whether each end has said how it ended, or is dead."""
        return all(self._desk.is_gone(end.name, end.incarnation) for end in self.untold())

    @property
    def is_needless(self) -> bool:
        """Whether the row says how it ended, and an end's own word may never come."""
        row = self._desk.row(self._plan.session)
        if row is None or row.attempt is not None:
            return False
        if is_granted(self._plan, row, before=self._granted):
            return any(self._is_cut_off(end) for end in self.untold())
        return not self._may_be_granted(row) or self._are_silent()

    def ending(self) -> Ending:
        """Read from the row what became of the try; the ends' words explain it."""
        row = self._desk.row(self._plan.session)
        outcome, reason, detail = self._outcome(row)
        source, destination = self._ended.get("source"), self._ended.get("destination")
        return Ending(outcome=outcome, reason=reason, detail=detail, source=source, destination=destination)

    def _outcome(self, row: Row | None) -> tuple[Outcome, str, str]:
        if row is None or row.lost:
            return Outcome.LOST, "lost", "no copy is left"
        if is_granted(self._plan, row, before=self._granted):
            return Outcome.COMMITTED, "done", ""
        if self._taken_back:
            return Outcome.ABORTED, "reclaimed", taken_back(self._plan, row)
        if row.attempt is None and not self._may_be_granted(row):
            return Outcome.ABORTED, *self._why_aborted()
        return Outcome.IN_DOUBT, "silent", "an end has not said how the move ended"

    def _may_be_granted(self, row: Row) -> bool:
        """Whether its commit may yet be granted, though it is closed: should its source die before another block left.

        That takes a destination that has verified the state by the source's proof, and the source's epoch. What it has
        asked before it let go may wait for the ledger yet.
        """
        if row.epoch != self._plan.epoch:
            return False
        if self._desk.may_yet_commit(self._plan.attempt):
            return True
        if self.has_let_go():
            return False
        source = self._ended.get("source")
        return source is None or (is_proof_sent(source) and not self._has_passed())

    def has_let_go(self) -> bool:
        """Whether the destination holds no shadow any more: by its word, its death, or all that it says it holds."""
        end = self._plan.destination
        if "destination" in self._ended or self._desk.is_gone(end.name, end.incarnation):
            return True
        return end.name in self._cut and not may_hold_shadow(end, self._plan.session)

    def _are_silent(self) -> bool:
        """Whether neither end answers: whoever asks is told that it is in doubt, and need not wait for them."""
        return len(self.untold()) == 2 and all(map(self._is_silent, self.untold()))

    def _is_silent(self, end: WorkerRecord) -> bool:
        return self._desk.is_suspected(end.name, end.incarnation)

    def _is_cut_off(self, end: WorkerRecord) -> bool:
        """Whether an end's word may never come: its link was made anew, or it does not answer."""
        return end.name in self._cut or self._is_silent(end)

    def _has_passed(self) -> bool:
        """Whether a block past every boundary that the source has proved was shown."""
        thawed_at, next_block = self._thawed_at, self._desk.next_block(self._plan.session)
        return thawed_at is not None and next_block is not None and next_block > thawed_at

    def _why_aborted(self) -> tuple[str, str]:
        """Say of an end that could not say how it ended that it is dead, or does not answer; else what an end said.

        What the other end says is the echo of having been woken, or of its time being over.
        """
        for end in self.untold():
            if self._desk.is_gone(end.name, end.incarnation):
                return "worker_gone", f"{end.name} ended in the middle of the move"
        for end in self.untold():
            if self._desk.is_suspected(end.name, end.incarnation):
                return "silent", f"{end.name} does not answer, and the move was closed"
        source = self._ended.get("source")
        if source is not None and (source.outcome, source.reason) == ("aborted", "engine_wrote"):
            return source.reason, source.detail  # the other end can only say that it has other bytes
        for side in ("destination", "source"):
            if side in self._ended and self._ended[side].outcome == "aborted":
                return self._ended[side].reason, self._ended[side].detail
        return "silent", "an end did not answer, and the move was closed"

    def untold(self) -> tuple[WorkerRecord, ...]:
        """Return the ends that have not said how it ended."""
        ends = (("source", self._plan.source), ("destination", self._plan.destination))
        return tuple(end for side, end in ends if side not in self._ended)


def is_proof_sent(source: Ended) -> bool:
    """Whether a source that has said how it ended had sent its proof: it is in doubt from then on."""
    return any(name == "doubt" for name, _, _ in source.phases)
