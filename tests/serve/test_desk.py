"""Where a session goes that is to be moved, and nobody says where to."""

from dataclasses import replace

import pytest

from tests.views import worker_view
from worldmove.errors import UserError
from worldmove.fleet.views import WorkerState, WorkerView
from worldmove.serve.desk import whither


def worker(name: str, slots_free: int = 2, *, stuck: bool = False, torch: str = "2.13.0") -> WorkerView:
    return worker_view(name, slots_free=slots_free, environment={"torch": torch}, is_stuck=stuck)


@pytest.mark.parametrize(
    ("others", "chosen"),
    [
        ((worker("b"), worker("c", 3)), "c"),
        ((worker("b"), worker("c", 3, stuck=True)), "b"),
        ((worker("b", 0), worker("c", 3, stuck=True)), "c"),  # its engine may return; room does not come by itself
        ((worker("b", 1, stuck=True), worker("c", 3, stuck=True)), "c"),
        ((worker("b", 3, stuck=True),), "b"),
        ((worker("b", 1, stuck=True), worker("c", 3, torch="another")), "b"),  # by which it would be refused
        ((worker("b", 0, stuck=True), worker("c", 0)), "c"),
    ],
)
@pytest.mark.parametrize("is_owner_stuck", [False, True])
def test_a_session_goes_where_there_is_room_and_the_engine_returns(
    others: tuple[WorkerView, ...], chosen: str, *, is_owner_stuck: bool
) -> None:
    owner = worker("a", 3, stuck=is_owner_stuck)
    assert whither((owner, *others), "a") == chosen
    assert whither((*reversed(others), owner), "a") == chosen


def test_where_there_is_no_other_worker_that_is_said() -> None:
    with pytest.raises(UserError, match="no other worker"):
        whither((worker("a"),), "a")
    with pytest.raises(UserError, match="b is not ready yet"):
        whither((worker("a"), replace(worker("b"), state=WorkerState.STARTING)), "a")
