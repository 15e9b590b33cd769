"""What a session is begun with: what all of a gateway share, and where this one starts."""

from dataclasses import dataclass, field

from worldmove.engine.base import EngineSpec
from worldmove.serve.limits import PlayLimits
from worldmove.serve.receipts import Receipts
from worldmove.serve.sequencer import Sequencer
from worldmove.serve.tempo import Tempo, TempoConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveConfig:
    """What every session of a gateway shares.

    ``check_blocks``: how many blocks are owed after a change of owner (see ``serve.tempo``, rule 5).
    """

    spec: EngineSpec
    server_life: int
    receipts: Receipts
    rest_after_s: float = 4.0
    engine: str = ""
    """As a worker's configuration names it."""
    account_every: int = 16
    """After how many blocks a session's owner accounts for its state, for the record; 0: never."""
    check_blocks: int = 2
    limits: PlayLimits = field(default_factory=PlayLimits)

    def tempo(self) -> Tempo:
        """Return a session's tempo, before anything was closed."""
        period_s = self.spec.period_s
        return Tempo(TempoConfig(period_s=period_s, lead_s=period_s, rest_after_s=self.rest_after_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a session begins: from its seed, or where a saved one had come to."""

    seed: int
    first_block: int = 0
    number: int = 0
    """Of the newest key change before ``first_block``."""
    down: tuple[str, ...] = ()
    """Keys that were down by then."""

    def sequencer(self) -> Sequencer:
        """Return a sequencer that goes on here."""
        sequencer = Sequencer()
        if self.first_block:
            sequencer.go_on(self.first_block, self.number, self.down)
        return sequencer
