"""How large a session is: what is said of its newest state, by whoever owned it then."""

import asyncio
from dataclasses import replace

import pytest

from tests.fleet.test_notes import REPORT
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.sessions import SessionRecord, Size
from worldmove.worker.messages import Opened

OPENED = Opened(session="s", epoch=1, num_bytes=10, num_leaves=3, state_digest="d")


def made(outcome: Outcome, epoch: int) -> MoveReport:
    return replace(REPORT, outcome=outcome, epoch=epoch, num_bytes=20, num_leaves=5)


def told(*said: int | tuple[int, int] | MoveReport) -> Size:
    """Open a session, and tell of it in turn: accounts (epoch, leaves), and moves."""

    async def run() -> Size:
        record = SessionRecord(name="s", seed=1, worker="a", incarnation=1, throwaway=False)
        assert record.size.num_leaves == 0
        record.opened = OPENED
        for one in said:
            if isinstance(one, MoveReport):
                record.moved(one)
            elif isinstance(one, tuple):
                record.accounted(*one)
        return record.size

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("said", "num_bytes", "num_leaves"),
    [
        ([], 10, 3),
        ([(1, 4)], 10, 4),
        ([(1, 4), (1, 2)], 10, 2),
        ([made(Outcome.ABORTED, 1)], 10, 3),
        ([made(Outcome.COMMITTED, 2)], 20, 5),
        ([(1, 4), made(Outcome.COMMITTED, 2)], 20, 5),
        ([(2, 7), made(Outcome.COMMITTED, 2)], 20, 7),
        ([made(Outcome.COMMITTED, 2), (2, 6)], 20, 6),
    ],
)
def test_the_newest_word_of_a_session_state_counts(
    said: list[int | tuple[int, int] | MoveReport], num_bytes: int, num_leaves: int
) -> None:
    size = told(*said)
    assert (size.num_bytes, size.num_leaves) == (num_bytes, num_leaves)
