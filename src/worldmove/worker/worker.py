"""One device's worker: what the server says goes to the copy, or to the driver of the move, that it concerns."""

from collections.abc import Callable
from dataclasses import dataclass

from worldmove import __version__
from worldmove.engine.base import KeyChange
from worldmove.move.ledger_messages import Yours
from worldmove.move.messages import MoveMessage
from worldmove.state.kits import kit_of
from worldmove.worker.beats import Beats
from worldmove.worker.containment import Containment
from worldmove.worker.copies import CopyTable
from worldmove.worker.drivers import Drivers
from worldmove.worker.endings import Endings
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
    GiveUp,
    Hello,
    Inputs,
    Keep,
    Leaving,
    LedgerAnswer,
    LetGo,
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
from worldmove.worker.protecting import Protecting
from worldmove.worker.requests import Requests
from worldmove.worker.slots import SlotPool
from worldmove.worker.tools import Tools


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
        requests: Requests,
        endings: Endings,
        ledger: LinkLedger,
        beats: Beats,
        containment: Containment,
        on_shutdown: Callable[[], None],
    ) -> None:
        self._identity = identity
        self._pool = pool
        self.tools = tools
        self.copies = copies
        self._drivers = drivers
        self._protecting = protecting
        self._requests = requests
        self._endings = endings
        self._ledger = ledger
        self._beats = beats
        self._containment = containment
        self._on_shutdown = on_shutdown
        self._server_life = 0
        self._is_leaving = False
        self._num_heard = 0
        self._num_led = 0
        """Beats that said that its sessions are being moved away."""

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
            device=kit.device_id if (kit := kit_of(self.tools.spec.device)) else "",
            version=__version__,
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
        """Ask for this worker's sessions to be moved away; end when they are, or when nobody is at it for a time."""
        self._is_leaving = True
        self._say_leaving()
        await getting_away(lambda: len(self.copies.held()), lambda: self._num_heard, lambda: self._num_led, within_s)
        self._on_shutdown()

    def _say_leaving(self) -> None:
        self.tools.send(Leaving(worker=self._identity.worker, incarnation=self._identity.incarnation))

    def take(self, message: ToWorker) -> None:
        """Do, or begin, what a message asks for."""
        self._num_heard += 1
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
                self._requests.take(message)
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

    def _of_ownership(self, message: TakeOver | Refused | SendAgain | GiveUp | Pass) -> None:
        match message:
            case GiveUp():
                self._endings.give_up(message)
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
            case Beat(number=number, block_s=block_s, empties=empties):
                self._beats.came(number)
                self._num_led += empties
                self.tools.meter.told(block_s)
                self.copies.report_changes()  # what came before this beat in the same burst is done, and said first
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
            num_done=self.tools.progress.num_done,
            num_pulled=self.tools.progress.num_pulled,
            taken_s=self.tools.turns.taken_s,
            at_block=self.tools.turns.is_at_block,
            attempts=self.tools.progress.attempts(),
            num_lines_dropped=self.tools.num_lines_dropped(),
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
