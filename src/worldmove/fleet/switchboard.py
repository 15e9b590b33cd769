"""What workers say: each word to whom it concerns. A word in another's name, or of an earlier life, is dropped."""

import asyncio
from collections.abc import Callable

from worldmove.fleet.books import Books
from worldmove.fleet.caretaker import Caretaker
from worldmove.fleet.holders import Holders
from worldmove.fleet.leaving import Leavers
from worldmove.fleet.protection import Protection
from worldmove.fleet.services import Services
from worldmove.fleet.views import WorkerState
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_messages import CommitAttempt, MarkShown
from worldmove.move.messages import CONTROLLER, AnyMoveMessage, Gone, MoveMessage
from worldmove.worker.background import Background
from worldmove.worker.messages import (
    KEPT,
    Alive,
    BlockDone,
    CheckDone,
    Close,
    Copies,
    Copy,
    Described,
    Failed,
    Fault,
    Followed,
    Freed,
    Held,
    Hello,
    Kept,
    Leaving,
    LedgerAnswer,
    LedgerAsk,
    Left,
    NotDone,
    Opened,
    Refused,
    Replayed,
    Reported,
    Saved,
    SnapshotTaken,
    StateDone,
    ToServer,
)

Log = Callable[[str, dict[str, object]], None]
OF_THE_LIVING = Hello | Copies | Reported | Alive | Leaving | BlockDone | StateDone | CheckDone | Followed | Replayed
"""What does not count from a process that is proven dead, though it was still on its way.

It holds nothing, and after a restart a list that it alone held may be closed anew: then its blocks are other ones. What
it told the other end of a move, asked of the ledger, or knew of the past stays true; but for the commit of a move that
may be told to be aborted by then, and that nobody is left to take up.
"""


class Switchboard:
    """One controller's. It decides nothing, and keeps nothing."""

    def __init__(
        self,
        *,
        books: Books,
        services: Services,
        holders: Holders,
        caretaker: Caretaker,
        protection: Protection,
        leavers: Leavers,
        background: Background,
        log: Log,
    ) -> None:
        self._protection = protection
        self._leavers = leavers
        self._books = books
        self._services = services
        self._holders = holders
        self._caretaker = caretaker
        self._background = background
        self._write = log

    def heard(self, worker: WorkerRecord, message: ToServer) -> None:
        """Take a worker's word."""
        if isinstance(message, Copies | Hello | Leaving) and (message.worker, message.incarnation) != (
            worker.name,
            worker.incarnation,
        ):
            self._log("message_dropped", worker=worker.name, claims=message.worker)
        elif not (worker.state is WorkerState.GONE and _is_of_the_living(message)):
            try:
                self._take(worker, message)
            except Exception as error:  # noqa: BLE001  (whatever it is, no other session has a part in it)
                concerns = getattr(message, "session", worker.name)
                self._books.containment.failed(type(message).__name__.lower(), concerns, error)

    def _take(self, worker: WorkerRecord, message: ToServer) -> None:
        match message:
            case BlockDone() | StateDone() | CheckDone() | Followed() | Replayed() | Left():
                self._played(worker, message)
            case Described() | Saved() | SnapshotTaken() | Kept() | NotDone():
                self._services.asking.heard(worker, message)
            case Fault(session=session, task=task, message=why):
                self._books.counters.failed("worker", task)
                self._log("session_failed", worker=worker.name, session=session, task=task, why=why)
            case Held():
                self._books.gateway().held(message.session, message.block, message.changes)
            case Reported() | Alive() | Hello() | Leaving():
                self._of_link(worker, message)
            case LedgerAsk():
                name = f"ledger {worker.name} {message.request}"
                carried = self._background.start(name, self._carry(worker, message))
                self._books.desk.carries(message.operation, carried)
            case MoveMessage():
                self._relay(worker, message)
            case Copies():
                self._holds(worker, message)
            case Opened() | Failed() | Freed():
                self._services.opener.heard(worker, message)
                self._books.gateway().take(worker.name, message)

    def _of_link(self, worker: WorkerRecord, message: Reported | Alive | Hello | Leaving) -> None:
        match message:
            case Leaving():
                self._leavers.leaves(worker)
            case Reported():
                self._reported(worker)
            case Alive():
                worker.take(message)
                self._services.mover.got_on(message.attempts)
                self._caretaker.answered(worker, message.number)
            case Hello():
                self._books.workers.hello(message)
                self._linked_again(message)
                self._log("worker_ready", worker=worker.name, incarnation=worker.incarnation, pid=message.pid)

    def _played(
        self, worker: WorkerRecord, message: BlockDone | StateDone | CheckDone | Followed | Replayed | Left
    ) -> None:
        if isinstance(message, Replayed) and self._is_anothers(worker, message.session, message.epoch):
            self._log("message_dropped", worker=worker.name, claims=f"epoch {message.epoch} of {message.session}")
            return  # a difference would end the copy that plays it
        if isinstance(message, BlockDone | CheckDone | Followed) and message.compute_s > 0:
            now = asyncio.get_running_loop().time()
            self._books.workers.paces.block(worker.device, worker.name, now, message.compute_s)
        if isinstance(message, BlockDone):
            self._fence(worker, message.session, message.epoch)
            if not self._is_anothers(worker, message.session, message.epoch):
                self._protection.computed(message.session, message.block)
        if isinstance(message, StateDone):
            self._accounted(worker, message)
        self._books.gateway().take(worker.name, message)

    def _accounted(self, worker: WorkerRecord, message: StateDone) -> None:
        """An owner has said what its session's state is: that has as many leaves from now on."""
        row, record = self._books.desk.row(message.session), self._books.sessions.find(message.session)
        said = (worker.name, worker.incarnation, message.epoch)
        if record is not None and row is not None and (row.owner, row.incarnation, row.epoch) == said:
            record.accounted(message.epoch, len(message.paths))

    def _is_anothers(self, worker: WorkerRecord, session: str, epoch: int) -> bool:
        """Whether an epoch is, or may come to be, that of another: of what it has played, nobody else's word counts."""
        row = self._books.desk.row(session)
        if row is None or epoch < row.epoch:
            return False  # a throw-away copy's; or one's that was replaced: whoever judges it has the row
        return epoch > row.epoch or (row.owner, row.incarnation) != (worker.name, worker.incarnation)

    def _holds(self, worker: WorkerRecord, message: Copies) -> None:
        self._books.workers.report(message)
        self._holders.refresh()
        self._caretaker.note_empty_owner(worker)
        self._protection.look()
        for copy in message.copies:
            if copy.phase == "live":
                self._fence(worker, copy.session, copy.epoch)

    def _reported(self, worker: WorkerRecord) -> None:
        """A worker has said all that it holds on a new link. What was closed while it could not hear of it goes."""
        for copy in worker.copies:
            if self._has_ended(copy.session):
                if self._books.sessions.find(copy.session) is None:
                    self._log("copy_of_no_session", session=copy.session, worker=worker.name)
                self._books.workers.send(worker.name, Close(session=copy.session))
            else:
                self._books.gateway().left(copy.session, copy.left, copy.block, sends=self._sends(worker, copy))
            if copy.phase == "live":  # it may lack a list, and never send the block that would be refused
                self._fence(worker, copy.session, copy.epoch)
        self._books.workers.has_reported(worker.name, worker.incarnation)
        self._holders.refresh()
        self._caretaker.note_empty_owner(worker)
        self._protection.look()

    def _has_ended(self, session: str) -> bool:
        """Whether a session is unknown, being closed, or lost."""
        record, row = self._books.sessions.find(session), self._books.desk.row(session)
        return record is None or record.closing or (row is not None and row.lost)

    def _sends(self, worker: WorkerRecord, copy: Copy) -> bool:
        """Whether a copy is the owner's, which sends again what is not acknowledged."""
        row = self._books.desk.row(copy.session)
        owns = row is not None and (row.owner, row.incarnation) == (worker.name, worker.incarnation)
        return owns and copy.phase not in ("shadow", "following", "freeing", KEPT)

    def _linked_again(self, hello: Hello) -> None:
        """A worker has made a new link: lists and acknowledgements may have been lost with the old one."""
        for copy in hello.copies:
            self._books.gateway().linked_again(copy.session, hello.worker, copy.block)
        self._services.mover.linked_again(hello.worker)
        self._services.opener.linked_again(hello)
        self._protection.linked_again(hello.worker)

    def _relay(self, worker: WorkerRecord, message: AnyMoveMessage) -> None:
        """Forward what one end says to the other; keep what is meant for the controller."""
        if (message.sender, message.incarnation) != (worker.name, worker.incarnation):
            self._log("message_dropped", worker=worker.name, claims=message.sender)
        elif message.to != CONTROLLER:
            self._books.workers.send(message.to, message)
        elif isinstance(message, Gone):
            self._caretaker.says_gone(worker, message)
        else:
            self._services.mover.heard(message)

    async def _carry(self, worker: WorkerRecord, message: LedgerAsk) -> None:
        """Put a worker's question to the ledger. What has no answer yet gets none: the asker repeats it."""
        operation = message.operation
        asker = (getattr(operation, "worker", worker.name), getattr(operation, "incarnation", worker.incarnation))
        if isinstance(operation, MarkShown) or asker != (worker.name, worker.incarnation):
            self._log("question_dropped", worker=worker.name, session=operation.session)
            return
        record = self._books.sessions.find(operation.session)
        if record is not None and record.ahead is not None:
            return  # whoever asks holds what it has, and asks again: the ledger is behind
        await self._books.desk.ask(
            operation,
            answered=lambda answer: self._books.workers.send(
                worker.name, LedgerAnswer(request=message.request, answer=answer)
            ),
        )

    def _fence(self, worker: WorkerRecord, session: str, epoch: int) -> None:
        """Tell a worker that plays a session in an older epoch than the row's: it slept, and was replaced meanwhile."""
        row = self._books.desk.row(session)
        if row is not None and epoch < row.epoch:
            self._books.workers.send(worker.name, Refused(session=session, epoch=row.epoch))

    def _log(self, event: str, **fields: object) -> None:
        self._write(event, fields)


def _is_of_the_living(message: ToServer) -> bool:
    is_commit = isinstance(message, LedgerAsk) and isinstance(message.operation, CommitAttempt)
    return is_commit or isinstance(message, OF_THE_LIVING)
