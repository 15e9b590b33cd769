"""The protocol as it is shipped holds in every state within small bounds; the large ones are run by a script."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from tests.model import invariants
from tests.model.ahead import COMPUTES_AHEAD
from tests.model.bounds import (
    CALM,
    CALM_3_BLOCKS,
    CALM_AGAIN,
    CRASH,
    CRASH_1_BLOCK,
    KEPT_1_BLOCK,
    KEPT_RESTART,
    KEPT_SUSPICION,
    NAMED,
    RESTART,
    SILENCE,
    SUSPICION,
    Bounds,
)
from tests.model.ends import End
from tests.model.explore import Exploration, explore
from tests.model.invariants import Broken
from tests.model.parallel import explore_together
from tests.model.rules import SHIPPED, Rules
from tests.model.say import say
from tests.model.situations import (
    GRANTED_IN_SILENCE,
    SHADOW_OUTLIVES_ITS_ATTEMPT,
    SHOWN_IN_DOUBT,
    TAKEN_OVER_TWICE,
)
from tests.model.world import ENDS, LUCK, World
from worldmove.move.protocol import DestinationPhase, SourcePhase

RESULTS = Path(__file__).parents[2] / "bench" / "results"


@pytest.mark.parametrize(
    ("bounds", "num_states"),
    [pytest.param(CRASH, 20_000, id="crash"), pytest.param(SUSPICION, 18_000, id="suspicion")],
)
def test_a_fault_breaks_nothing_and_leaves_nobody_stuck(bounds: Bounds, num_states: int) -> None:
    holds(bounds, num_states=num_states)


def test_a_server_that_forgets_breaks_nothing_and_leaves_nobody_stuck() -> None:
    holds(RESTART, num_states=26_000)


@pytest.mark.parametrize(
    ("bounds", "num_states"),
    [
        pytest.param(KEPT_1_BLOCK, 1_000, id="crash"),
        pytest.param(KEPT_SUSPICION, 1_000, id="suspicion"),
        pytest.param(KEPT_RESTART, 100, id="restart"),
    ],
)
def test_a_snapshot_that_is_kept_breaks_nothing_and_leaves_nobody_stuck(bounds: Bounds, num_states: int) -> None:
    holds(bounds, num_states=num_states)


def test_an_owner_that_is_silent_and_has_shown_nothing_is_replaced_by_a_snapshot_and_breaks_nothing() -> None:
    explored = explore(SILENCE, start=GRANTED_IN_SILENCE.state)
    assert (explored.broken, explored.num_stuck) == ({}, 0)
    assert explored.num_states > 2_000


def test_computing_one_block_ahead_in_doubt_would_break_nothing_if_that_block_counts_for_nothing() -> None:
    holds(CRASH, COMPUTES_AHEAD, num_states=21_000)


def test_if_it_counted_as_part_of_the_copy_the_only_current_copy_would_be_told_to_discard(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(invariants, "reach", lambda end: end.next)
    explored = explore(CRASH, COMPUTES_AHEAD, until=frozenset({Broken.I7}))
    assert explored.broken.keys() == {Broken.I7}


def test_several_processes_together_count_what_one_counts() -> None:
    alone, together = explore(CRASH_1_BLOCK), explore_together(CRASH_1_BLOCK, num_processes=2)
    assert replace(alone, traces={}, stuck_trace=()) == together
    assert alone.num_states > 1_000


def test_several_processes_together_see_what_one_sees_broken_and_stuck() -> None:
    rules = replace(SHIPPED, proves_when_acknowledged=False)
    alone, together = explore(CALM, rules), explore_together(CALM, rules, num_processes=2)
    assert (together.num_stuck, together.broken) == (alone.num_stuck, alone.broken)
    assert alone.num_stuck + alone.num_bad


def holds(bounds: Bounds, rules: Rules = SHIPPED, *, num_states: int) -> None:
    exploration = Exploration(World(bounds, rules))
    explored = exploration.run()
    traces = [*explored.traces.values(), explored.stuck_trace]
    assert not explored.num_bad + explored.num_stuck, "\n\n".join(say(exploration.world, trace) for trace in traces)
    assert explored.num_states > num_states, "the model has shrunk: does it still do everything?"


def test_an_owner_that_was_given_its_session_twice_goes_on() -> None:
    explored = explore(CALM_3_BLOCKS, start=TAKEN_OVER_TWICE.state)
    assert (explored.broken, explored.num_stuck) == ({}, 0)
    assert explored.num_states > 100


def test_the_situations_that_need_no_fault_are_reached_from_the_beginning() -> None:
    world = World(CALM_AGAIN, SHIPPED)
    exploration = Exploration(world)
    exploration.run()
    for situation in (SHADOW_OUTLIVES_ITS_ATTEMPT, SHOWN_IN_DOUBT):
        wanted = situation.state(world)[: LUCK + 1]
        ends = [_plain(end) for end in situation.ends[:2]]
        assert any(state[: LUCK + 1] == wanted and _held(world, state) == ends for state in exploration.states)


def _held(world: World, state: tuple[int, ...]) -> list[End]:
    """Return what both ends hold; what they wait to be told is left open."""
    return [_plain(world.ends.values[number]) for number in state[ENDS:]]


def _plain(end: End) -> End:
    return end._replace(question=-1, landed=False, left=0)


def test_a_channel_alone_leads_to_every_phase_of_both_ends_but_those_that_a_fault_needs() -> None:
    world = World(CALM, SHIPPED)
    exploration = Exploration(world)
    exploration.run()
    phases = {world.ends.values[number].phase for state in exploration.states for number in state[ENDS:]}
    assert {*SourcePhase} - phases == {SourcePhase.SUPERSEDED, SourcePhase.NONE}
    assert {*DestinationPhase} - phases == {DestinationPhase.VERIFIED, DestinationPhase.LIVE, DestinationPhase.RETIRED}


def test_the_large_runs_that_are_on_file_found_nothing_and_had_the_bounds_of_today() -> None:
    bounds = {f"model {name}": asdict(bounds) for name, bounds in NAMED.items()}
    filed = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("model-*.json"))]
    assert filed
    assert all(found["commit"]["sha"] for found in filed)
    assert not any(found["commit"]["changed"] for found in filed)
    assert [(found["bad"], found["stuck"], found["broken"]) for found in filed] == [(0, 0, {})] * len(filed)
    # A file of before there was a bound has it at its default.
    assert [asdict(Bounds(**found["bounds"])) for found in filed] == [bounds[found["name"]] for found in filed]
