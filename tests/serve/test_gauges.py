"""What stands where, for Prometheus."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.views import worker_view
from worldmove.fleet.views import SessionState, SessionView, WorkerState
from worldmove.serve.gauges import Gauges


def session(
    *, every: int, kept: int | None = None, age: int | None = None, lost: bool = False, unsafe: bool = False
) -> SessionView:
    return SessionView(
        name="s",
        state=SessionState.LOST if lost else SessionState.LIVE,
        owner="a",
        incarnation=1,
        epoch=1,
        attempt=None,
        holders=("a",),
        seed=1,
        num_bytes=1,
        num_leaves=1,
        protect_every=every,
        keeper=None if kept is None else "b",
        kept_block=kept,
        kept_age_blocks=age,
        unprotected_why="unsafe: b was told to end." if unsafe or (every and kept is None) else "",
        throwaway=False,
    )


@pytest.mark.parametrize(
    ("sessions", "unprotected", "oldest"),
    [
        ((), 0, 0),
        ((session(every=0),), 0, 0),
        ((session(every=4),), 1, 0),
        ((session(every=4, lost=True),), 0, 0),
        ((session(every=4, kept=8, age=3), session(every=4, kept=8, age=90), session(every=16)), 1, 90),
        ((session(every=0, kept=8, age=90),), 0, 0),
        ((session(every=4, kept=8),), 0, 0),
        ((session(every=4, kept=8, age=3, unsafe=True),), 1, 3),
    ],
)
def test_the_oldest_of_the_newest_snapshots_is_told_and_how_many_one_death_may_lose(
    sessions: tuple[SessionView, ...], unprotected: int, oldest: int
) -> None:
    fleet: Any = SimpleNamespace(sessions=lambda: sessions, workers=lambda: ())
    families = {family.name: family for family in Gauges(fleet, num_players=lambda: 0, info={}).collect()}
    found = [families[f"worldmove_{name}"].samples[0].value for name in ("sessions_unprotected", "snapshot_age_blocks")]
    assert found == [unprotected, oldest]


def test_lines_that_a_log_lost_are_told_of_each_process() -> None:
    workers = tuple(worker_view(name, num_lines_dropped=num) for name, num in (("a", 0), ("b", 7)))
    fleet: Any = SimpleNamespace(sessions=lambda: (), workers=lambda: workers)
    gauges = Gauges(fleet, num_players=lambda: 0, info={}, num_lines_dropped=lambda: 3)
    (family,) = [family for family in gauges.collect() if family.name == "worldmove_log_lines_dropped"]
    assert {sample.labels["process"]: sample.value for sample in family.samples} == {"server": 3, "a": 0, "b": 7}


@pytest.mark.parametrize(
    ("state", "is_up", "used"),
    [
        (WorkerState.STARTING, 0, 0),
        (WorkerState.AWAITED, 0, 0),
        (WorkerState.READY, 1, 2),
        (WorkerState.SUSPECTED, 0, 2),
        (WorkerState.LEAVING, 1, 2),
        (WorkerState.GONE, 0, 0),
    ],
)
def test_a_worker_is_up_while_it_plays_also_while_it_is_to_end_and_its_slots_are_used(
    state: WorkerState, is_up: int, used: int
) -> None:
    worker = worker_view("a", state=state)
    fleet: Any = SimpleNamespace(sessions=lambda: (), workers=lambda: (worker,))
    families = {family.name: family for family in Gauges(fleet, num_players=lambda: 0, info={}).collect()}
    assert families["worldmove_worker_up"].samples[0].value == is_up
    assert [s.value for s in families["worldmove_slots"].samples if s.labels["state"] == "used"] == [used]
