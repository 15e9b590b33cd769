"""The controller's table of sessions, beside the ledger's rows: what was opened where, and what is under way."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from worldmove.errors import UserError
from worldmove.fleet.attempts import Attempt
from worldmove.fleet.behind import Ahead
from worldmove.fleet.given_names import GivenNames
from worldmove.fleet.notes import SessionNote
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.resumption import BEGUN
from worldmove.fleet.tries import Raised
from worldmove.fleet.views import SessionState, SessionView
from worldmove.fleet.wish import AS_CHOSEN, Wish
from worldmove.move.admission import Verdict
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import Failed, Opened

HOLDING = ("live", "frozen", "superseded", "shadow", "following", "retired", "kept")
"""Phases of a copy that still needs the session's inputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierKeeper:
    """A worker, in its incarnation, that fell silent before it had said that it keeps a snapshot."""

    worker: str
    incarnation: int
    told_at: int | None = None
    """The newest beat that it had been sent when it was first told to let go; None: it was not."""

    def told(self, beat: int) -> "EarlierKeeper":
        """Return it as one that is told now."""
        return self if self.told_at is not None else replace(self, told_at=beat)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed:
    """The keeper of the newest snapshot, for which what others hold is to be let go (``fleet.relief``)."""

    worker: str
    incarnation: int
    beat: int
    """The newest that it had been sent when this server found that it has the newest, or when others were last told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a session's state is, as its owner in an epoch has said."""

    epoch: int
    num_bytes: int
    num_leaves: int


@dataclass(slots=True, kw_only=True)
class SessionRecord:
    """One session, or one throw-away copy."""

    name: str
    seed: int
    worker: str
    """Where it was opened."""
    incarnation: int
    throwaway: bool
    opened: Opened | None = None
    answer: "asyncio.Future[Opened | Failed]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    newest: Size | None = None
    """Of the newest state that is known; None while that is the one that it was opened with."""
    conducted: "asyncio.Future[MoveReport | None] | None" = None
    """The move of it that is being conducted. Its result is None where it ended without a report."""
    cancelled: bool = False
    """Somebody asked to give that move up."""
    attempt: Attempt | None = None
    """The try under way."""
    waits_for: str | None = None
    """The worker that is to let go of what it has of it before a try can begin; None: no move waits for that."""
    move_number: int | None = None
    """That move's, in the history; None before its first try."""
    wish: Wish = AS_CHOSEN
    """How the move under way is to be made."""
    expected: Verdict | None = None
    """What admission has said of its last try."""
    tried: str = ""
    """The id of the newest try."""
    failed_why: str = ""
    """What an engine raised that played it; empty where none has."""
    raised: Raised | None = None
    """What the engine of the last worker raised at which one did since its last try began."""
    closing: bool = False
    holders: tuple[str, ...] = ()
    """As the gateway was last told."""
    noted: tuple[tuple[str, int], ...] = ()
    """Who may hold lists of it, with their incarnations, as is noted."""
    resuming: bool = False
    """It is an earlier server's, and not every holder has reported yet, or no player."""
    resuming_why: str = BEGUN
    """Which of them is waited for then."""
    protect_every: int = 0
    """After how many blocks a snapshot of it is kept elsewhere; 0: never."""
    keeper: tuple[str, int] | None = None
    """The worker, in its incarnation, that expects its snapshots and so needs its lists."""
    earlier_keepers: tuple[EarlierKeeper, ...] = ()
    """Those that expected its snapshots before: they need its lists until one is kept, and they have heard of it."""
    confirmed: Confirmed | None = None
    """Who keeps the newest snapshot, where others are still to let go for it; None: they have, or there is none."""
    keeping: bool = False
    """A keeper was asked to pull a snapshot, and has not answered yet."""
    num_unkept: int = 0
    """How many snapshots in a row were not kept."""
    unkept_why: str = ""
    """Why the newest snapshot that was asked for is not kept; an older one may be."""
    renewal_waits: bool = False
    """A newer snapshot is due, and a move of the session is waited for."""
    computed: int = 0
    """The block after the newest that its owner has computed, as far as this server has heard."""
    missing_since: float | None = None
    """Since when its owner is gone or does not answer, by the event loop's clock; None while it plays."""
    forks: tuple[int, ...] = ()
    """Where deaths have made it go on though a client may have had later blocks."""
    ahead: Ahead | None = None
    """A copy of an epoch that the ledger knows nothing of: it has lost a write."""
    urgent: bool = False
    """Its worker ends: it is moved also where a block would come late."""

    def is_resumed_after(self, why: str) -> None:
        """It is an earlier server's, and waits for this."""
        self.resuming_why = why

    @property
    def moving(self) -> bool:
        """Whether a move of it is being conducted."""
        return self.conducted is not None

    @property
    def size(self) -> Size:
        """That of its newest state that is known; 0 while none is."""
        opened = self.opened
        if self.newest is not None or opened is None:
            return self.newest or Size(epoch=0, num_bytes=0, num_leaves=0)
        return Size(epoch=opened.epoch, num_bytes=opened.num_bytes, num_leaves=opened.num_leaves)

    def accounted(self, epoch: int, num_leaves: int) -> None:
        """Its owner has accounted for its state: leaf by leaf, and not by its bytes."""
        self.newest = replace(self.size, epoch=epoch, num_leaves=num_leaves)

    def moved(self, report: MoveReport) -> None:
        """A move of it has ended. What its new owner may have accounted for meanwhile is newer."""
        if report.outcome is Outcome.COMMITTED:
            has_accounted = self.newest is not None and self.newest.epoch >= report.epoch
            num_leaves = self.size.num_leaves if has_accounted else report.num_leaves
            self.newest = Size(epoch=report.epoch, num_bytes=report.num_bytes, num_leaves=num_leaves)


class SessionTable:
    """All sessions and throw-away copies, by name."""

    def __init__(self) -> None:
        self._records: dict[str, SessionRecord] = {}
        self.thrown_away = GivenNames()
        """Names that throw-away copies have had."""

    def all(self) -> tuple[SessionRecord, ...]:
        return tuple(self._records.values())

    def note_of(self, record: SessionRecord, *, closing: bool = False) -> SessionNote:
        """Return what is noted of a session."""
        opened = record.opened
        return SessionNote(
            name=record.name,
            seed=record.seed,
            num_bytes=opened.num_bytes if opened else 0,
            num_leaves=opened.num_leaves if opened else 0,
            state_digest=opened.state_digest if opened else "",
            holders=record.noted,
            closing=closing,
            protect_every=record.protect_every,
            forks=record.forks,
        )

    def find(self, session: str) -> SessionRecord | None:
        return self._records.get(session)

    def get(self, session: str) -> SessionRecord:
        """Return a session. Raises UserError if there is none of that name."""
        record = self._records.get(session)
        if record is None:
            raise UserError(
                f"There is no session {session}; `worldmove sessions` lists those that are open.",
                code="unknown_session",
                status=404,
            )
        return record

    def add(self, record: SessionRecord) -> SessionRecord:
        """Keep a new session. Raises UserError if the name is taken."""
        if record.name in self._records:
            raise UserError(f"There is a session {record.name} already.", code="name_taken", status=409)
        self._records[record.name] = record
        return record

    def drop(self, session: str) -> None:
        self._records.pop(session, None)

    def next_throwaway(self, session: str, salt: Callable[[], str]) -> str:
        """Return a new name for a throw-away copy of a session, like ``s-1~rk3m9qa``. None is given twice.

        ``salt``: a short random text. A copy of an earlier server's may still be with a worker, and what it has sent on
        its way: its name says nothing of one of this server's.
        """
        return self.thrown_away.new(lambda: f"{session}~r{salt()}")


def view(
    record: SessionRecord,
    row: Row | None,
    *,
    owner_missing: bool = False,
    owner_reported: bool = True,
    kept: tuple[str, int] | None = None,
    unprotected_why: str = "",
    next_block: int | None = None,
) -> SessionView:
    """Show a session as its record and its row say; its owner is missing where it is dead or does not answer.

    ``kept``: who keeps its newest snapshot, and of which boundary. ``unprotected_why``: why the death of one worker may
    lose it (``fleet.second_copy``). ``next_block``: the next to be shown, where known.
    """
    return SessionView(
        name=record.name,
        state=_state(record, row, owner_missing=owner_missing, owner_reported=owner_reported),
        owner=row.owner if row else record.worker,
        incarnation=row.incarnation if row else record.incarnation,
        epoch=row.epoch if row else 0,
        attempt=record.attempt.plan.attempt if record.attempt else None,
        holders=record.holders,
        seed=record.seed,
        num_bytes=record.size.num_bytes,
        num_leaves=record.size.num_leaves,
        protect_every=record.protect_every,
        keeper=kept[0] if kept else None,
        kept_block=kept[1] if kept else None,
        kept_age_blocks=max(0, next_block - kept[1]) if kept and next_block is not None else None,
        unprotected_why=unprotected_why,
        not_renewed_why=_not_renewed_why(record) if record.protect_every and not (row and row.lost) else "",
        throwaway=record.throwaway,
    )


def _not_renewed_why(record: SessionRecord) -> str:
    if record.unkept_why or not (record.renewal_waits and record.moving):
        return record.unkept_why
    return "moving: a newer snapshot is due, and is kept once the move has ended."


def _state(record: SessionRecord, row: Row | None, *, owner_missing: bool, owner_reported: bool) -> SessionState:
    if row is not None and row.lost:
        return SessionState.LOST
    if record.ahead is not None:
        return SessionState.LEDGER_BEHIND
    if record.opened is None and row is None:
        return SessionState.OPENING
    if record.moving:
        return SessionState.MOVING
    if record.resuming and not owner_reported:
        return SessionState.IN_DOUBT
    # An attempt that is open although nobody conducts it waits for its ends to ask the ledger.
    waits = row is not None and (row.attempt is not None or owner_missing)
    return SessionState.IN_DOUBT if waits else SessionState.LIVE
