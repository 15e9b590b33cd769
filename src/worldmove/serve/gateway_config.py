"""What the sessions of a gateway are played with, and how long it waits for whom."""

from dataclasses import dataclass, field

from worldmove.serve.live_config import LiveConfig
from worldmove.serve.resumption import ResumptionConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """Seconds. ``keep_s``: how long a session that nobody watches is kept."""

    live: LiveConfig
    resumption: ResumptionConfig = field(default_factory=ResumptionConfig)
    keep_s: float = 600.0
    spare_s: float = 30.0
    """How long nobody must have watched a session before another may have its room."""
    silent_s: float = 10.0
    """After so long without a word from who controls, its keys are released: its connection may be dead."""
    gap_within_s: float = 2.0
    """How long the result of a move waits for the block that ends its gap."""
    look_every_s: float = 0.5
    """How often workers and unwatched sessions are looked at."""
