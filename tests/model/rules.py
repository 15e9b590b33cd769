"""What decides in the model: the product's own tables and rules, each of which a mutation may replace."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from worldmove.fleet.orphans import num_current, successor, that_may_go_on, to_revive
from worldmove.move.answers import destination_event, source_event
from worldmove.move.ledger_messages import Answer, Operation
from worldmove.move.ledger_row import Facts, Row
from worldmove.move.ledger_rules import decide
from worldmove.move.protocol import DESTINATION_STEPS, SOURCE_STEPS
from worldmove.serve.show import judge

Steps = Mapping[tuple[Any, Any], tuple[Any, Any]]
Decide = Callable[[Row, Operation, Facts], tuple[Row, Answer | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The product, as it is shipped; and its drivers' guards, which are written out in the model."""

    source_steps: Steps = field(default_factory=lambda: SOURCE_STEPS)
    destination_steps: Steps = field(default_factory=lambda: DESTINATION_STEPS)
    decide: Decide = decide
    judge: Callable[..., Any] = judge
    source_event: Callable[..., Any] = source_event
    destination_event: Callable[..., Any] = destination_event
    successor: Callable[..., Any] = successor
    that_may_go_on: Callable[..., Any] = that_may_go_on
    num_current: Callable[..., int] = num_current
    to_revive: Callable[..., Any] = to_revive

    proves_when_acknowledged: bool = True
    """The proof is not sent before the gateway has taken every frame up to the boundary."""
    closes_window: bool = True
    """The write window is closed before the verifying pass."""
    keeps_what_has_left: bool = True
    """A snapshot counts as kept only once every block before it has left the gateway."""
    revived_waits_for_failover: bool = True
    """A copy that was installed from a snapshot takes the session by a failover alone, which says what to replay."""
    quarantines: bool = True
    """A discarded slot is handed on only when its transport's handle is released."""
    frees_when_passed: bool = True
    """A retired copy is freed when a block past its boundary has left; else when its epoch's record says shown."""
    freezes_when_replayed: bool = True
    """A copy that took over is not frozen before it has replayed the log."""
    says_gone: bool = True
    """Who is told that it owns what it holds no copy of says so."""
    reads_reports: bool = True
    """An owner that reports no copy of what it owns is taken at its word."""
    gone_needs_incarnation: bool = True
    """A word that a worker is empty is taken for its own incarnation and epoch only."""
    suspicion_is_death: bool = False
    """Whether a lapsed lease is taken for a proof of death when a session is to be lost."""
    reclaims_unasked: bool = False
    """Whether the controller reclaims for the source of an attempt that it believes to hold a copy."""
    restart_shows_at_once: bool = False
    """Whether a restarted server shows blocks before it was told what the next one is."""
    restart_asks_owner_only: bool = False
    """Whether a restarted server goes by the owner's report alone, and not by the client's last block as well."""
    shown_survives_restart: bool = True
    """Whether the record that an epoch was shown is durable."""
    old_frames_matter: bool = False
    """Whether a frame of an epoch that is over can still be shown (the model forgets it otherwise)."""
    after_lost_write: Callable[[Row, tuple[Any, ...]], Row] | None = None
    """What a ledger that has lost its last write makes of its row and of the reports (epoch, worker, incarnation)."""


SHIPPED = Rules()
