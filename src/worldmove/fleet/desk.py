"""The ledger's desk in the server: every operation passes here, with the facts that only the server knows.

The desk keeps each row as it was after the last operation. Nobody else writes the ledger while this server
lives, so a row read here is the row. After an operation that failed it may not be: whether it was done is not
known, so the row is read anew before anything else is done with it.

A ledger that has failed is left alone until it can be written again (``until_it_works``): every question meanwhile
is silence, and every world plays on.
"""

import asyncio
from collections.abc import Callable

from worldmove.errors import LedgerError
from worldmove.fleet.ports import Gateway, Owner
from worldmove.fleet.worker_table import WorkerTable
from worldmove.move.ledger_messages import Answer, CommitAttempt, Failover, Operation
from worldmove.move.ledger_row import Facts, Row
from worldmove.move.ledger_rules import Ledger
from worldmove.worker.messages import SendAgain


class LedgerDesk:
    """Rows, facts, and one operation at a time. ``on_row`` hears of every row that has changed."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        workers: WorkerTable,
        on_row: Callable[[Row | None, Row], None],
        on_error: Callable[[str, LedgerError], None],
        probe: Callable[[], None] = lambda: None,
        on_asked: Callable[[Operation, Answer | None, float], None] = lambda operation, answer, took_s: None,
    ) -> None:
        """``on_asked`` hears of every operation, its answer, and what it took in seconds."""
        self._ledger = ledger
        self._workers = workers
        self._on_row = on_row
        self._on_error = on_error
        self._probe = probe
        self._failure: LedgerError | None = None
        self._stale: dict[str, None] = {}
        """Sessions whose rows an operation may have changed or not."""
        self._on_asked = on_asked
        self.took_s: float | None = None
        """What the ledger took for the last operation that it has done; None before the first."""
        self._lock = asyncio.Lock()
        self._rows: dict[str, Row] = {}
        self._commits: dict[str, set[asyncio.Task[None]]] = {}
        """What carries the commits of an attempt here, until each has been answered, or not."""
        self._closed: dict[str, int] = {}
        self._gone: dict[str, int] = {}
        self._gateway: Gateway | None = None
        self.poll = 0
        """The number of the newest poll that every worker has answered, or died in."""

    def attach(self, gateway: Gateway) -> None:
        """Name the gateway, which knows the next block."""
        self._gateway = gateway

    async def load(self) -> tuple[Row, ...]:
        """Read every row that an earlier server has left."""
        for row in await self._ledger.rows():
            self._rows[row.session] = row
        return tuple(self._rows.values())

    @property
    def failure(self) -> LedgerError | None:
        """Why the ledger cannot be written; None while it can."""
        return self._failure

    async def until_it_works(self, every_s: float) -> None:
        """Try a ledger that has failed until it can be written again."""
        while self._failure is not None:
            await asyncio.sleep(every_s)
            await self.check()

    async def check(self) -> LedgerError | None:
        """Try the ledger now, and return why it cannot be written."""
        async with self._lock:
            try:
                self._probe()
                for session in tuple(self._stale):
                    await self._read_again(session)
                self._failure = None
            except LedgerError as error:
                self.fail("", error)
        return self._failure

    async def _read_again(self, session: str) -> None:
        old, new = self._rows.get(session), await self._ledger.row(session)
        del self._stale[session]
        if new is not None and old is not None and new != old:
            self._rows[session] = new
            self._on_row(old, new)

    def fail(self, session: str, error: LedgerError) -> None:
        """The ledger's file could not be written: leave it alone until it can be."""
        if self._failure is None:
            self._on_error(session, error)
        self._failure = error

    def row(self, session: str) -> Row | None:
        return self._rows.get(session)

    def owner(self, session: str) -> Owner | None:
        """Return whose frames may be shown. None if the session is unknown or lost."""
        row = self._rows.get(session)
        if row is None or row.lost:
            return None
        return Owner(worker=row.owner, incarnation=row.incarnation, epoch=row.epoch)

    async def create(self, row: Row) -> bool:
        """Keep a new session's row. False where the session has one."""
        async with self._lock:
            if self._failure is not None:
                raise self._failure
            begun = asyncio.get_running_loop().time()
            if not await self._ledger.create(row):
                return False
            self.took_s = asyncio.get_running_loop().time() - begun
            self._rows[row.session] = row
        self._on_row(None, row)
        return True

    async def forget(self, session: str) -> None:
        """Drop an ended session's row."""
        async with self._lock:
            for known in (self._rows, self._closed, self._gone, self._stale):
                known.pop(session, None)
            await self._ledger.forget(session)

    async def ask(
        self, operation: Operation, answered: Callable[[Answer], None] = lambda answer: None
    ) -> Answer | None:
        """Put one operation to the ledger. None: a fact is missing, it does not answer, or there is no such session.

        ``answered`` hears of an answer before anybody hears of the row: who has asked may stand still for it.
        """
        async with self._lock:
            old = self._rows.get(operation.session)
            answer = await self._put(operation)
        try:
            if answer is not None:
                answered(answer)
        finally:
            self._tell(old, operation.session)  # whoever could not be answered asks again; a row is told of once
        return answer

    def carries(self, operation: Operation, carried: "asyncio.Task[None]") -> None:
        """A worker's question is on its way through here, perhaps behind others, until a task has ended."""
        if isinstance(operation, CommitAttempt):
            tasks = self._commits.setdefault(operation.attempt, set())
            tasks.add(carried)
            carried.add_done_callback(lambda task: self._carried(operation.attempt, task))

    def _carried(self, attempt: str, task: "asyncio.Task[None]") -> None:
        tasks = self._commits[attempt]
        tasks.discard(task)
        if not tasks:
            del self._commits[attempt]

    def may_yet_commit(self, attempt: str) -> bool:
        """Whether an attempt's commit is under way here: whatever has become of its asker, it may yet be granted."""
        return attempt in self._commits

    async def fail_over(self, operation: Failover) -> Answer | None:
        """Have the gateway refuse the old epoch's frames, then ask. Denied, they are shown again."""
        async with self._lock:
            old = self._rows.get(operation.session)
            if self._failure is not None:
                return None
            if self._gateway is not None:
                self._gateway.close_epoch(operation.session, operation.epoch)
                self._closed[operation.session] = operation.epoch
            answer = await self._put(operation)
            if answer is not None:
                self._reopen(operation.session)
        self._tell(old, operation.session)
        return answer

    async def settle(self, session: str) -> None:
        """Learn whether a failover that got no answer was done; if it was not, show the old epoch's frames again."""
        async with self._lock:
            old = self._rows.get(session)
            if self._failure is not None:
                return
            try:
                new = await self._ledger.row(session)
            except LedgerError as error:
                self.fail(session, error)
                return
            if new is not None:
                self._rows[session] = new
                self._reopen(session)
        self._tell(old, session)

    def is_unsettled(self, row: Row) -> bool:
        """Whether the gateway refuses the owner's frames, for a failover of which nothing is known yet."""
        return self._closed.get(row.session) == row.epoch

    async def _put(self, operation: Operation) -> Answer | None:
        """Ask, and keep the row that came of it."""
        row = self._rows.get(operation.session)
        if row is None or self._failure is not None:
            return None
        clock = asyncio.get_running_loop().time
        begun = clock()
        try:
            new, answer = await self._ledger.ask(operation, self._facts(row))
        except LedgerError as error:
            self._stale[operation.session] = None
            self.fail(operation.session, error)
            self._on_asked(operation, None, clock() - begun)
            return None  # silence, for whoever asked: it may or may not have been done
        self.took_s = clock() - begun
        self._on_asked(operation, answer, self.took_s)
        if new is not None:
            self._rows[operation.session] = new
        return answer

    def _tell(self, old: Row | None, session: str) -> None:
        new = self._rows.get(session)
        if new is not None and new != old:
            self._on_row(old, new)

    def _reopen(self, session: str) -> None:
        """The row is known: an epoch that was closed and not replaced is its owner's still, and so are its frames."""
        row = self._rows[session]
        if self._gateway is not None and self.is_unsettled(row):
            del self._closed[session]
            self._gateway.open_epoch(session, row.epoch)
            self._workers.send(row.owner, SendAgain(session=session))

    def next_block(self, session: str) -> int | None:
        """Return the next block that the gateway would show; None where that is not known."""
        return self._gateway.next_block(session) if self._gateway else None

    def owner_says_gone(self, session: str, epoch: int) -> None:
        """The owner in ``epoch`` holds no copy of what it owns."""
        self._gone[session] = max(epoch, self._gone.get(session, 0))

    def is_gone(self, worker: str, incarnation: int) -> bool:
        """Whether a worker's incarnation is proven dead."""
        return self._workers.is_gone(worker, incarnation)

    def is_suspected(self, worker: str, incarnation: int) -> bool:
        """Whether a worker's incarnation does not answer. Proves nothing."""
        return self._workers.is_suspected(worker, incarnation)

    def answers(self, worker: str, incarnation: int) -> bool:
        """Whether a worker's incarnation is neither dead nor silent, as far as is known."""
        return not (self.is_gone(worker, incarnation) or self.is_suspected(worker, incarnation))

    def owner_is_suspected(self, row: Row) -> bool:
        """Whether the owner does not answer. Proves nothing."""
        return self._workers.is_suspected(row.owner, row.incarnation)

    def owner_is_missing(self, row: Row) -> bool:
        """Whether nobody plays the session as far as is known: its owner is gone, or suspected."""
        return self.owner_is_gone(row) or self.owner_is_suspected(row)

    def owner_is_gone(self, row: Row) -> bool:
        """Whether the owner's copy is proven dead."""
        return self._workers.is_gone(row.owner, row.incarnation) or self._gone.get(row.session) == row.epoch

    def _facts(self, row: Row) -> Facts:
        return Facts(
            owner=row.owner,
            incarnation=row.incarnation,
            epoch=row.epoch,
            owner_gone=self.owner_is_gone(row),
            owner_suspected=self.owner_is_suspected(row),
            next_block=self.next_block(row.session),
            closed_epoch=self._closed.get(row.session),
            poll=self.poll,
        )
