"""Whatever befalls the workers, links, ledger and players of a seed, no invariant breaks."""

import pytest

from tests.simulation.case import Case, Result
from tests.simulation.report import report
from tests.simulation.run import simulate
from tests.simulation.seeds import Kept, kept_seeds
from tests.simulation.shrink import shrink

NUM_SEEDS = 2000
CHUNK = 250
SHORT_S = 1.0
"""Of faults, in virtual time."""


def _case(seed: int) -> Case:
    """Return a seed's case: most are short, and every tenth as long as the seed says."""
    return Case(seed=seed, horizon_s=SHORT_S if seed % 10 else None)


def _check(result: Result) -> None:
    if result.broken:
        pytest.fail(report(result, shrink(result)), pytrace=False)


@pytest.mark.parametrize("first", range(0, NUM_SEEDS, CHUNK))
def test_no_invariant_breaks(first: int) -> None:
    for seed in range(first, first + CHUNK):
        _check(simulate(_case(seed)))


@pytest.mark.parametrize("kept", kept_seeds(), ids=lambda kept: f"{kept.case.seed}")
def test_a_seed_that_once_failed_does_not_again(kept: Kept) -> None:
    _check(simulate(kept.case))


def test_a_run_has_moves_deaths_and_blocks_to_look_at() -> None:
    results = [simulate(Case(seed=seed)) for seed in range(20)]
    happened = {name for result in results for name in result.counts}
    wanted = {"moves committed", "moves aborted", "moves refused", "crashes", "blocks shown", "checks", "actions"}
    wanted |= {"blocks hashed beside"}
    assert wanted <= happened
    assert {name.partition(":")[0] for result in results for name in result.fired} >= {"loss", "kill", "cut", "pause"}


def test_a_run_with_decoders_has_moves_that_follow_them_and_what_is_wrong_with_that() -> None:
    wanted = {"blocks followed", "moves with what was followed committed", "hand_lost", "hand_false", "follow_lies"}
    for seed in range(200):  # which of them have what changes with everything that is decided
        result = simulate(Case(seed=seed, decodes=True, horizon_s=4.0))
        assert result.broken == ""
        wanted -= {*result.counts, *(name.partition(":")[0] for name in result.fired)}
        if not wanted:
            break
    assert wanted == set()


def test_a_run_with_meddlers_has_each_of_their_acts_and_visitors_whose_sessions_are_closed() -> None:
    results = [simulate(Case(seed=seed, meddles=True, horizon_s=4.0)) for seed in range(30)]
    happened = {name for result in results for name in result.counts}
    acts = ("speaks", "floods", "crowds", "hops", "vanishes", "moves", "protects", "recovers")
    assert {f"meddlers: {act}" for act in acts} | {"visits", "refused to meddlers: close: moving"} <= happened
    assert [result.broken for result in results] == [""] * len(results)
