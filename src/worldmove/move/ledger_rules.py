"""The ledger's rules, pure: ``decide(row, operation, facts) -> (row, answer)``.

Who owns a session changes only here, by one compare-and-swap keyed on the open attempt. Rules of this file:

1. A row changes in one transaction, durable before its answer leaves. All operations but ``OpenAttempt`` are
   idempotent, so a lost answer is asked for again.
2. An inquiry closes the attempt it asks about. One that merely reported would let a late commit be granted
   after the source went on.
3. What only the server knows comes in as ``Facts``, and what it does not know is None. Where an answer needs
   an unknown fact there is no answer yet: the asker holds and asks again, which costs time, not truth.
4. A grant to the destination of a closed attempt, a reclaim and a failover each need more than the row: their
   conditions are what an exhaustive exploration left standing. None is changed without running it again.
"""

from dataclasses import replace
from typing import Protocol

from worldmove.move.ledger_messages import (
    Answer,
    CloseAttempt,
    Closed,
    CommitAttempt,
    Denied,
    Done,
    Failover,
    Lose,
    MarkShown,
    OpenAttempt,
    Opened,
    Operation,
    Reclaim,
    Theirs,
    Yours,
)
from worldmove.move.ledger_row import (
    BY_FAILOVER,
    BY_RECLAIM,
    Facts,
    OpenedFor,
    Row,
    attempt_id,
    next_attempt,
)

__all__ = [
    "Answer",
    "CloseAttempt",
    "Closed",
    "CommitAttempt",
    "Denied",
    "Done",
    "Facts",
    "Failover",
    "Ledger",
    "Lose",
    "MarkShown",
    "OpenAttempt",
    "Opened",
    "OpenedFor",
    "Operation",
    "Reclaim",
    "Row",
    "Theirs",
    "Yours",
    "attempt_id",
    "decide",
    "next_attempt",
]


Ruling = tuple[Row | None, Answer | None]
"""A session's row as it is afterwards, None where it has none; and what the asker is told."""


class Ledger(Protocol):
    """Where the rows are kept. Each verb is one transaction; raises LedgerError where it cannot be."""

    async def create(self, row: Row) -> bool:
        """Keep a new session's row. False, and nothing changed, where the session has one."""
        ...

    async def ask(self, operation: Operation, facts: Facts) -> Ruling:
        """Decide one operation, durably. No answer: not yet, a fact is missing. Raises LedgerError."""
        ...

    async def row(self, session: str) -> Row | None: ...

    async def rows(self) -> tuple[Row, ...]:
        """Return every row, in the order of the sessions' names."""
        ...

    async def forget(self, session: str) -> None:
        """Drop an ended session's row. Idempotent."""
        ...


Decision = tuple[Row, Answer | None]


def decide(row: Row, operation: Operation, facts: Facts) -> Decision:
    """Return the row after ``operation`` and its answer. It is the same object where nothing changed."""
    if row.lost and not isinstance(operation, Lose):
        return row, _denied(row, "lost")
    if operation.epoch > row.epoch:
        return row, _denied(row, "epoch_ahead")  # a ledger that lost a write knows less than its asker
    facts = facts.about(row)
    match operation:
        case OpenAttempt():
            decision = _open(row, operation, facts)
        case CommitAttempt():
            decision = _commit(row, operation, facts)
        case CloseAttempt():
            decision = _close(row, operation, facts)
        case MarkShown():
            decision = _mark_shown(row, operation)
        case Reclaim():
            decision = _reclaim(row, operation, facts)
        case Failover():
            decision = _failover(row, operation, facts)
        case Lose():
            decision = _lose(row, operation, facts)
    return decision


def _open(row: Row, asked: OpenAttempt, facts: Facts) -> Decision:
    reason = _why_not_open(row, asked, facts)
    if reason:
        return row, _denied(row, reason)
    opened = OpenedFor(attempt=asked.attempt, destination=asked.destination, incarnation=asked.destination_incarnation)
    row = replace(row, attempt=opened, last_attempt=asked.attempt)
    return row, Opened(session=row.session, attempt=asked.attempt)


def _why_not_open(row: Row, asked: OpenAttempt, facts: Facts) -> str:
    if row.epoch != asked.epoch:
        return "epoch_passed"
    if row.attempt is not None:
        return "attempt_open"
    if asked.attempt <= row.last_attempt:
        return "attempt_not_new"
    return "owner_gone" if facts.owner_gone else ""


def _commit(row: Row, asked: CommitAttempt, facts: Facts) -> Decision:
    if row.epoch > asked.epoch:
        return row, _from_row(row, asked, asked.boundary, facts)
    shadow = OpenedFor(attempt=asked.attempt, destination=asked.worker, incarnation=asked.incarnation)
    if row.attempt == shadow:
        return _grant(row, asked, asked.attempt)
    if asked.attempt > row.last_attempt:
        return row, _denied(row, "attempt_unknown")
    return _commit_of_closed(row, asked, facts)


def _commit_of_closed(row: Row, asked: CommitAttempt, facts: Facts) -> Decision:
    """Answer a commit that came too late: with the owner dead, its asker may hold the only copy.

    A next block before the boundary contradicts the frames acknowledged before the proof, so it counts as
    not known: discarding the asker's copy could not be undone.
    """
    if facts.owner_gone is False and not facts.owner_suspected:
        return row, Closed(session=row.session, attempt=asked.attempt)
    if not facts.owner_gone or row.attempt is not None:
        return row, None
    if facts.next_block is None or facts.next_block < asked.boundary:
        return row, None
    if facts.next_block == asked.boundary:
        return _grant(row, asked, asked.attempt)
    return row, Closed(session=row.session, attempt=asked.attempt)


def _close(row: Row, asked: CloseAttempt, facts: Facts) -> Decision:
    is_open = row.attempt is not None and row.attempt.attempt == asked.attempt
    if is_open or asked.attempt > row.last_attempt:
        row = replace(row, attempt=None if is_open else row.attempt, last_attempt=max(row.last_attempt, asked.attempt))
    if row.epoch == asked.epoch:
        return row, Closed(session=row.session, attempt=asked.attempt)
    return row, _from_row(row, asked, asked.boundary, facts)


def _mark_shown(row: Row, asked: MarkShown) -> Decision:
    if row.epoch != asked.epoch:
        return row, _denied(row, "epoch_passed")
    return row if row.shown else replace(row, shown=True), Done(session=row.session, epoch=row.epoch)


def _reclaim(row: Row, asked: Reclaim, facts: Facts) -> Decision:
    if row.epoch > asked.epoch:
        return row, _from_row(row, asked, asked.computed, facts)
    if facts.next_block is None:
        return row, None
    reason = _why_no_reclaim(row, asked, facts, facts.next_block)
    return (row, _denied(row, reason)) if reason else _grant(row, asked, BY_RECLAIM)


def _why_no_reclaim(row: Row, asked: Reclaim, facts: Facts, next_block: int) -> str:
    if _owns(row, asked):
        return "already_owner"
    if row.shown:
        return "shown"
    if not asked.acknowledged <= next_block <= asked.computed:
        return "boundary"
    return "" if facts.owner_gone or facts.owner_suspected else "owner_lives"


def _failover(row: Row, asked: Failover, facts: Facts) -> Decision:
    if row.granted_by == BY_FAILOVER and _owns(row, asked) and row.epoch == asked.epoch + 1:
        return row, Done(session=row.session, epoch=row.epoch)
    if facts.next_block is None:
        return row, None
    reason = _why_no_failover(row, asked, facts, facts.next_block)
    if reason:
        return row, _denied(row, reason)
    row, _ = _grant(row, asked, BY_FAILOVER)
    return row, Done(session=row.session, epoch=row.epoch)


def _why_no_failover(row: Row, asked: Failover, facts: Facts, next_block: int) -> str:
    if row.epoch != asked.epoch:
        return "epoch_passed"
    if row.attempt is not None:
        return "attempt_open"
    if not (facts.owner_gone or facts.owner_suspected):
        return "owner_lives"
    if facts.closed_epoch is None or facts.closed_epoch < row.epoch:
        return "epoch_not_closed"
    return "log_too_short" if asked.log_reaches < next_block else ""


def _lose(row: Row, asked: Lose, facts: Facts) -> Decision:
    reason = "" if row.lost and row.epoch == asked.epoch else _why_not_lost(row, asked, facts)
    if reason:
        return row, _denied(row, reason)
    return row if row.lost else replace(row, lost=True), Done(session=row.session, epoch=row.epoch)


def _why_not_lost(row: Row, asked: Lose, facts: Facts) -> str:
    if row.epoch != asked.epoch:
        return "epoch_passed"
    if row.attempt is not None:
        return "attempt_open"
    if not facts.owner_gone:
        return "owner_lives"
    if asked.poll != facts.poll:
        return "poll_not_newest"
    return "copy_found" if asked.copies_found else ""


Asker = CommitAttempt | CloseAttempt | Reclaim | Failover


def _grant(row: Row, asker: CommitAttempt | Reclaim | Failover, by: str) -> Decision:
    row = replace(
        row,
        owner=asker.worker,
        incarnation=asker.incarnation,
        epoch=row.epoch + 1,
        shown=False,
        attempt=None,
        granted_by=by,
    )
    return row, Yours(session=row.session, epoch=row.epoch)


def _from_row(row: Row, asker: Asker, boundary: int, facts: Facts) -> Answer | None:
    """Answer whose the session is by now.

    An epoch that is recorded as shown counts as passed, though its block may not have left: nobody may reclaim it
    any more, so a holder that went on waiting to would keep the session from the one copy that can take over.
    """
    if _owns(row, asker):
        if row.granted_by != BY_FAILOVER:
            return Yours(session=row.session, epoch=row.epoch)
        if facts.next_block is None:
            return None
        return Yours(session=row.session, epoch=row.epoch, replay_to=facts.next_block)
    passed = row.shown or (facts.next_block is not None and facts.next_block > boundary)
    return Theirs(session=row.session, epoch=row.epoch, passed=passed)


def _owns(row: Row, asker: Asker) -> bool:
    return (row.owner, row.incarnation) == (asker.worker, asker.incarnation)


def _denied(row: Row, reason: str) -> Denied:
    return Denied(session=row.session, reason=reason)
