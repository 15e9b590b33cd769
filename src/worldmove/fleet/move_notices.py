"""What is said of a move while it goes on: to the log, to the counters, and to whoever watches the session."""

from collections.abc import Callable
from typing import Protocol

from worldmove.fleet.counters import Counters
from worldmove.fleet.ports import Gateway
from worldmove.fleet.reports import MoveReport
from worldmove.fleet.tries import Ending, Plan
from worldmove.move.admission import Verdict


class NoticePorts(Protocol):
    """Where it is said."""

    @property
    def counters(self) -> Counters: ...

    @property
    def log(self) -> Callable[[str, dict[str, object]], None]: ...


class MoveNotices:
    """Says each thing once, where it belongs."""

    def __init__(self, ports: NoticePorts, gateway: Callable[[], Gateway]) -> None:
        self._ports = ports
        self._gateway = gateway

    def expected(self, plan: Plan, verdict: Verdict) -> None:
        """What the move is expected to cost."""
        self._ports.counters.admitted(verdict)
        fields: dict[str, object] = {"session": plan.session, "attempt": plan.attempt, "epoch": plan.epoch}
        fields |= {"reason": verdict.reason, "pause_s": verdict.expected_s, "horizon_s": verdict.horizon_s}
        self._ports.log("move_expected", fields)

    def phase(self, plan: Plan, phase: str) -> None:
        """A phase of a try begins."""
        fields: dict[str, object] = {
            "attempt": plan.attempt,
            "phase": phase,
            "source": plan.source.name,
            "destination": plan.destination.name,
        }
        self._ports.log("move_phase", {"session": plan.session, "epoch": plan.epoch, **fields})
        self._gateway().moving(plan.session, "phase", fields)

    def ended_try(self, plan: Plan, ending: Ending) -> None:
        """A try has ended. Of a path that brought other bytes than were sent, say which it was, and what it damaged."""
        if ending.reason == "mismatch":
            fields = {"session": plan.session, "attempt": plan.attempt, "epoch": plan.epoch, "detail": ending.detail}
            ends = {"source": plan.source.name, "destination": plan.destination.name, "path": plan.transport}
            self._ports.log("state_arrived_damaged", fields | ends)

    def quarantined(self, plan: Plan, for_s: float) -> None:
        """A path is not taken for a while, and another one instead."""
        ends = {"source": plan.source.name, "destination": plan.destination.name, "path": plan.transport}
        self._ports.log("path_quarantined", {"session": plan.session, "attempt": plan.attempt, "for_s": for_s, **ends})

    def ended(self, made: MoveReport) -> None:
        """A move has ended."""
        self._ports.counters.moved(made)
        fields: dict[str, object] = {"session": made.session, "attempt": made.attempt, "epoch": made.epoch}
        fields |= {"outcome": made.outcome.value, "reason": made.reason, "pause_s": made.pause_s, "tries": made.tries}
        self._ports.log("move_ended", fields)
        self._gateway().moving(made.session, "result", {"report": made})
