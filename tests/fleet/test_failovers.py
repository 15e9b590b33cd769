"""What a failover's report says: what was compared with what was shown, and how it ended, whatever has ended it."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.move import virtual
from worldmove.fleet.counters import Counters
from worldmove.fleet.failover_report import FailoverOutcome, FailoverReport
from worldmove.fleet.failovers import MAX_KEPT, Failovers
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.move.ledger_row import BY_FAILOVER, BY_RECLAIM, Row
from worldmove.serve.results import failover_sentence
from worldmove.worker.messages import Copy, TakeOver


class Told:
    """A gateway: what it was told, in order."""

    def __init__(self) -> None:
        self.reports: list[FailoverReport] = []

    def failed_over(self, session: str, report: FailoverReport) -> None:
        self.reports.append(report)


class Case:
    """Failovers of sessions that are open, what was said of them, and what was counted."""

    def __init__(self, *sessions: str) -> None:
        self.told, self.logged, self.registry = Told(), list[tuple[str, dict[str, object]]](), CollectorRegistry()
        self.sessions, gateway = SessionTable(), self.told
        for name in sessions:
            self.sessions.add(SessionRecord(name=name, seed=1, worker="a", incarnation=1, throwaway=False))
        some: Any = gateway
        self.failovers = Failovers(
            sessions=self.sessions,
            gateway=lambda: some,
            counters=Counters(self.registry),
            wall_clock=lambda: 0.0,
            log=lambda event, fields: self.logged.append((event, fields)),
        )

    def grants(self, session: str = "s", *, epoch: int = 2) -> Row:
        """Let b's copy take over from a at block 7, from block 5; return the row as it is then."""
        copy = Copy(session=session, phase="retired", epoch=1, block=5, attempt="", left=5)
        row = Row(session=session, owner="a", incarnation=1, epoch=epoch - 1)
        after = replace(row, owner="b", epoch=epoch, granted_by=BY_FAILOVER)
        self.failovers.row_changed(after)
        self.failovers.granted(row, "b", copy, TakeOver(session=session, epoch=epoch, block=7))
        return after

    def counted(self, outcome: FailoverOutcome) -> float:
        return self.registry.get_sample_value("worldmove_failovers_total", {"outcome": outcome.value}) or 0.0

    @property
    def report(self) -> FailoverReport:
        (report,) = self.failovers.reports()
        return report


def report_of(compared: dict[int, bool], again: dict[int, bool] | None = None) -> FailoverReport:
    """Let a copy that stood before block 5 take over at block 7, and compare some blocks; return the report.

    ``again``: those that it says once more after a block of its own was shown.
    """

    async def run() -> FailoverReport:
        case = Case("s")
        row, failovers = case.grants(), case.failovers
        for block, equal in compared.items():
            failovers.compared("s", 2, block, equal=equal)
        if again is not None:
            failovers.row_changed(replace(row, shown=True))
        for block, equal in (again or {}).items():
            failovers.compared("s", 2, block, equal=equal)
        await asyncio.sleep(0)
        return case.report

    return virtual.run(run())


def test_what_a_copy_had_computed_before_is_compared_too_and_not_counted_as_computed_again() -> None:
    report = report_of({3: True, 4: True, 5: True, 6: True})
    assert (report.num_replayed, report.num_compared, report.differs_at) == (2, 2, None)


@pytest.mark.parametrize("block", [4, 6])
def test_a_block_that_was_shown_otherwise_ends_it_whenever_it_was_computed(block: int) -> None:
    report = report_of({3: True, block: False})
    assert (report.outcome, report.differs_at) == (FailoverOutcome.DIVERGED, block)


def test_what_is_said_again_once_it_plays_on_is_counted_once() -> None:
    report = report_of({5: True, 6: True}, again={5: True, 6: True})
    assert (report.outcome, report.num_compared) == (FailoverOutcome.RESUMED, 2)


def by(owner: str, granted_by: str) -> Callable[[Case, Row], None]:
    """Another has the session's next epoch."""
    return lambda case, row: case.failovers.row_changed(replace(row, owner=owner, epoch=3, granted_by=granted_by))


WAYS: dict[str, tuple[Callable[[Case, Row], None], str]] = {
    "another failover": (by("c", BY_FAILOVER), "it stopped too, and a copy at c has taken over"),
    "a failover back": (by("b", BY_FAILOVER), "it stopped too, and a copy at b has taken over"),
    "a move": (by("c", "00000004-x"), "c has the world by a move"),
    "a reclaim": (by("a", BY_RECLAIM), "a has taken the world back"),
    "two epochs at once": (
        lambda case, row: case.failovers.row_changed(replace(row, owner="c", epoch=4, shown=True)),
        "it stopped too, and a copy at c has taken over",
    ),
    "lost": (
        lambda case, row: case.failovers.row_changed(replace(row, lost=True)),
        "it stopped too, and nobody has a copy that could go on",
    ),
    "closed": (lambda case, row: case.failovers.closed(row.session), "the world was closed"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_failover_whose_epoch_is_over_before_it_has_shown_a_block_is_told_counted_and_no_more_under_way(
    way: str,
) -> None:
    async def run() -> None:
        case, (ends, why) = Case("s", "other"), WAYS[way]
        other, row = case.grants("other"), case.grants()
        case.failovers.compared("s", 2, 5, equal=True)
        ends(case, row)
        untouched, report = case.failovers.reports()
        assert (untouched.session, untouched.outcome) == (other.session, FailoverOutcome.REPLAYS)
        assert (report.outcome, report.took_s, report.num_compared) == (FailoverOutcome.ENDED, None, 1)
        assert failover_sentence(report) == f"a stopped. b took over, but showed no block: {why}."
        assert case.told.reports[-1] == report
        assert (case.logged[-1][0], case.logged[-1][1]["why"]) == ("failover_ended", why)
        case.failovers.row_changed(replace(row, lost=True))
        case.failovers.closed("s")
        case.failovers.compared("s", 2, 6, equal=False)  # on its way when the epoch ended
        assert case.failovers.reports()[1] == report
        assert [case.counted(outcome) for outcome in FailoverOutcome] == [0, 0, 0, 1]

    virtual.run(run())


@pytest.mark.parametrize("way", WAYS)
def test_a_failover_that_has_shown_a_block_stays_resumed_whatever_ends_its_epoch(way: str) -> None:
    async def run() -> None:
        case = Case("s")
        row = replace(case.grants(), shown=True)
        case.failovers.row_changed(row)
        WAYS[way][0](case, row)
        assert (case.report.outcome, case.report.why) == (FailoverOutcome.RESUMED, "")
        assert [case.counted(outcome) for outcome in FailoverOutcome] == [0, 1, 0, 0]

    virtual.run(run())


def test_a_failover_that_the_ledger_grants_while_its_session_is_closed_is_not_left_under_way() -> None:
    async def run() -> None:
        case = Case()
        case.grants()
        assert (case.report.outcome, case.report.why) == (FailoverOutcome.ENDED, "the world was closed")

    virtual.run(run())


def test_one_that_is_under_way_is_kept_until_it_has_ended_however_many_came_after_it() -> None:
    async def run() -> None:
        names = [f"s-{number}" for number in range(MAX_KEPT + 8)]
        case = Case(*names)
        rows = [case.grants(name) for name in names]
        assert len(case.failovers.reports()) == len(names)
        for row in rows:
            case.failovers.row_changed(replace(row, shown=True))
        assert case.counted(FailoverOutcome.RESUMED) == len(names)
        assert [report.session for report in case.failovers.reports()] == names[8:]

    virtual.run(run())
