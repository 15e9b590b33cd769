"""The controller: it knows workers, sessions and moves, and carries questions to the ledger (``fleet.ports.Fleet``).

It decides nothing about ownership: that is the ledger's. It sees no frame: those go to the gateway as they are.
"""

from worldmove.errors import LedgerError, WorldMoveError
from worldmove.fleet.books import Books
from worldmove.fleet.caretaker import Caretaker
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.controller_ports import ControllerPorts
from worldmove.fleet.failover_report import FailoverReport
from worldmove.fleet.failovers import Failovers
from worldmove.fleet.forecast import Forecast
from worldmove.fleet.holders import Holders
from worldmove.fleet.inheritance import Inheritance
from worldmove.fleet.leaving import Leavers
from worldmove.fleet.ports import Beginning, Gateway, Owner
from worldmove.fleet.protection import Protection
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.services import Services
from worldmove.fleet.sessions import SessionRecord, view
from worldmove.fleet.switchboard import Switchboard
from worldmove.fleet.views import SessionView, WorkerView
from worldmove.fleet.wish import Wish
from worldmove.fleet.workers import WorkerRecord
from worldmove.fleet.workforce import Workforce
from worldmove.move.ledger_messages import Answer, Operation
from worldmove.move.ledger_row import BY_FAILOVER, Row
from worldmove.move.strategy import Strategy
from worldmove.worker.background import Background
from worldmove.worker.messages import Described, Saved, ToWorker


class Controller:
    """One server's controller. Everything runs in one event loop."""

    def __init__(self, config: FleetConfig, ports: ControllerPorts) -> None:
        self._ports = ports
        self._books = books = Books(config, ports, on_row=self._row_changed, on_error=self._ledger_silent)
        self._background = background = Background(self._failed)
        self._services = Services(books, ports)
        self._holders = Holders(books)
        self._failovers = Failovers(
            sessions=books.sessions,
            gateway=books.gateway,
            counters=ports.counters,
            wall_clock=ports.wall_clock,
            log=ports.log,
        )
        self._caretaker = Caretaker(
            books,
            background,
            ports.log,
            on_failover=self._failovers.granted,
            on_suspected=self._services.asking.suspected,
        )
        self._protection = Protection(
            books, self._services.asking, self._holders, background, nonce=ports.nonce, log=ports.log
        )
        self._leavers = Leavers(
            books, self._services.mover, background, on_leaving=self._protection.look, log=ports.log
        )
        switchboard = Switchboard(
            books=books,
            services=self._services,
            holders=self._holders,
            caretaker=self._caretaker,
            protection=self._protection,
            leavers=self._leavers,
            background=background,
            log=ports.log,
        )
        self._workforce = self._staffed(config, switchboard)
        self._inheritance = self._inherited()
        self._leaves_workers = False

    def _staffed(self, config: FleetConfig, switchboard: Switchboard) -> Workforce:
        return Workforce(
            config=config,
            hosts=self._ports.hosts,
            workers=self._books.workers,
            notes=self._books.notes,
            background=self._background,
            on_message=switchboard.heard,
            on_gone=self._gone,
            log=self._ports.log,
        )

    def _inherited(self) -> Inheritance:
        books = self._books
        return Inheritance(
            workers=books.workers,
            sessions=books.sessions,
            desk=books.desk,
            notes=books.notes,
            history=books.history,
            gateway=books.gateway,
            background=self._background,
            containment=books.containment,
            on_resumed=self._resumed,
            log=self._ports.log,
        )

    # what the gateway asks

    def attach(self, gateway: Gateway) -> None:
        self._books.attach(gateway)

    async def start(self) -> None:
        """Take over what an earlier server has left, and have every worker run. Raises UserError, LedgerError."""
        rows = await self._books.desk.load()
        self._workforce.adopt()
        try:
            await self._inheritance.take_up(rows)
            await self._workforce.start()
        except WorldMoveError:
            # This server could not begin; the worlds that it has found go on for the next one.
            self._leaves_workers = self._workforce.has_adopted
            raise
        self._caretaker.start()

    async def open(
        self,
        session: str,
        seed: int,
        on: str | None = None,
        *,
        beginning: Beginning | None = None,
        protect_every: int | None = None,
    ) -> SessionView:
        return await self._services.opener.open(session, seed, on, beginning, protect_every=protect_every)

    def protect(self, session: str, every: int) -> None:
        self._protection.protect(session, every)

    def fork(self, session: str, block: int) -> None:
        record = self._books.sessions.get(session)
        forks, record.forks = record.forks, (*record.forks, block)
        try:
            self._books.notes.keep_session(self._books.sessions.note_of(record, closing=record.closing))
        except LedgerError:
            record.forks = forks
            raise

    def compared(self, session: str, epoch: int, block: int, *, equal: bool) -> None:
        self._failovers.compared(session, epoch, block, equal=equal)
        if not equal:
            self._caretaker.disown(session, epoch, f"it has replayed block {block} differently than it was shown")

    def malformed(self, session: str, epoch: int, why: str) -> None:
        self._caretaker.disown(session, epoch, why)

    def failovers(self) -> tuple[FailoverReport, ...]:
        return self._failovers.reports()

    async def describe(self, session: str) -> Described:
        return await self._services.asking.describe(session)

    async def save(self, session: str, path: str) -> Saved:
        return await self._services.asking.save(session, path)

    async def open_throwaway(self, session: str, picture: bytes, seed: int) -> SessionView:
        return await self._services.opener.open_throwaway(session, picture, seed)

    async def close(self, session: str) -> None:
        try:
            await self._services.opener.close(session)
        finally:  # also where who asked for it has gone, or the ledger could not forget it
            if self._books.sessions.find(session) is None:
                self._failovers.closed(session)

    def plan(self, session: str, to: str, *, strategy: Strategy | None = None, link: str | None = None) -> Forecast:
        return self._services.mover.plan(session, to, Wish(strategy=strategy, link=link))

    async def move(
        self,
        session: str,
        to: str,
        *,
        damage: bool = False,
        strategy: Strategy | None = None,
        link: str | None = None,
    ) -> MoveReport:
        return await self._services.mover.move(session, to, damage=damage, strategy=strategy, link=link)

    async def cancel(self, session: str) -> MoveReport:
        return await self._services.mover.cancel(session)

    async def ask(self, operation: Operation) -> Answer | None:
        return await self._books.desk.ask(operation)

    def owner(self, session: str) -> Owner | None:
        return self._books.desk.owner(session)

    def send(self, worker: str, message: ToWorker) -> None:
        self._books.workers.send(worker, message)

    def amend(self, told: MoveReport) -> None:
        self._books.history.amend(told)

    def workers(self) -> tuple[WorkerView, ...]:
        return self._books.workers.views()

    def sessions(self) -> tuple[SessionView, ...]:
        return tuple(self._view(record) for record in self._books.sessions.all())

    def moves(self) -> tuple[MoveReport, ...]:
        return self._books.history.reports()

    @property
    def ledger_failure(self) -> LedgerError | None:
        """Why the ledger cannot be written, and no move starts; None while it can."""
        return self._books.desk.failure

    async def stop(self) -> None:
        self._caretaker.stop()
        self._workforce.stopping = self._leavers.stopping = True
        await self._background.stop()
        if not self._leaves_workers:
            await self._workforce.stop()
            await self._inheritance.forget()

    # what follows from a change

    def _view(self, record: SessionRecord) -> SessionView:
        desk = self._books.desk
        row = desk.row(record.name)
        why = self._protection.why_unprotected(record)
        if row is None:
            return view(record, row, unprotected_why=why)
        kept = self._protection.newest(record.name)
        missing, owner = desk.owner_is_missing(row), self._books.workers.find(row.owner)
        return view(
            record,
            row,
            owner_missing=missing,
            owner_reported=owner is not None and owner.reported,
            kept=kept,
            unprotected_why=why,
            next_block=self._next_block(record.name),
        )

    def _next_block(self, session: str) -> int | None:
        """The next block to be shown; after a restart, until the gateway knows, what has left as its holders say."""
        known = self._books.gateway().next_block(session)
        return self._books.workers.left(session) if known is None else known

    def _resumed(self) -> None:
        """A session of an earlier server goes on; or its owner cannot, and another copy has it, or it is lost."""
        self._holders.refresh()
        self._caretaker.look()
        self._protection.look()

    def _row_changed(self, old: Row | None, new: Row) -> None:
        """A row was written: tell the gateway of a new owner, and hint at it to whoever holds a copy."""
        self._services.mover.row_changed(new)
        self._failovers.row_changed(new)
        if self._books.history.row_changed(new):
            self._background.start("note moves", self._note_moves())  # beside: a destination waits for its grant
        owner = self._books.desk.owner(new.session)
        if owner is not None and (old is None or old.epoch != new.epoch):
            record = self._books.sessions.find(new.session)
            if record is not None and new.granted_by != BY_FAILOVER:
                record.failed_why = ""  # an earlier owner's; after a failover it may be the copy's that took over
            self._log("owned", session=new.session, worker=owner.worker, epoch=owner.epoch, attempt=new.granted_by)
            self._books.gateway().owned(new.session, owner)
            self._holders.refresh()
            self._protection.look()
            if self._books.desk.owner_is_missing(new):  # it has died since it was asked for: that was no concern of its
                self._caretaker.look()

    async def _note_moves(self) -> None:
        self._books.history.keep_marks()

    def _gone(self, worker: WorkerRecord) -> None:
        """A worker is dead: its moves and openings hear of it, and its sessions are looked after."""
        self._ports.counters.died(worker.name)
        self._services.died(worker)
        self._holders.refresh()
        self._caretaker.look()
        self._protection.look()

    def _ledger_silent(self, session: str, error: LedgerError) -> None:
        self._ports.counters.ledger_failed()
        self._log("ledger_silent", session=session, why=str(error))
        if not self._workforce.stopping:
            self._background.start("ledger", self._until_the_ledger_works())

    async def _until_the_ledger_works(self) -> None:
        await self._books.desk.until_it_works(self._books.config.recover_every_s)
        self._log("ledger_works")
        self._holders.refresh()
        self._caretaker.note_empty_owners()  # what was granted meanwhile, nobody was told
        await self._services.mover.close_forgotten()

    def _failed(self, task: str, error: BaseException) -> None:
        name, _, session = task.partition(" ")
        self._books.containment.failed(name, session, error)

    def _log(self, event: str, **fields: object) -> None:
        self._ports.log(event, fields)
