"""Failovers as they are told: who was gone, which copy took over, what it replayed, how long nothing was shown."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from worldmove.fleet.counters import Counters
from worldmove.fleet.failover_report import FailoverOutcome, FailoverReport
from worldmove.fleet.ports import Gateway
from worldmove.fleet.sessions import SessionTable
from worldmove.move.ledger_row import BY_FAILOVER, BY_RECLAIM, Row
from worldmove.worker.messages import Copy, TakeOver

MAX_KEPT = 128
"""And those that are under way: no more than there are sessions."""


class Failovers:
    """The last failovers of one server."""

    def __init__(
        self,
        *,
        sessions: SessionTable,
        gateway: Callable[[], Gateway],
        counters: Counters,
        wall_clock: Callable[[], float],
        log: Callable[[str, dict[str, object]], None],
    ) -> None:
        self._sessions = sessions
        self._gateway = gateway
        self._counters = counters
        self._wall_clock = wall_clock
        self._log = log
        self._reports: dict[tuple[str, int], FailoverReport] = {}

    def reports(self) -> tuple[FailoverReport, ...]:
        """Return the last ones, oldest first."""
        return tuple(self._reports.values())

    def granted(self, row: Row, worker: str, copy: Copy, taken: TakeOver) -> None:
        """A worker's copy has taken over. ``row``: as it was before, ``copy``: as the copy stood."""
        now = asyncio.get_running_loop().time()
        record = self._sessions.find(row.session)
        began = now if record is None or record.missing_since is None else record.missing_since
        report = FailoverReport(
            session=row.session,
            source=row.owner,
            destination=worker,
            epoch=taken.epoch,
            boundary=copy.block,
            next_block=taken.block,
            started_at=self._wall_clock() - (now - began),
            began=began,
            outcome=FailoverOutcome.REPLAYS,
        )
        self._keep(report)
        self._say("failed_over", report)
        if record is None:  # it was closed while the ledger was asked
            self.closed(row.session)

    def compared(self, session: str, epoch: int, block: int, *, equal: bool) -> None:
        """A replayed block was compared with what was shown; or one that its copy had computed before it took over."""
        self._counters.replayed(equal=equal)
        report = self._reports.get((session, epoch))
        if report is None:
            return
        is_counted = report.outcome is FailoverOutcome.REPLAYS  # later it is said again, over a new link
        if equal and is_counted and block >= report.boundary:
            self._keep(replace(report, num_compared=report.num_compared + 1))
        elif not equal and report.differs_at is None and report.outcome is not FailoverOutcome.ENDED:
            report = replace(report, outcome=FailoverOutcome.DIVERGED, differs_at=block)
            self._end(report, "failover_diverged")

    def row_changed(self, row: Row) -> None:
        """The first block of an epoch is about to leave; or an epoch is over, perhaps before it has shown any."""
        for report in self._under_way(row.session):
            if row.lost or row.epoch > report.epoch:
                self._give_up(report, _why_over(row))
            elif row.shown and row.epoch == report.epoch:
                took_s = asyncio.get_running_loop().time() - report.began
                self._end(replace(report, outcome=FailoverOutcome.RESUMED, took_s=took_s), "failover_resumed")

    def closed(self, session: str) -> None:
        """A session is no more: of its row nobody hears again."""
        for report in self._under_way(session):
            self._give_up(report, "the world was closed")

    def _under_way(self, session: str) -> list[FailoverReport]:
        mine = [report for report in self._reports.values() if report.session == session]
        return [report for report in mine if report.outcome is FailoverOutcome.REPLAYS]

    def _give_up(self, report: FailoverReport, why: str) -> None:
        self._end(replace(report, outcome=FailoverOutcome.ENDED, why=why), "failover_ended")

    def _keep(self, report: FailoverReport) -> None:
        self._reports[report.session, report.epoch] = report
        over = [key for key, kept in self._reports.items() if kept.outcome is not FailoverOutcome.REPLAYS]
        for key in over[: max(0, len(self._reports) - MAX_KEPT)]:
            del self._reports[key]

    def _end(self, report: FailoverReport, event: str) -> None:
        self._keep(report)
        self._counters.failed_over(report.outcome.value, report.took_s)
        self._say(event, report)

    def _say(self, event: str, report: FailoverReport) -> None:
        said: dict[str, object] = {"session": report.session, "epoch": report.epoch, "worker": report.destination}
        said |= {"gone": report.source, "boundary": report.boundary, "block": report.next_block}
        said |= {"compared": report.num_compared, "took_s": report.took_s, "differs_at": report.differs_at}
        said |= {"why": report.why} if report.why else {}
        self._log(event, said)
        self._gateway().failed_over(report.session, report)


def _why_over(row: Row) -> str:
    """Say what has ended an epoch that had shown nothing. ``row``: the session's, after that."""
    if row.lost:
        return "it stopped too, and nobody has a copy that could go on"
    if row.granted_by == BY_FAILOVER:
        return f"it stopped too, and a copy at {row.owner} has taken over"
    return f"{row.owner} has {'taken the world back' if row.granted_by == BY_RECLAIM else 'the world by a move'}"
