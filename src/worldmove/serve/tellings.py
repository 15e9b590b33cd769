"""What is told of a move to whoever watches its session: its phases, and, when its gap is over, its result."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from typing import Any

from worldmove.fleet.ports import Fleet
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.views import WorkerState
from worldmove.serve.live import Live
from worldmove.serve.metrics import Metrics
from worldmove.serve.play_messages import MovePhase
from worldmove.serve.results import MOVED, result_of, visitor_phase

WITH_GAP = (Outcome.COMMITTED, Outcome.ABORTED)
"""Outcomes of moves in which the world stood still."""


class Tellings:
    """One gateway's. ``spawn`` runs what waits for a gap to be over."""

    def __init__(
        self,
        *,
        lives: Mapping[str, Live],
        fleet: Fleet,
        metrics: Metrics,
        gap_within_s: float,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        """``lives``: the sessions that are here. ``gap_within_s``: how long a result waits for the block after it."""
        self._lives = lives
        self._fleet = fleet
        self._metrics = metrics
        self._gap_within_s = gap_within_s
        self._spawn = spawn

    def phase(self, live: Live, fields: Mapping[str, object]) -> None:
        """A phase of a try begins."""
        attempt, phase = str(fields["attempt"]), str(fields["phase"])
        if phase == "prepare" and (owner := self._fleet.owner(live.name)):
            live.standstill.begin(attempt, owner.epoch)
        if said := visitor_phase(phase):
            live.audience.say(MovePhase(attempt=attempt, phase=said, to=str(fields["destination"])))

    def result(self, live: Live, report: MoveReport) -> None:
        """A move has ended."""
        live.standstill.ended(report.outcome)
        self._spawn(self._tell(live, report))

    async def settled(self, session: str, report: MoveReport) -> MoveReport:
        """Wait until a move's gap is over; return its report with the gap, and with where the session is by then."""
        live = self._lives.get(session)
        gap = None if live is None else live.standstill.gap
        if live is not None and gap is not None and gap.attempt == report.attempt and report.outcome in WITH_GAP:
            await live.standstill.over(gap, self._gap_within_s)
            report = replace(report, gap_s=gap.late_s)
        told = replace(report, runs_at=self._runs_at(session))
        self._fleet.amend(told)
        return told

    async def _tell(self, live: Live, report: MoveReport) -> None:
        settled = await self.settled(live.name, report)
        committed = settled.outcome is Outcome.COMMITTED
        if settled.gap_s is not None and committed:
            self._metrics.moved_with_gap(settled.gap_s)
        live.tally.moved(settled.outcome)
        live.journal.move(live.screen.next_block, settled)
        if committed:
            live.audience.say(MovePhase(attempt=settled.attempt, phase=MOVED, to=settled.destination))
        live.audience.say(result_of(settled, 1 / live.spec.frames_per_s))

    def _runs_at(self, session: str) -> str | None:
        """Return who owns a session by the ledger's row, if that worker lives."""
        owner = self._fleet.owner(session)
        for view in self._fleet.workers():
            if owner is not None and (view.name, view.incarnation) == (owner.worker, owner.incarnation):
                return None if view.state in (WorkerState.GONE, WorkerState.SUSPECTED) else view.name
        return None
