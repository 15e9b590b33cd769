"""Has a snapshot of every protected session kept by a worker that does not play it, renewed every so many blocks.

In this order, for each renewal; whatever fails leaves the older snapshot where it is, and is tried again:

1. The keeper expects the session: it is a holder of its lists from now on, and noted as one before it is sent any.
2. The owner copies the state aside at its next boundary, and says so once every block before that has left.
3. The keeper pulls and proves it; the older one goes as the new one is proven. Then the owner's copy of it goes.
4. What others still keep, and a retired copy that waits for nothing else, are let go, once that keeper has lived on
   (``fleet.relief``).

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
from worldmove.fleet.path_health import PathHealth, available, measured
from worldmove.fleet.relief import Relief
from worldmove.fleet.sessions import EarlierKeeper, SessionRecord
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_row import Row
from worldmove.state.environment import Environment
from worldmove.worker.background import Background
from worldmove.worker.messages import (
    KEPT,
    DropSnapshot,
    Expect,
    Keep,
    Kept,
    LetGo,
    Pass,
    SnapshotTaken,
    TakeSnapshot,
)

MAX_EVERY = 1024
"""A keeper holds the lists of so many blocks and some more."""
HOPELESS = ("no_keeper", "no_slot", "state_too_large")
"""Codes of failures that go on for as long as nothing else changes: a retired copy does not wait for their end."""

Log = Callable[[str, dict[str, object]], None]


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
        self._holders = holders
        self._background = background
        self._nonce = nonce
        self._log = log
        self._relief = Relief(books)
        self._paths = PathHealth(quarantine_s=books.config.quarantine_s)
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
            is_kept = record.protect_every or record.keeper or self.newest(record.name)  # perhaps nobody let it go
            if is_kept and record.name not in self._guards:
                self._changed[record.name] = asyncio.Event()
                self._guards[record.name] = self._background.start(f"guard {record.name}", self._guard(record))
        for changed in self._changed.values():
            changed.set()

    def newest(self, session: str) -> tuple[str, int] | None:
        """Return who keeps a session's newest snapshot, and its boundary; None where nobody does."""
        held = self._books.workers.holders(session, (KEPT,))
        return max(((worker.name, copy.block) for worker, copy in held), key=lambda kept: kept[1], default=None)

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
            record.earlier_keepers = tuple(one for one in record.earlier_keepers if one.worker != worker)
            if record.keeper is not None and record.keeper[0] == worker and self._kept(record, worker) is None:
                record.keeper = None
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
                    await self._renew(record)
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._books.config.protect_again_s):
                        await changed.wait()
            self._let_go(record)  # also what a keeper is still pulling of a session that was lost meanwhile
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
        """Whether a snapshot is to be taken now: of a session that is played, and neither moves nor resumes."""
        row = self._books.desk.row(record.name)
        if row is None or record.moving or record.resuming or row.attempt is not None:
            return False
        if self._books.desk.owner_is_missing(row) or not self._is_played(record, row):
            return False
        kept = None if record.keeper is None else self._kept(record, record.keeper[0])
        if kept is None or record.keeper is None or not self._is_good(record.keeper, row):
            return True
        return record.computed >= kept + record.protect_every

    def _is_played(self, record: SessionRecord, row: Row) -> bool:
        owner = self._books.workers.find(row.owner)
        copies = () if owner is None else owner.copies
        return any((copy.session, copy.phase, copy.epoch) == (record.name, "live", row.epoch) for copy in copies)

    def _is_good(self, keeper: tuple[str, int], row: Row) -> bool:
        """Whether a keeper is still one: it answers, is not about to end, and is not who plays the session.

        What a silent one keeps it may never give: it stays there until another keeps a newer one.
        """
        worker = self._books.workers.find(keeper[0])
        there = self._books.workers.is_there(*keeper)
        return there and worker is not None and not (worker.leaving or worker.suspected) and worker.name != row.owner

    def _kept(self, record: SessionRecord, worker: str) -> int | None:
        """Return the boundary of what a worker keeps of a session; None where it has said nothing of one."""
        found = self._books.workers.find(worker)
        copies = () if found is None else found.copies
        blocks = [copy.block for copy in copies if (copy.session, copy.phase) == (record.name, KEPT)]
        return max(blocks, default=None)

    async def _renew(self, record: SessionRecord) -> None:
        try:
            await self._kept_anew(record)
            said = ""
        except UserError as error:
            said = f"{error.code}: {error}"
            if error.code in HOPELESS:
                self._make_room(record)
            if said != record.unprotected_why:
                self._log("not_protected", {"session": record.name, "code": error.code, "why": str(error)})
        record.unprotected_why = said
        if said:
            await asyncio.sleep(self._books.config.protect_again_s)

    async def _kept_anew(self, record: SessionRecord) -> None:
        """Have one snapshot taken and kept. Raises UserError."""
        row = self._books.desk.row(record.name)
        if row is None:
            return
        owner = self._books.workers.get(row.owner)
        keeper = self._expecting(record, owner)
        nonce, transport, within_s = self._nonce(), self._transport(owner, keeper), self._books.config.snapshot_s
        asked = TakeSnapshot(session=record.name, request=self._asking.number(), transport=transport, nonce=nonce)
        try:
            taken = await self._asking.of_worker(owner, asked, SnapshotTaken, within_s)
            keep = Keep(
                session=record.name,
                request=self._asking.number(),
                snapshot=taken.snapshot,
                transport=transport,
                nonce=nonce,
            )
            record.keeping = True
            kept = await self._asking.of_worker(keeper, keep, Kept, within_s)
        except UserError as error:
            if error.code == "mismatch":
                now = asyncio.get_running_loop().time()
                self._paths.lied((owner.name, keeper.name), transport, now)
            raise
        finally:
            record.keeping = False
            self._books.workers.send(owner.name, DropSnapshot(session=record.name, request=asked.request))
        self._log("snapshot_kept", {"session": record.name, "worker": keeper.name, "block": kept.block})
        self._relief.kept(record, keeper)

    def _relieve(self, record: SessionRecord) -> None:
        """Have others let go for the keeper, unless it ends, is silent, or plays the session by now.

        Then older ones stay until another keeps a newer one.
        """
        if record.keeper is None or not (record.confirmed or record.earlier_keepers):
            return
        row = self._books.desk.row(record.name)
        if row is not None and self._is_good(record.keeper, row):
            self._relief.look(record, row.owner)

    def _expecting(self, record: SessionRecord, owner: WorkerRecord) -> WorkerRecord:
        """Return a keeper that is a holder of the session's lists. Raises UserError where there can be none now."""
        row = self._books.desk.row(record.name)
        if record.keeper is None or row is None or not self._is_good(record.keeper, row) or self._is_full(record):
            keeper = self._chosen(record, owner)
            self._keep_instead(record, (keeper.name, keeper.incarnation))
        else:
            keeper = self._books.workers.get(record.keeper[0])
        is_new = self._kept(record, keeper.name) is None  # also one whose snapshot has become a copy
        if is_new:
            self._books.workers.send(keeper.name, Expect(session=record.name))
        self._holders.refresh()
        if keeper.name not in record.holders:
            raise UserError("The ledger cannot be written now.", code="ledger", status=503)
        next_block = self._books.gateway().next_block(record.name)
        if is_new and next_block is not None:
            self._books.gateway().linked_again(record.name, keeper.name, next_block)
        return keeper

    def _is_full(self, record: SessionRecord) -> bool:
        """Whether a session's keeper has no room for a newer snapshot beside the older: another may have some."""
        keeper = None if record.keeper is None else self._books.workers.find(record.keeper[0])
        return keeper is not None and keeper.slots_free == 0

    def _keep_instead(self, record: SessionRecord, keeper: tuple[str, int]) -> None:
        """Have another keep snapshots. What the earlier one may still come to keep counts until another is kept."""
        before, earlier = record.keeper, list(record.earlier_keepers)
        if before is not None and self._kept(record, before[0]) is None:
            earlier = [one for one in earlier if one.worker != before[0]]
            earlier.append(EarlierKeeper(worker=before[0], incarnation=before[1]))
        record.earlier_keepers = tuple(one for one in earlier if one.worker != keeper[0])
        record.keeper = keeper

    def _chosen(self, record: SessionRecord, owner: WorkerRecord) -> WorkerRecord:
        """Return the worker with most room that computes as the owner does: first of all one that keeps it already.

        It has to hold the newer one beside the older: of those without room one is asked only where nobody has any.
        """
        mine = Environment(fields=owner.hello.environment if owner.hello else {})
        able = [
            worker
            for worker in self._books.workers.ready()
            if worker.name != owner.name
            and not (worker.suspected or worker.leaving)
            and not mine.difference(Environment(fields=worker.hello.environment if worker.hello else {}))
        ]
        keeping = [worker for worker in able if self._kept(record, worker.name) is not None]
        roomy = [worker for worker in able if worker.slots_free > 0]
        if not keeping and not roomy:
            why = f"No other worker has room for a snapshot of {record.name}, and computes as {owner.name} does."
            raise UserError(why, code="no_slot" if able else "no_keeper", status=409)
        best = [worker for worker in keeping if worker.slots_free > 0] or roomy or keeping
        return max(best, key=lambda worker: worker.slots_free)

    def _transport(self, owner: WorkerRecord, keeper: WorkerRecord) -> str:
        rates = [worker.hello.rates if worker.hello else {} for worker in (owner, keeper)]
        wanted = available(self._books.config.transport, *rates)
        now = asyncio.get_running_loop().time()
        return self._paths.choose((owner.name, keeper.name), wanted, now, measured(*rates))

    def _let_go(self, record: SessionRecord) -> None:
        """Have nobody keep a snapshot any more."""
        keeping = [worker.name for worker, _ in self._books.workers.holders(record.name, (KEPT,))]
        keeping += [earlier.worker for earlier in record.earlier_keepers]  # also what is still on its way there
        keeping += [] if record.keeper is None else [record.keeper[0]]
        record.earlier_keepers, record.keeper, record.confirmed = (), None, None
        for name in dict.fromkeys(keeping):
            self._books.workers.send(name, LetGo(session=record.name))
        self._let_pass(record)
        self._holders.refresh()

    def _make_room(self, record: SessionRecord) -> None:
        """Let go of what takes room and saves the session from little: its retired copies, its owner's own snapshot."""
        row = self._books.desk.row(record.name)
        if row is not None:
            self._let_pass(record, but=row.owner)
            if self._kept(record, row.owner) is not None:
                self._books.workers.send(row.owner, LetGo(session=record.name))

    def _let_pass(self, record: SessionRecord, but: str = "") -> None:
        """Let retired copies go that were to stay until a newer snapshot is kept; the owner's own is to, later."""
        for worker in self._books.workers.holding(record.name):
            if worker.name != but:
                self._books.workers.send(worker.name, Pass(session=record.name))
