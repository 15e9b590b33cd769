"""What tells of a ledger that was put back: an epoch that it does not know, or that it has given to another."""

import pytest

from worldmove.fleet.behind import Ahead, ahead
from worldmove.fleet.views import SessionState
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_row import Row
from worldmove.worker.messages import Copy

ROW = Row(session="s", owner="a", incarnation=1, epoch=2)


def holding(name: str, phase: str, epoch: int, *, incarnation: int = 1, session: str = "s") -> WorkerRecord:
    copy = Copy(session=session, phase=phase, epoch=epoch, block=4)
    return WorkerRecord(name=name, incarnation=incarnation, copies=(copy,))


@pytest.mark.parametrize("phase", ["live", "frozen", "superseded", "retired"])
def test_a_copy_of_a_later_epoch_is_ahead_whoever_has_it_and_whatever_it_does(phase: str) -> None:
    workers = [holding("a", "retired", 2), holding("b", phase, 3)]
    assert ahead(ROW, workers) == Ahead(worker="b", epoch=3)


def test_the_copy_of_the_latest_epoch_is_named() -> None:
    assert ahead(ROW, [holding("b", "retired", 3), holding("c", "live", 4)]) == Ahead(worker="c", epoch=4)


@pytest.mark.parametrize("phase", ["live", "frozen"])
def test_one_that_plays_in_an_epoch_that_is_anothers_is_ahead(phase: str) -> None:
    assert ahead(ROW, [holding("b", phase, 2)]) == Ahead(worker="b", epoch=2)
    assert ahead(ROW, [holding("a", phase, 2, incarnation=2)]) == Ahead(worker="a", epoch=2)


@pytest.mark.parametrize(
    "worker",
    [
        holding("a", "live", 2),
        holding("a", "live", 1),
        holding("b", "retired", 2),
        holding("b", "superseded", 1),
        holding("b", "kept", 9),
        holding("b", "shadow", 9),
        holding("b", "freeing", 9),
        holding("b", "live", 9, session="another"),
    ],
)
def test_whatever_a_ledger_that_has_lost_nothing_may_know_of_is_not(worker: WorkerRecord) -> None:
    assert ahead(ROW, [worker]) is None


def test_it_is_a_state_of_its_own_in_every_list() -> None:
    assert SessionState.LEDGER_BEHIND.value == "ledger_behind"
