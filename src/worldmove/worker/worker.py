"""One device's worker: what the server says goes to the copy, or to the driver of the move, that it concerns."""

from collections.abc import Callable
from dataclasses import dataclass

from worldmove.engine.base import KeyChange
from worldmove.errors import EngineFailed, MessageError
from worldmove.move.ledger_messages import Yours
from worldmove.move.messages import MoveMessage
from worldmove.move.sayable import said
from worldmove.state.kits import kit_of
from worldmove.worker.asides import answer
from worldmove.worker.background import Background
from worldmove.worker.beats import Beats
from worldmove.worker.containment import Containment
from worldmove.worker.copies import CopyTable
from worldmove.worker.drivers import Drivers
from worldmove.worker.leaving import getting_away
from worldmove.worker.ledger_client import LinkLedger
from worldmove.worker.message import MAX_COPIES
from worldmove.worker.messages import (
    Acknowledge,
    Alive,
    Beat,
    Close,
    Describe,
    DropSnapshot,
    Expect,
    Failed,
    Freed,
    GiveUp,
    Hello,
    Inputs,
    Keep,
    Leaving,
    LedgerAnswer,
    LetGo,
    NotDone,
    Open,
    Pass,
    Poll,
    Refused,
    Reported,
    Revive,
    Save,
    SendAgain,
    Shutdown,
    TakeOver,
    TakeSnapshot,
    ToWorker,
)
from worldmove.worker.meter import HIGH
from worldmove.worker.opening import open_session
from worldmove.worker.protecting import Protecting
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.slots import SlotPool, SlotState
from worldmove.worker.tools import Tools

ELSEWHERE = (CopyPhase.SHADOW, CopyPhase.FOLLOWING, CopyPhase.SUPERSEDED, CopyPhase.RETIRED)
"""Phases of a copy whose session another worker plays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which worker this is, and in which process."""

    worker: str
    incarnation: int
    pid: int
    environment: dict[str, str]
    rates: dict[str, float]
    birth: str = ""


class Worker:
    """Dispatches. It computes nothing: copies are played by ``loop``, moves are driven by ``move``."""

    def __init__(
        self,
        *,
        identity: Identity,
        pool: SlotPool,
        tools: Tools,
        copies: CopyTable,
        drivers: Drivers,
        protecting: Protecting,
        ledger: LinkLedger,
        beats: Beats,
        background: Background,
        containment: Containment,
        on_shutdown: Callable[[], None],
    ) -> None:
        self._identity = identity
        self._pool = pool
        self.tools = tools
        self.copies = copies
        self._drivers = drivers
        self._protecting = protecting
        self._ledger = ledger
        self._beats = beats
        self._background = background
        self._containment = containment
        self._on_shutdown = on_shutdown
        self._server_life = 0
        self._is_leaving = False
        copies.on_failed = self._engine_failed
        containment.end_part = self._end_part

    def hello(self) -> Hello:
        """Return what this worker says first on every new link."""
        return Hello(
            worker=self._identity.worker,
            incarnation=self._identity.incarnation,
            pid=self._identity.pid,
            environment=self._identity.environment,
            num_slots=len(self._pool),
            arena_bytes=self._pool.arena_bytes,
            copies=self.copies.held(),
            rates=self._identity.rates,
            birth=self._identity.birth,
            device=kit.device_id if (kit := kit_of(self.tools.engine.spec.device)) else "",
        )

    def joined(self) -> None:
        """There is a new link, perhaps to a new server: say all that is held, and send again what may be lost."""
        self._beats.begin_anew()
        self.tools.send(self.hello())
        self.copies.tell_what_is_held()
        self.copies.send_again()
        self.tools.send(Reported(worker=self._identity.worker, incarnation=self._identity.incarnation))
        self._protecting.begin_anew()
        if self._is_leaving:
            self._say_leaving()

    async def leave(self, within_s: float) -> None:
        """Ask for this worker's sessions to be moved away, and end: when they are, or when none has gone for a time."""
        self._is_leaving = True
        self._say_leaving()
        await getting_away(lambda: len(self.copies.held()), within_s)
        self._on_shutdown()

    def _say_leaving(self) -> None:
        self.tools.send(Leaving(worker=self._identity.worker, incarnation=self._identity.incarnation))

    def take(self, message: ToWorker) -> None:
        """Do, or begin, what a message asks for."""
        concerns = message.answer if isinstance(message, LedgerAnswer) else message
        session = getattr(concerns, "session", None)
        if session is None:
            self._take(message)
        else:
            try:
                self._take(message)
            except Exception as error:  # noqa: BLE001  (whatever it is, no other session has a part in it)
                self._containment.failed(type(message).__name__.lower(), session, error)

    def _take(self, message: ToWorker) -> None:
        match message:
            case Inputs():
                self._inputs(message)
            case Acknowledge():
                self._acknowledge(message)
            case MoveMessage():
                self._drivers.take(message)
            case LedgerAnswer():
                self._answered(message)
            case Open() | Close() | Describe() | Save():
                self._begin(message)
            case TakeOver() | Refused() | SendAgain() | GiveUp() | Pass():
                self._of_ownership(message)
            case TakeSnapshot() | DropSnapshot() | Expect() | Keep() | LetGo() | Revive():
                self._protecting.take(message)
            case Beat() | Poll():
                self._reply(message)
            case Shutdown():
                self._on_shutdown()

    def _answered(self, message: LedgerAnswer) -> None:
        answer = message.answer
        if not self._ledger.take(message) and isinstance(answer, Yours):
            self._drivers.granted_unasked(answer.session, answer.epoch)

    def _begin(self, message: Open | Close | Describe | Save) -> None:
        """Begin what takes a while, beside everything else."""
        match message:
            case Open():
                name, work = f"open {message.session}", self._open(message)
                self._background.start(name, work, contained=lambda error: self._unopened(message, error))
            case Close():
                self._containment.start("close", message.session, self._close(message))
            case Describe() | Save():
                name, answer = f"answer {message.request}", self._answer(message)
                self._background.start(name, answer, contained=lambda error: self._unanswered(message, error))

    def _of_ownership(self, message: TakeOver | Refused | SendAgain | GiveUp | Pass) -> None:
        match message:
            case GiveUp():
                self._give_up(message)
            case Pass(session=session, only=only):
                if (copy := self.copies.get(session)) is not None and self._beats.is_in_time(only):
                    copy.let_pass()
            case TakeOver():
                self._drivers.taken_over(message.session, message.epoch, message.block)
            case Refused():
                self._drivers.refused(message.session, message.epoch)
            case SendAgain():
                self.copies.send_again(message.session)

    def _reply(self, message: Beat | Poll) -> None:
        match message:
            case Beat(number=number, block_s=block_s):
                self._beats.came(number)
                self.tools.meter.told(block_s)
                self.tools.send(self._alive(number))
            case Poll(poll=number):
                self.copies.report(number)

    def _alive(self, number: int) -> Alive:
        meter, ages = self.tools.meter, self.tools.courtesy.ages()
        return Alive(
            number=number,
            block_s=meter.block_s(HIGH),
            turn_s=meter.turn_s,
            spare_s=meter.spare_s,
            ages_s=ages[:MAX_COPIES],
        )

    def _inputs(self, message: Inputs) -> None:
        changes = tuple(KeyChange(number=c.number, key=c.key, down=c.down) for c in message.changes)
        self.copies.kept.put(message.session, message.block, changes)
        copy = self.copies.get(message.session)
        if copy is not None:
            copy.inputs.put(message.block, changes)
            if message.account and message.block >= copy.next_block:
                copy.accounts.ask(message.block)
            copy.look_again()

    def _engine_failed(self, copy: SessionCopy, error: EngineFailed) -> None:
        """An engine has raised in mid-step: this session cannot go on here, and the others do.

        One that only followed goes on where it is played; its move's driver finds out.
        """
        if copy.phase is CopyPhase.FOLLOWING:
            return
        self.tools.send(Failed(session=copy.name, code=error.code, message=said(str(error))))
        self._drivers.failed(copy, str(error))

    async def _end_part(self, session: str, why: str) -> None:
        """This session's conduct has failed here: it goes on elsewhere, or nowhere, and the others go on."""
        copy = self.copies.get(session)
        if copy is not None and (copy.phase not in ELSEWHERE or _is_opening(copy)):
            self.tools.send(Failed(session=session, code="internal", message=why))
        await self._drivers.break_off(session, copy, why)

    def _unopened(self, message: Open, error: BaseException) -> None:
        """An opening has failed, perhaps before there was a copy."""
        if self.copies.get(message.session) is None:
            self.tools.send(Failed(session=message.session, code="internal", message=said(f"it failed: {error!r}")))
        self._containment.failed("open", message.session, error)

    def _unanswered(self, message: Describe | Save, error: BaseException) -> None:
        """A question has failed, which has no part in how its session is played."""
        why = self._containment.report("answer", message.session, error)
        refusal = NotDone(session=message.session, request=message.request, code="internal", message=said(why))
        self.tools.send(refusal)

    def _acknowledge(self, message: Acknowledge) -> None:
        """Note what has left the gateway, unless an earlier server says so: the present one may not know of it."""
        if message.server_life < self._server_life:
            return
        self.copies.kept.acknowledge(message.session, message.block)
        copy = self.copies.get(message.session)
        if copy is not None:
            self._server_life = message.server_life
            self.tools.on_their_way.left(message.session, message.block)
            copy.acknowledge(message.block)

    async def _open(self, message: Open) -> None:
        answer = await open_session(message, self.copies, self.tools)
        copy = self.copies.get(message.session)
        if copy is not None and copy.phase is CopyPhase.LIVE and not isinstance(answer, Failed):
            self._drivers.play(copy)
        self.tools.send(answer)

    async def _answer(self, message: Describe | Save) -> None:
        """Answer; what is longer than a message may be cannot be told, and ends nothing."""
        try:
            self.tools.send(await answer(message, self.copies, self.tools))
        except MessageError as error:
            why = f"What there is to say of {message.session} is too long: {error}."
            refusal = NotDone(session=message.session, request=message.request, code=error.code, message=said(why))
            self.tools.send(refusal)

    def _give_up(self, message: GiveUp) -> None:
        """This copy has replayed other frames than were shown: it is freed, as one whose engine has raised."""
        copy = self.copies.get(message.session)
        if copy is None or copy.epoch != message.epoch or copy.phase not in (CopyPhase.LIVE, CopyPhase.FROZEN):
            return
        self._engine_failed(copy, EngineFailed(message.why))
        copy.end()

    async def _close(self, message: Close) -> None:
        await self._protecting.close(message.session)
        copy = self.copies.get(message.session)
        if copy is not None:
            copy.end()
            await self._drivers.end(message.session)
            await copy.ended.wait()
        self.tools.send(Freed(session=message.session))


def _is_opening(copy: SessionCopy) -> bool:
    """Whether a copy is of a session that is being opened here, and not moved."""
    return copy.phase is CopyPhase.SHADOW and copy.slot.state is SlotState.BOUND
