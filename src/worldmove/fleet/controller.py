"""The controller: it knows workers, sessions and moves, and carries questions to the ledger (``fleet.ports.Fleet``).

It decides nothing about ownership: that is the ledger's. It sees no frame: those go to the gateway as they are.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from worldmove.errors import LedgerError, ProtocolError, WorldMoveError
from worldmove.fleet.asking import Asking
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.counters import Counters
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.history import History
from worldmove.fleet.hosts import Hosts
from worldmove.fleet.inheritance import Inheritance
from worldmove.fleet.leases import Leases
from worldmove.fleet.mover import Mover
from worldmove.fleet.notes import MemoryNotes, Notes, NoteStore
from worldmove.fleet.opener import Opener
from worldmove.fleet.ports import Beginning, Gateway, Owner
from worldmove.fleet.recovery import Recovery
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.sessions import HOLDING, SessionRecord, SessionTable, view
from worldmove.fleet.views import SessionView, WorkerView
from worldmove.fleet.workers import WorkerRecord, WorkerTable
from worldmove.fleet.workforce import Workforce
from worldmove.move.ledger_messages import Answer, MarkShown, Operation
from worldmove.move.ledger_row import BY_FAILOVER, Row
from worldmove.move.ledger_rules import Ledger
from worldmove.move.messages import CONTROLLER, AnyMoveMessage, Gone, MoveMessage
from worldmove.worker.background import Background
from worldmove.worker.messages import (
    Alive,
    BlockDone,
    CheckDone,
    Close,
    Copies,
    Described,
    Failed,
    Freed,
    Held,
    Hello,
    LedgerAnswer,
    LedgerAsk,
    Left,
    NotDone,
    Opened,
    Refused,
    Reported,
    Saved,
    StateDone,
    ToServer,
    ToWorker,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerPorts:
    """What the controller is given of the world outside."""

    hosts: Hosts
    ledger: Ledger
    wall_clock: Callable[[], float]
    """Seconds since 1970, for reports."""
    salt: Callable[[], str]
    """A short random text, for ids."""
    nonce: Callable[[], bytes]
    """32 secret bytes."""
    counters: Counters
    log: Callable[[str, dict[str, object]], None]
    """An event and its fields, on each change of phase."""
    notes: NoteStore = field(default_factory=MemoryNotes)
    """What a later server is to know."""
    probe: Callable[[], None] = lambda: None
    """Writes to the ledger, and raises LedgerError where that cannot be done."""


class Controller:
    """One server's controller. Everything runs in one event loop."""

    def __init__(self, config: FleetConfig, ports: ControllerPorts) -> None:
        self._ports = ports
        self._gateway: Gateway | None = None
        self._workers = WorkerTable(config.workers)
        self._sessions = SessionTable()
        self._config = config
        self._notes = Notes(ports.notes)
        self._history = History(self._notes, limit=config.history, log=ports.log)
        self._desk = LedgerDesk(
            ledger=ports.ledger,
            workers=self._workers,
            on_row=self._row_changed,
            on_error=self._ledger_silent,
            probe=ports.probe,
            on_asked=ports.counters.asked,
        )
        self._background = Background(self._failed)
        self._recovery = Recovery(
            config=config,
            workers=self._workers,
            desk=self._desk,
            gateway=self._playing,
            why_failed=self._why_failed,
        )
        self._opener = Opener(
            config=config,
            workers=self._workers,
            sessions=self._sessions,
            desk=self._desk,
            notes=self._notes,
            gateway=self._playing,
        )
        self._mover = Mover(
            config=config,
            ports=ports,
            workers=self._workers,
            sessions=self._sessions,
            desk=self._desk,
            gateway=self._playing,
            history=self._history,
        )
        self._asking = Asking(config=config, workers=self._workers, sessions=self._sessions, desk=self._desk)
        self._leases = Leases(
            config=config, workers=self._workers, on_suspected=self._suspected, on_answered=self._answers_again
        )
        self._recovering: dict[str, asyncio.Task[None]] = {}
        self._workforce = Workforce(
            config=config,
            hosts=ports.hosts,
            workers=self._workers,
            notes=self._notes,
            background=self._background,
            on_message=self._heard,
            on_gone=self._gone,
            log=ports.log,
        )
        self._inheritance = Inheritance(
            workers=self._workers,
            sessions=self._sessions,
            desk=self._desk,
            notes=self._notes,
            history=self._history,
            gateway=self._playing,
            background=self._background,
            on_resumed=self._refresh_holders,
            log=ports.log,
        )
        self._leaves_workers = False

    # what the gateway asks

    def attach(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._desk.attach(gateway)

    async def start(self) -> None:
        """Take over what an earlier server has left, and have every worker run. Raises UserError, LedgerError."""
        rows = await self._desk.load()
        self._workforce.adopt()
        try:
            await self._inheritance.take_up(rows)
            await self._workforce.start()
        except WorldMoveError:
            # This server could not begin; the worlds that it has found go on for the next one.
            self._leaves_workers = self._workforce.has_adopted
            raise
        self._recover_orphans()
        self._background.start("leases", self._leases.run())

    async def open(
        self, session: str, seed: int, on: str | None = None, *, beginning: Beginning | None = None
    ) -> SessionView:
        return await self._opener.open(session, seed, on, beginning)

    async def describe(self, session: str) -> Described:
        return await self._asking.describe(session)

    async def save(self, session: str, path: str) -> Saved:
        return await self._asking.save(session, path)

    async def open_throwaway(self, session: str, picture: bytes, seed: int) -> SessionView:
        return await self._opener.open_throwaway(session, picture, seed)

    async def close(self, session: str) -> None:
        await self._opener.close(session)

    async def move(self, session: str, to: str, *, damage: bool = False) -> MoveReport:
        return await self._mover.move(session, to, damage=damage)

    async def cancel(self, session: str) -> MoveReport:
        return await self._mover.cancel(session)

    async def ask(self, operation: Operation) -> Answer | None:
        return await self._desk.ask(operation)

    def owner(self, session: str) -> Owner | None:
        return self._desk.owner(session)

    def send(self, worker: str, message: ToWorker) -> None:
        self._workers.send(worker, message)

    def amend(self, told: MoveReport) -> None:
        self._history.amend(told)

    def workers(self) -> tuple[WorkerView, ...]:
        return tuple(record.view() for record in self._workers.all())

    def sessions(self) -> tuple[SessionView, ...]:
        return tuple(self._view(record) for record in self._sessions.all())

    def moves(self) -> tuple[MoveReport, ...]:
        return self._history.reports()

    @property
    def ledger_failure(self) -> LedgerError | None:
        """Why the ledger cannot be written, and no move starts; None while it can."""
        return self._desk.failure

    async def stop(self) -> None:
        self._workforce.stopping = True
        await self._background.stop()
        if not self._leaves_workers:
            await self._workforce.stop()
            await self._inheritance.forget()

    # what workers say

    def _heard(self, worker: WorkerRecord, message: ToServer) -> None:
        if isinstance(message, Copies | Hello) and (message.worker, message.incarnation) != (
            worker.name,
            worker.incarnation,
        ):
            self._log("message_dropped", worker=worker.name, claims=message.worker)
        else:
            self._take(worker, message)

    def _take(self, worker: WorkerRecord, message: ToServer) -> None:
        match message:
            case BlockDone() | StateDone() | CheckDone() | Left():
                self._played(worker, message)
            case Described() | Saved() | NotDone():
                self._asking.heard(worker, message)
            case Held():
                self._playing().held(message.session, message.block, message.changes)
            case Reported() | Alive():
                self._of_link(worker, message)
            case LedgerAsk():
                self._background.start(f"ledger {worker.name} {message.request}", self._carry(worker, message))
            case MoveMessage():
                self._relay(worker, message)
            case Copies():
                self._holds(worker, message)
            case Opened() | Failed() | Freed():
                self._opener.heard(worker, message)
                self._playing().take(worker.name, message)
            case Hello():
                self._workers.hello(message)
                self._linked_again(message)
                self._log("worker_ready", worker=worker.name, incarnation=worker.incarnation, pid=message.pid)

    def _of_link(self, worker: WorkerRecord, message: Reported | Alive) -> None:
        match message:
            case Reported():
                self._reported(worker)
            case Alive(number=number):
                self._leases.answered(worker, number)

    def _played(self, worker: WorkerRecord, message: BlockDone | StateDone | CheckDone | Left) -> None:
        if isinstance(message, BlockDone):
            self._fence(worker, message.session, message.epoch)
        self._playing().take(worker.name, message)

    def _holds(self, worker: WorkerRecord, message: Copies) -> None:
        self._workers.report(message)
        self._refresh_holders()
        self._note_empty_owner(worker)
        for copy in message.copies:
            if copy.phase == "live":
                self._fence(worker, copy.session, copy.epoch)

    def _reported(self, worker: WorkerRecord) -> None:
        """A worker has said all that it holds on a new link. What was closed while it could not hear of it goes."""
        for copy in worker.copies:
            record = self._sessions.find(copy.session)
            if record is None or record.closing or self._is_lost(copy.session):
                self._workers.send(worker.name, Close(session=copy.session))
            else:
                row = self._desk.row(copy.session)
                owns = row is not None and (row.owner, row.incarnation) == (worker.name, worker.incarnation)
                sends = owns and copy.phase not in ("shadow", "freeing")
                self._playing().left(copy.session, copy.left, copy.block, sends=sends)
            if copy.phase == "live":  # it may lack a list, and never send the block that would be refused
                self._fence(worker, copy.session, copy.epoch)
        self._workers.has_reported(worker.name, worker.incarnation)
        self._refresh_holders()
        self._note_empty_owner(worker)

    def _is_lost(self, session: str) -> bool:
        row = self._desk.row(session)
        return row is not None and row.lost

    def _relay(self, worker: WorkerRecord, message: AnyMoveMessage) -> None:
        """Forward what one end says to the other; keep what is meant for the controller."""
        if (message.sender, message.incarnation) != (worker.name, worker.incarnation):
            self._log("message_dropped", worker=worker.name, claims=message.sender)
        elif message.to != CONTROLLER:
            self._workers.send(message.to, message)
        elif isinstance(message, Gone):
            owner = self._desk.owner(message.session)
            if owner == Owner(worker=worker.name, incarnation=worker.incarnation, epoch=message.owned_epoch):
                self._desk.owner_says_gone(message.session, message.owned_epoch)
                self._recover_orphans()
        else:
            self._mover.heard(message)

    async def _carry(self, worker: WorkerRecord, message: LedgerAsk) -> None:
        """Put a worker's question to the ledger. What has no answer yet gets none: the asker repeats it."""
        operation = message.operation
        asker = (getattr(operation, "worker", worker.name), getattr(operation, "incarnation", worker.incarnation))
        if isinstance(operation, MarkShown) or asker != (worker.name, worker.incarnation):
            self._log("question_dropped", worker=worker.name, session=operation.session)
            return
        answer = await self.ask(operation)
        if answer is not None:
            self._workers.send(worker.name, LedgerAnswer(request=message.request, answer=answer))

    def _view(self, record: SessionRecord) -> SessionView:
        row = self._desk.row(record.name)
        if row is None:
            return view(record, row)
        missing, owner = self._desk.owner_is_missing(row), self._workers.find(row.owner)
        return view(record, row, owner_missing=missing, owner_reported=owner is not None and owner.reported)

    # what follows from a change

    def _row_changed(self, old: Row | None, new: Row) -> None:
        """A row was written: tell the gateway of a new owner, and hint at it to whoever holds a copy."""
        self._mover.row_changed(new)
        if self._history.row_changed(new):
            self._background.start("note moves", self._note_moves())  # beside: a destination waits for its grant
        owner = self._desk.owner(new.session)
        if owner is not None and (old is None or old.epoch != new.epoch):
            record = self._sessions.find(new.session)
            if record is not None and new.granted_by != BY_FAILOVER:
                record.failed_why = ""  # an earlier owner's; after a failover it may be the copy's that took over
            self._log("owned", session=new.session, worker=owner.worker, epoch=owner.epoch, attempt=new.granted_by)
            self._playing().owned(new.session, owner)
            self._refresh_holders()

    async def _note_moves(self) -> None:
        self._history.keep_marks()

    def _fence(self, worker: WorkerRecord, session: str, epoch: int) -> None:
        """Tell a worker that plays a session in an older epoch than the row's: it slept, and was replaced meanwhile."""
        row = self._desk.row(session)
        if row is not None and epoch < row.epoch:
            self._workers.send(worker.name, Refused(session=session, epoch=row.epoch))

    def _why_failed(self, session: str) -> str:
        record = self._sessions.find(session)
        return record.failed_why if record else ""

    def _linked_again(self, hello: Hello) -> None:
        """A worker has made a new link: lists and acknowledgements may have been lost with the old one."""
        for copy in hello.copies:
            self._playing().linked_again(copy.session, hello.worker, copy.block)
        self._mover.linked_again(hello.worker)

    def _refresh_holders(self) -> None:
        """Tell the gateway which workers need a session's lists, whenever that has changed."""
        for record in self._sessions.all():
            row = self._desk.row(record.name)
            if row is None or row.lost or record.resuming:
                continue
            held = {worker.name: worker.incarnation for worker, _ in self._workers.holders(record.name, HOLDING)}
            holders = tuple(dict.fromkeys((row.owner, *held)))
            if holders != record.holders and self._note_holders(record, {row.owner: row.incarnation, **held}):
                record.holders = holders
                self._playing().holders(record.name, holders)

    def _note_holders(self, record: SessionRecord, holders: dict[str, int]) -> bool:
        """Note who may hold lists, before they are sent any. False where that cannot be noted and is more than is."""
        noted, record.noted = record.noted, tuple(holders.items())
        if noted == record.noted:
            return True
        try:
            self._notes.keep_session(self._sessions.note_of(record, closing=record.closing))
        except LedgerError as error:
            self._desk.fail(record.name, error)
            added = [holder for holder in record.noted if holder not in noted]
            record.noted = noted
            return not added
        return True

    def _note_empty_owner(self, worker: WorkerRecord) -> None:
        """Whoever reports no copy of what it owns has none: it reports a copy before it asks for an epoch to play.

        It was granted an epoch after it had let its copy go, and no word of it may have reached it. This needs the
        order of a link (``fleet.hosts.Hosts``): a report that came after the question it was sent before would be
        taken for the news that the copy is gone.
        """
        held = {copy.session: None for copy in worker.copies}
        for record in self._sessions.all():
            row = self._desk.row(record.name)
            owns = row is not None and (row.owner, row.incarnation) == (worker.name, worker.incarnation)
            if row is not None and owns and not record.closing and record.name not in held:
                self._desk.owner_says_gone(record.name, row.epoch)
        self._recover_orphans()

    def _recover_orphans(self) -> None:
        for record in self._sessions.all():
            row = self._desk.row(record.name)
            orphan = row is not None and not row.lost and self._desk.owner_is_missing(row)
            running = self._recovering.get(record.name)
            if orphan and not self._workforce.stopping and (running is None or running.done()):
                task = self._background.start(f"recover {record.name}", self._recovery.recover(record.name))
                self._recovering[record.name] = task

    def _suspected(self, worker: WorkerRecord) -> None:
        """A worker's lease has lapsed: what may be done for its sessions without it is done."""
        self._log("worker_suspected", worker=worker.name, incarnation=worker.incarnation)
        self._recover_orphans()

    def _answers_again(self, worker: WorkerRecord) -> None:
        self._log("worker_answers_again", worker=worker.name, incarnation=worker.incarnation)

    def _gone(self, worker: WorkerRecord) -> None:
        """A worker is dead: its moves and openings hear of it, and its sessions are looked after."""
        self._ports.counters.died(worker.name)
        self._mover.died(worker.name)
        self._asking.died(worker.name, worker.incarnation)
        self._opener.died(worker.name, worker.incarnation)
        self._refresh_holders()
        self._recover_orphans()

    def _playing(self) -> Gateway:
        if self._gateway is None:
            raise ProtocolError("the controller was started without a gateway")
        return self._gateway

    def _ledger_silent(self, session: str, error: LedgerError) -> None:
        self._ports.counters.ledger_failed()
        self._log("ledger_silent", session=session, why=str(error))
        if not self._workforce.stopping:
            self._background.start("ledger", self._until_the_ledger_works())

    async def _until_the_ledger_works(self) -> None:
        await self._desk.until_it_works(self._config.recover_every_s)
        self._log("ledger_works")
        self._refresh_holders()

    def _failed(self, task: str, error: BaseException) -> None:
        self._ports.log("task_failed", {"task": task, "error": repr(error)})

    def _log(self, event: str, **fields: object) -> None:
        self._ports.log(event, fields)
