"""Each change of a rule that does harm is caught, and by the invariant that it breaks; redundant guards are so."""

import pytest

from tests.model.explore import explore
from tests.model.mutations import HARMFUL, REDUNDANT, Mutation


def _named(mutation: Mutation) -> str:
    return mutation.name.replace(" ", "_").replace("'", "").replace(",", "")


@pytest.mark.parametrize("mutation", HARMFUL, ids=_named)
def test_a_changed_rule_is_caught(mutation: Mutation) -> None:
    until = None if mutation.sticks else mutation.breaks
    start = mutation.start.state if mutation.start else None
    explored = explore(mutation.bounds, mutation.rules, until=until, start=start)
    assert mutation.breaks <= explored.broken.keys()
    if mutation.sticks:
        assert explored.num_stuck > 0
        assert mutation.breaks == explored.broken.keys(), "it breaks more than is written of it"


@pytest.mark.parametrize("mutation", REDUNDANT, ids=_named)
def test_a_redundant_guard_is_missed_by_nobody(mutation: Mutation) -> None:
    start = mutation.start.state if mutation.start else None
    explored = explore(mutation.bounds, mutation.rules, start=start)
    assert (explored.broken, explored.num_stuck) == ({}, 0)
    assert explored.num_states > 2_000
