"""Has a snapshot of every protected session kept by a worker that does not play it, renewed every so many blocks.

In this order, for each renewal; whatever fails leaves the older snapshot where it is, and is tried again:

1. The keeper expects the session: it is a holder of its lists from now on, and noted as one before it is sent any.
2. The owner copies the state aside at its next boundary, and says so once every block before that has left.
3. The keeper pulls and proves it; the older one goes as the new one is proven. Then the owner's copy of it goes.
4. What others still keep, and a retired copy that waits for nothing else, are let go, once that keeper has lived on
   (``fleet.relief``); also where no newer one comes about.

So no list that a kept snapshot needs is forgotten: the gateway has them all, and the keeper those since its snapshot,
also where the server dies with the owner.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from worldmove.errors import LedgerError, UserError
from worldmove.fleet.asking import Asking
from worldmove.fleet.books import Books
from worldmove.fleet.holders import Holders
from worldmove.fleet.keeper_choice import KeeperChoice
from worldmove.fleet.keepers import Keepers
from worldmove.fleet.relief import Relief
from worldmove.fleet.renewal import Log, Renewal
from worldmove.fleet.second_copy import SecondCopy
from worldmove.fleet.sessions import SessionRecord
from worldmove.limits import MAX_EVERY
from worldmove.move.ledger_row import Row
from worldmove.worker.background import Background
from worldmove.worker.messages import KEPT, Pass

"""A keeper holds the lists of so many blocks and some more."""


class Protection:
    """All protected sessions of one server."""

    def __init__(
        self,
        books: Books,
        asking: Asking,
        holders: Holders,
        background: Background,
        *,
        nonce: Callable[[], bytes],
        log: Log,
    ) -> None:
        self._books = books
        self._asking = asking
        self._background = background
        self._log = log
        self._keepers = Keepers(books, holders)
        self._choice = KeeperChoice(books)
        self._second = SecondCopy(books)
        self._relief = Relief(books)
        self._renewal = Renewal(books, asking, self._keepers, nonce=nonce, log=log)
        self._guards: dict[str, asyncio.Task[None]] = {}
        self._changed: dict[str, asyncio.Event] = {}

    def protect(self, session: str, every: int) -> None:
        """Have a snapshot kept every so many blocks from now on; 0: none any more. Raises UserError, LedgerError."""
        record = self._books.sessions.get(session)
        if record.throwaway:
            raise UserError(f"{session} is a throw-away copy, and nothing of it is kept.", code="throwaway", status=409)
        if not 0 <= every <= MAX_EVERY:
            raise UserError(f"A snapshot is kept every 1 to {MAX_EVERY} blocks; 0 is never.", code="usage", status=422)
        before, record.protect_every = record.protect_every, every
        try:
            self._books.notes.keep_session(self._books.sessions.note_of(record, closing=record.closing))
        except LedgerError:
            record.protect_every = before
            raise
        self._log("protect", {"session": session, "every": every})
        self.look()

    def look(self) -> None:
        """Something has changed: guard every protected session, and have every guard look again."""
        for record in self._books.sessions.all():
            self._relieve(record)
            if not record.protect_every and not self._is_orphan(record):
                self._keepers.let_pass_staying(record)
            held = self._books.workers.holders(record.name, (KEPT,))
            is_kept = record.protect_every or record.keeper or held  # perhaps nobody let it go
            if is_kept and record.name not in self._guards:
                self._changed[record.name] = asyncio.Event()
                self._guards[record.name] = self._background.start(f"guard {record.name}", self._guard(record))
        for session, changed in self._changed.items():
            found = self._books.sessions.find(session)
            if found is None or self._has_ended(found):
                self._asking.ended(session)  # a guard may wait for a snapshot of it
            elif (row := self._books.desk.row(session)) is not None:
                self._asking.owned(session, row.owner)
            changed.set()

    def newest(self, session: str) -> tuple[str, int] | None:
        """Return who keeps a session's newest snapshot, and its boundary; None where nobody does but its owner."""
        row = self._books.desk.row(session)
        held = [
            (worker, copy)
            for worker, copy in self._books.workers.holders(session, (KEPT,))
            if row is None or worker.name != row.owner
        ]
        return max(((worker.name, copy.block) for worker, copy in held), key=lambda kept: kept[1], default=None)

    def why_unprotected(self, record: SessionRecord) -> str:
        """Return why the death of one worker may lose a protected session; empty where none does."""
        return self._second.why_none(record) if record.protect_every else ""

    def computed(self, session: str, block: int) -> None:
        """A session's owner has computed a block."""
        record = self._books.sessions.find(session)
        if record is not None:
            record.computed = max(record.computed, block + 1)
            self._relieve(record)
            if record.protect_every and session in self._changed:
                self._changed[session].set()

    def linked_again(self, worker: str) -> None:
        """A worker has made a new link: what it was to keep it expects no more, unless it has a snapshot."""
        self._asking.linked_again(worker)
        for record in self._books.sessions.all():
            self._keepers.linked_again(record, worker)
            if not record.protect_every:  # it may not have heard that nothing waits for its retired copy
                self._books.workers.send(worker, Pass(session=record.name))
        self.look()

    # one session's guard

    async def _guard(self, record: SessionRecord) -> None:
        """Renew a session's snapshot whenever that is due, until it has ended or is protected no more.

        While nobody plays it, it may go on from what is kept, whatever was asked for since.
        """
        changed = self._changed[record.name]
        try:
            while not self._has_ended(record) and (record.protect_every or self._is_orphan(record)):
                changed.clear()
                self._relieve(record)
                if record.protect_every and self._is_due(record):
                    await self._renewal.renew(record)
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._books.config.protect_again_s):
                        await changed.wait()
            self._keepers.let_go(record)  # also what a keeper is still pulling of a session that was lost meanwhile
        finally:
            del self._changed[record.name], self._guards[record.name]

    def _has_ended(self, record: SessionRecord) -> bool:
        return self._books.sessions.find(record.name) is not record or record.closing or self._is_lost(record)

    def _is_orphan(self, record: SessionRecord) -> bool:
        row = self._books.desk.row(record.name)
        return record.resuming or (row is not None and self._books.desk.owner_is_missing(row))

    def _is_lost(self, record: SessionRecord) -> bool:
        row = self._books.desk.row(record.name)
        return row is not None and row.lost

    def _is_due(self, record: SessionRecord) -> bool:
        """Whether a snapshot is to be taken now. Where one would be, but for a move, that is said."""
        row = self._books.desk.row(record.name)
        is_wanted = row is not None and not record.resuming and self._is_wanted(record, row)
        waits = row is not None and is_wanted and is_held_up(record, row)
        if waits and not record.renewal_waits:
            newest = self.newest(record.name)
            self._log("renewal_waits", {"session": record.name, "kept_block": newest[1] if newest else None})
        record.renewal_waits = waits
        return row is not None and is_wanted and not waits and self._owned_in(record, row, ("live",))

    def _is_wanted(self, record: SessionRecord, row: Row) -> bool:
        """Whether a session has an owner, and nobody who stays keeps a snapshot that is new enough."""
        if self._books.desk.owner_is_missing(row) or not self._owned_in(record, row, ("live", "frozen")):
            return False
        kept = None if record.keeper is None else self._choice.kept_by(record.name, record.keeper[0])
        if kept is None or record.keeper is None or not self._choice.is_good(record.keeper, row):
            return True
        is_old = record.computed >= kept.block + record.protect_every or self._second.lacks_lists(kept)
        return is_old or self._keepers.is_in_the_way(record, row)

    def _owned_in(self, record: SessionRecord, row: Row, phases: tuple[str, ...]) -> bool:
        """Whether the row's owner holds the session in its epoch, and in one of these phases."""
        owner = self._books.workers.find(row.owner)
        copies = () if owner is None else owner.copies
        held = [copy for copy in copies if (copy.session, copy.epoch) == (record.name, row.epoch)]
        return any(copy.phase in phases for copy in held)

    def _relieve(self, record: SessionRecord) -> None:
        """Have others let go for whoever keeps the newest."""
        row = self._books.desk.row(record.name)
        if row is not None and not record.closing:
            self._relief.look(record, row)


def is_held_up(record: SessionRecord, row: Row) -> bool:
    """Whether a move of a session stands in the way of a newer snapshot of it. Pure.

    It does from its first word to its last, for its pause is reckoned without one; but not while it waits for room at
    its destination, which may be what it waits for, nor while what comes before its boundary takes long: up to an hour.
    """
    if record.attempt is not None and record.attempt.takes_long:
        return False
    return row.attempt is not None or (record.moving and record.waits_for is None)
