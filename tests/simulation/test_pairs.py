"""Whatever is done at whatever moment of something else, no invariant breaks."""

import random

import pytest

from tests.simulation.case import Case, Result
from tests.simulation.node import Node
from tests.simulation.report import report
from tests.simulation.run import simulate
from tests.simulation.shrink import shrink

NUM_SEEDS = 60
HORIZONS_S = (2.0, 3.0, 4.0)
EVERY = (0, 2, 3, 3, 4, 8, 40)


FEW_SLOTS = 2
"""Of each of three workers: with two sessions, and the snapshot of each, some are full."""


def case(seed: int, num_slots: int | None = None) -> Case:
    rng = random.Random(seed)
    return Case(
        seed=seed,
        pairs=True,
        meddles=False,
        decodes=rng.random() < 0.15,
        horizon_s=rng.choice(HORIZONS_S),
        protect_every=rng.choice(EVERY),
        num_slots=num_slots,
    )


def check(result: Result) -> None:
    if result.broken:
        pytest.fail(report(result, shrink(result)), pytrace=False)


@pytest.mark.parametrize("first", range(0, NUM_SEEDS, 20))
def test_no_pair_of_things_breaks_an_invariant(first: int) -> None:
    counts = set[str]()
    for seed in range(first, first + 20):
        result = simulate(case(seed))
        check(result)
        counts |= set(result.counts)
    assert {"deeds", "failovers resumed", "moves committed"} <= counts


@pytest.mark.parametrize("first", range(1000, 1000 + NUM_SEEDS, 20))
def test_no_pair_of_things_breaks_an_invariant_where_workers_are_full(first: int) -> None:
    counts = set[str]()
    for seed in range(first, first + 20):
        result = simulate(case(seed, FEW_SLOTS))
        check(result)
        counts |= set(result.counts)
    assert {"deeds", "failovers resumed", "moves committed"} <= counts


def test_a_worker_that_dies_of_being_told_to_end_is_found_to_lose_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Node, "terminate", Node.kill)
    assert any("at every death another had a copy of it" in simulate(case(seed)).broken for seed in range(60))
