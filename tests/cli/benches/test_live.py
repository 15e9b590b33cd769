"""The live loop: blocks told apart by what went on, goals that can be missed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from worldmove.cli.benches.live import LiveRun, replayed_all, together
from worldmove.cli.benches.live_asked import LiveAsked
from worldmove.cli.benches.live_blocks import Segment, beside, late, of_segments, parted
from worldmove.cli.benches.live_found import LiveFound
from worldmove.cli.benches.player import Seen
from worldmove.cli.benches.tap import Arrival

DOUBLE = "python:tests.worker.device_engine:build_calm"
SEGMENTS = (
    Segment(with_moves=True, blocks=(2, 4), span=(10.0, 20.0)),
    Segment(with_moves=False, blocks=(4, 6), span=(20.0, 30.0)),
)
MOVES = ((12.0, 13.0),)


def came(block: int, at: float, *, margin_s: float | None = 0.1, compute_s: float = 0.5) -> Arrival:
    return Arrival(worker="a", block=block, epoch=1, arrived=at, margin_s=margin_s, compute_s=compute_s, frames=("x",))


def a_run(mine: list[Arrival], residents: list[Arrival], **changes: Any) -> LiveFound:
    report = {
        "from": "a",
        "to": "b",
        "outcome": "committed",
        "reason": "",
        "pause_ms": 5.0,
        "gap_ms": None,
        "phases": [
            {"side": "source", "name": "freeze", "start_ms": 0.0, "end_ms": 1.0},
            {"side": "destination", "name": "commit", "start_ms": 4.0, "end_ms": 4.5},
        ],
    }
    known: dict[str, Any] = {
        "asked": LiveAsked(moves=1, every=2, segment=1, residents=1, after=0),
        "period_ms": 4000.0,
        "num_bytes": 1_000_000,
        "segments": SEGMENTS,
        "moves": MOVES,
        "reports": [report],
        "mine": mine,
        "residents": [residents],
        "seen": [Seen(), Seen()],
        "replay": {"equal": True, "num_blocks": 6, "num_states": 1, "num_moves": 1},
    }
    return LiveFound(run=LiveRun(**known | changes), check_blocks=2, head={})


def test_a_residents_block_is_during_a_move_beside_one_in_the_control_or_at_an_edge_and_in_none() -> None:
    world = [came(0, 12.2), came(1, 13.6), came(2, 20.2), came(3, 22.0), came(4, 31.0)]
    found = parted([world], SEGMENTS, MOVES)
    blocks = [[arrival.block for arrival in part] for part in (found.during, found.between, found.control)]
    assert blocks == [[0], [1], [3]]


def test_what_a_move_costs_a_resident_is_told_of_blocks_beside_the_moved_world_and_apart_from_it() -> None:
    mine = [came(2, 11.0), replace(came(3, 12.4), worker="b"), came(4, 21.0), replace(came(5, 25.0), worker="b")]
    during = [came(0, 12.2, compute_s=0.51), came(1, 12.9, compute_s=0.24)]
    control = [came(2, 22.0), came(3, 23.0), came(4, 26.0, compute_s=0.2)]
    assert {place: [each.block for each in blocks] for place, blocks in beside(during, mine).items()} == {
        True: [0],
        False: [1],
    }
    assert a_run(mine, [*during, *control]).cost == pytest.approx((0.02 + 0.2) / 2)


def test_the_moved_worlds_blocks_are_told_apart_by_their_numbers() -> None:
    world = [came(number, 10.0 + number) for number in range(7)]
    assert [arrival.block for arrival in of_segments(world, SEGMENTS, with_moves=True)] == [2, 3]
    assert [arrival.block for arrival in of_segments(world, SEGMENTS, with_moves=False)] == [4, 5]
    assert late([came(1, 1.0, margin_s=-0.01), came(2, 2.0, margin_s=None), came(3, 3.0)])[0].block == 1


def test_a_replay_that_is_not_over_in_time_is_a_goal_missed_and_everything_else_is_kept(tmp_path: Path) -> None:
    (given_up,) = replayed_all([tmp_path / "none"], DOUBLE, [{}], within_s=0.0)
    found = a_run([came(2, 12.0), came(4, 22.0)], [came(0, 12.2), came(1, 22.0)], replay=together([given_up, given_up]))
    assert "the replay took longer than it may" in found.misses()
    assert found.fields()["commit_ms"]["median"] == 0.5


def test_a_run_that_meets_every_goal_says_so_and_how_many_worlds_would_fit() -> None:
    found = a_run([came(2, 12.0), came(3, 16.0), came(4, 22.0)], [came(0, 12.2), came(1, 22.0)])
    assert found.misses() == []
    assert found.blocks_a_move == 2.0
    assert found.cost == 0.0
    fields = found.fields()
    # A period has eight blocks: the moved world's, and those of seven others, or of six beside the check blocks.
    assert (fields["residents"]["fit_without_checks"], fields["residents"]["fit_with_checks"]) == (7, 6)
    assert fields["commit_ms"]["median"] == 0.5
    assert json.loads(json.dumps(fields))["replay"]["equal"] is True


@pytest.mark.parametrize(
    ("mine", "residents", "changes", "miss"),
    [
        ([came(2, 12.0, margin_s=-0.1)], [], {}, "1 blocks late with moves, 0 without"),
        ([], [came(0, 12.2, compute_s=0.6), came(1, 22.0)], {}, "residents' blocks over 3% longer in a move"),
        (
            [],
            [came(0, 12.2, margin_s=-0.1), came(1, 22.0)],
            {},
            "residents: 1 blocks late with moves, 0 without",
        ),
        ([], [], {"reports": []}, "0 moves committed"),
        ([], [], {"replay": {"equal": False, "num_moves": 1}}, "the replay is not equal"),
        ([], [], {"replay": {"equal": True, "num_moves": 0}}, "not every move's state was compared with the replay"),
        ([], [], {"seen": [Seen(damaged=1)]}, "frames or checks differ"),
    ],
)
def test_a_goal_that_is_missed_is_named(
    mine: list[Arrival], residents: list[Arrival], changes: dict[str, Any], miss: str
) -> None:
    assert a_run(mine, residents, **changes).misses() == [miss]


def test_a_shorter_control_may_have_as_great_a_share_of_late_blocks() -> None:
    moved = [came(2, 12.0, margin_s=-0.1), came(3, 13.0, margin_s=-0.1)]
    assert a_run([*moved, came(4, 22.0, margin_s=-0.1)], []).misses() == []


def test_a_block_of_each_moved_world_is_told_by_that_worlds_own_numbers() -> None:
    segments = [
        replace(segment, others=((first - 1, end - 1),)) for segment in SEGMENTS for first, end in [segment.blocks]
    ]
    worlds = [[came(number, 10.0 + number) for number in range(7)] for _ in "ab"]
    found = [of_segments(world, segments, with_moves=True, world=n) for n, world in enumerate(worlds)]
    assert [[arrival.block for arrival in blocks] for blocks in found] == [[2, 3], [1, 2]]
    both = a_run(worlds[0], [], segments=segments, others=[worlds[1]])
    assert both.fields()["blocks"]["moved"]["n"] == 4


def test_of_several_replays_all_must_be_equal_and_their_counts_are_one() -> None:
    counts = {"num_blocks": 3, "num_states": 2, "num_moves": 1}
    equal, other = {"equal": True, **counts}, {"equal": False, **counts}
    assert together([other]) is other
    assert together([equal, equal])["equal"] is True
    found = together([equal, other])
    assert (found["equal"], found["num_blocks"], found["num_moves"]) == (False, 6, 2)


def test_between_two_gpus_a_pause_may_be_longer() -> None:
    report = {**a_run([], []).committed[0], "pause_ms": 18.0}
    here = a_run([], [], reports=[report])
    assert here.misses() == ["pause p99 over 15 ms"]
    assert replace(here, gpus=("0", "1")).misses() == []
