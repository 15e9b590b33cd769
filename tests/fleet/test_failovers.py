"""What of a copy that took over was compared with what was shown, and what its report counts."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.move import virtual
from worldmove.fleet.counters import Counters
from worldmove.fleet.failover_report import FailoverOutcome, FailoverReport
from worldmove.fleet.failovers import Failovers
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import Copy, TakeOver


class Told:
    """A gateway and a table of sessions: neither knows anything."""

    def find(self, session: str) -> None:
        return None

    def failed_over(self, session: str, report: FailoverReport) -> None: ...


def report_of(compared: dict[int, bool], again: dict[int, bool] | None = None) -> FailoverReport:
    """Let a copy that stood before block 5 take over at block 7, and compare some blocks; return the report.

    ``again``: those that it says once more after a block of its own was shown.
    """

    async def run() -> FailoverReport:
        told: Any = Told()
        failovers = Failovers(
            sessions=told,
            gateway=lambda: told,
            counters=Counters(CollectorRegistry()),
            wall_clock=lambda: 0.0,
            log=lambda event, fields: None,
        )
        copy = Copy(session="s", phase="retired", epoch=1, block=5, attempt="", left=5)
        row = Row(session="s", owner="a", incarnation=1, epoch=1)
        failovers.granted(row, "b", copy, TakeOver(session="s", epoch=2, block=7))
        for block, equal in compared.items():
            failovers.compared("s", 2, block, equal=equal)
        if again is not None:
            failovers.shown(replace(row, owner="b", epoch=2))
        for block, equal in (again or {}).items():
            failovers.compared("s", 2, block, equal=equal)
        await asyncio.sleep(0)
        (report,) = failovers.reports()
        return report

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
