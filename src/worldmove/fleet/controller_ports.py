"""What the controller is given of the world outside."""

from collections.abc import Callable
from dataclasses import dataclass, field

from worldmove.fleet.counters import Counters
from worldmove.fleet.hosts import Hosts
from worldmove.fleet.notes import MemoryNotes, NoteStore
from worldmove.move.ledger_rules import Ledger


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
