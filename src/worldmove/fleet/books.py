"""What every part of a controller reads and writes: who works, what is played, the ledger's rows, what is noted."""

from collections.abc import Callable
from typing import Protocol

from worldmove.errors import LedgerError, ProtocolError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.containment import Containment
from worldmove.fleet.counters import Counters
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.history import History
from worldmove.fleet.notes import Notes, NoteStore
from worldmove.fleet.ports import Gateway
from worldmove.fleet.sessions import SessionTable
from worldmove.fleet.worker_table import WorkerTable
from worldmove.move.ledger_row import Row
from worldmove.move.ledger_rules import Ledger


class BookPorts(Protocol):
    """Where the books are kept."""

    @property
    def ledger(self) -> Ledger: ...

    @property
    def notes(self) -> NoteStore: ...

    @property
    def probe(self) -> Callable[[], None]: ...

    @property
    def counters(self) -> Counters: ...

    @property
    def log(self) -> Callable[[str, dict[str, object]], None]: ...


class Books:
    """One controller's."""

    def __init__(
        self,
        config: FleetConfig,
        ports: BookPorts,
        *,
        on_row: Callable[[Row | None, Row], None],
        on_error: Callable[[str, LedgerError], None],
    ) -> None:
        """``on_row`` hears of every row that has changed, ``on_error`` of a ledger that cannot be written."""
        self.config = config
        self.counters = ports.counters
        self.containment = Containment(ports.counters, ports.log)
        self.workers = WorkerTable(config.workers)
        self.sessions = SessionTable()
        self.notes = Notes(ports.notes)
        self.history = History(self.notes, limit=config.history, log=ports.log)
        self.desk = LedgerDesk(
            ledger=ports.ledger,
            workers=self.workers,
            on_row=on_row,
            on_error=on_error,
            probe=ports.probe,
            on_asked=ports.counters.asked,
        )
        self._gateway: Gateway | None = None

    def attach(self, gateway: Gateway) -> None:
        """Name the gateway, which knows what is shown and which block is next."""
        self._gateway = gateway
        self.desk.attach(gateway)
        self.workers.is_stalled = gateway.is_stalled

    def gateway(self) -> Gateway:
        """Return the gateway. Raises ProtocolError before there is one."""
        if self._gateway is None:
            raise ProtocolError("the controller was started without a gateway")
        return self._gateway
