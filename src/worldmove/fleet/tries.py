"""What a try of a move is about, what its conductor hears, and how it ends: plain values."""

from dataclasses import dataclass, replace
from typing import Any

from worldmove.errors import MoveRefused
from worldmove.fleet.grants import is_taken_back
from worldmove.fleet.reports import Outcome
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_row import Row
from worldmove.move.messages import CONTROLLER, AnyMoveMessage, Declined, Ended
from worldmove.move.strategy import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a try ended, and what its two ends said of it."""

    outcome: Outcome
    reason: str
    detail: str
    source: Ended | None = None
    destination: Ended | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """An end's process is proven dead."""

    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """A worker's engine has raised, or the conduct of the session there has failed: nothing more comes of it there."""

    worker: str
    incarnation: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedAgain:
    """An end has made a new link: what it said of how it ended may be lost with the old one."""

    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAsked:
    """Somebody asked to give the move up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a try is about."""

    session: str
    epoch: int
    attempt: str
    nonce: bytes
    transport: str
    strategy: Strategy
    source: WorkerRecord
    destination: WorkerRecord
    is_protected: bool = False
    """Whether a snapshot of the session is to be kept."""

    def message(self, to: str, kind: type[AnyMoveMessage], **fields: Any) -> AnyMoveMessage:
        """Return a message of the controller's about this try."""
        return kind(
            to=to,
            sender=CONTROLLER,
            incarnation=0,
            session=self.session,
            attempt=self.attempt,
            epoch=self.epoch,
            **fields,
        )


Heard = AnyMoveMessage | Died | LinkedAgain | CancelAsked


def refuse(event: Heard) -> None:
    """Raise MoveRefused for whatever ends a try before its start."""
    match event:
        case Declined():
            raise MoveRefused(event.reason, event.detail)
        case Ended():
            raise MoveRefused(event.reason, event.detail or f"the {event.side} gave up")
        case Died():
            raise MoveRefused("worker_gone", f"{event.worker} ended")
        case CancelAsked():
            raise MoveRefused("cancelled", "it was cancelled")


def by_row(
    plan: Plan, ending: Ending, row: Row | None, *, granted: bool, missing: str, raised: Raised | None = None
) -> Ending:
    """Return how a try ended as the row has it by now: a session whose owner is missing goes on nowhere.

    ``granted``: whether its grant stands, by every row so far (``grants``).
    ``missing``: "worker_gone" or "silent" where the owner is dead, or does not answer; else empty.
    ``raised``: by whose engine, since the try began.
    """
    if row is None or row.lost:
        return replace(ending, outcome=Outcome.LOST, reason="lost", detail="no copy is left")
    if granted:
        return replace(ending, outcome=Outcome.COMMITTED, reason="done", detail="")
    if ending.outcome is Outcome.COMMITTED or ending.reason == "reclaimed":
        return replace(ending, outcome=Outcome.ABORTED, reason="reclaimed", detail=taken_back(plan, row, raised))
    if missing:
        what = "ended" if missing == "worker_gone" else "does not answer"
        detail = f"{row.owner} {what} and no copy has taken over yet"
        return replace(ending, outcome=Outcome.IN_DOUBT, reason=missing, detail=detail)
    if ending.outcome is Outcome.IN_DOUBT and row.epoch != plan.epoch:
        return replace(ending, outcome=Outcome.ABORTED, detail="an end has not answered, and the move was closed")
    return ending


def taken_back(plan: Plan, row: Row, raised: Raised | None = None) -> str:
    """Return the sentence for a try whose grant did not stand."""
    there = plan.destination
    silent = f"{there.name} ended or did not answer before it had shown a block"
    if raised is not None and (raised.worker, raised.incarnation) == (there.name, there.incarnation):
        silent = f"{there.name} had shown no block, for {raised.why}"
    if is_taken_back(plan, row):
        return f"{silent}, and {row.owner} went on"
    return f"{silent}; another copy had the session back, and {row.owner} has it since"
