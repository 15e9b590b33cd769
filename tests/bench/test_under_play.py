"""Moves under play: how they are asked for, where admission's edge is looked for, and what is said of them."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from bench.course import Course, Made
from bench.edges import least_mbit, link_of
from bench.figures_play import edges, resident, under_play
from bench.gpu_play import options_of, record_of, steps, with_replay
from bench.record import Recorder, dumped
from bench.sanity import said
from bench.under_play import keep
from bench.under_play_found import move_row, residents_of, samples_of, summary_of
from bench.ways import Ask, ways_of, woven
from worldmove.cli.benches.live_blocks import Segment
from worldmove.cli.benches.player import Seen
from worldmove.cli.benches.tap import Arrival
from worldmove.errors import UserError
from worldmove.transport.link_speed import rate_of_link


def test_ways_say_strategy_link_and_count() -> None:
    assert ways_of("any@10gbit*20,replay@1.5mbit,pre-copy*2") == [
        (Ask(None, "10gbit"), 20), (Ask("replay", "1.5mbit"), 1), (Ask("pre-copy", None), 2)
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["any@10", "any@0gbit", "any*x", "@1gbit"])
def test_what_says_no_way_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="says no way"):
        ways_of(text)


def test_every_way_is_as_far_at_any_time() -> None:
    order = [ask.link for ask in woven(ways_of("any@1gbit*2,any@2gbit*8"))]
    assert [link for link in order if link == "1gbit"] == ["1gbit"] * 2
    assert [order[:5].count("1gbit"), order[5:].count("1gbit")] == [1, 1]


@pytest.mark.parametrize("mbit", [0.033, 7.25, 36_900.0])
def test_the_edge_of_admission_is_found_by_plans_alone(mbit: float) -> None:
    def plan(link: str) -> dict[str, Any]:
        rate = rate_of_link(link)
        assert rate is not None
        return {"strategies": [{"strategy": "boundary copy", "admitted": rate >= mbit * 125_000}]}

    assert least_mbit(plan, "boundary-copy") == pytest.approx(mbit, rel=0.02)


def test_a_strategy_that_no_bandwidth_admits_has_no_edge() -> None:
    assert least_mbit(lambda _: {"strategies": [{"strategy": "replay", "admitted": False}]}, "replay") is None


@pytest.mark.parametrize(("mbit", "link"), [(0.5, "500.000kbit"), (36_900.0, "36.900gbit"), (12.0, "12.000mbit")])
def test_a_bandwidth_is_named_as_a_link(mbit: float, link: str) -> None:
    assert link_of(mbit) == link
    assert rate_of_link(link) == pytest.approx(mbit * 125_000)


def report(**changes: Any) -> dict[str, Any]:
    told = {
        "outcome": "committed",
        "reason": "done",
        "detail": "",
        "strategy": "replay",
        "transport": "throttled-1gbit-shm",
        "to": "worker-2",
        "num_bytes": 10,
        "moved_bytes": 0,
        "pulled_bytes": 0,
        "in_place_bytes": 10,
        "followed_bytes": 0,
        "plain": "",
        "proof": "checked 3/3",
        "expected": {"pause_ms": 9.0, "before_ms": 100.0, "terms": {"freeze": 9.0}},
        "pause_ms": 8.0,
        "gap_ms": 0.0,
        "took_ms": 900.0,
        "source_digest": "",
        "destination_digest": "",
        "phases": [{"side": "source", "name": "freeze", "start_ms": 0.0, "end_ms": 1.0}],
    }
    return told | changes


def arrival(worker: str, block: int, at: float, margin_s: float = 0.1) -> Arrival:
    return Arrival(
        worker=worker, block=block, epoch=1, arrived=at, margin_s=margin_s, compute_s=0.01, frames=(f"f{block}",)
    )


def a_course(*made: Made, resident_margin_s: float = 0.1) -> Course:
    """Two blocks without moves, then two with; a resident at the second worker beside them."""
    mine = [arrival("worker-1", block, 1.0 + block) for block in range(4)]
    resident = [arrival("worker-2", block, 1.0 + block, resident_margin_s) for block in range(4)]
    found = Course(period_ms=480.0, made=list(made), arrivals=[mine, resident], seen=[Seen(), Seen()])
    found.segments = [
        Segment(with_moves=False, blocks=(0, 2), span=(0.5, 2.5)),
        Segment(with_moves=True, blocks=(2, 4), span=(2.5, 4.5)),
    ]
    found.seen[0].digests = {block: f"f{block}" for block in range(4)}
    return found


def one(**changes: Any) -> Made:
    return Made(ask=Ask(None, "1gbit"), span=(2.8, 3.2), blocks=(2, 3), report=report(**changes))


def test_a_move_is_equal_where_every_part_was_compared() -> None:
    assert move_row(one())["digests_equal"]
    assert not move_row(one(proof="not checked (aborted)"))["digests_equal"]
    assert not move_row(one(source_digest="a", destination_digest="b"))["digests_equal"]


def test_a_run_says_by_way_whether_its_pauses_are_good() -> None:
    assert summary_of(a_course(one()))["ways"]["any, 1gbit"]["goal_met"]
    assert not summary_of(a_course(one(), one(pause_ms=10.5)))["ways"]["any, 1gbit"]["goal_met"]
    assert summary_of(a_course(one(strategy="boundary copy", pause_ms=19.0)))["ways"]["any, 1gbit"]["goal_met"]


def test_what_was_not_moved_is_counted_and_no_pause() -> None:
    refused = one(outcome="refused", reason="too_slow", pause_ms=None, gap_ms=None, proof="not checked (refused)")
    found = summary_of(a_course(one(), refused))
    assert (found["moves"], found["not_moved"]) == (1, {"refused: too_slow": 1})


def test_a_residents_blocks_are_told_apart_by_the_moves_to_its_worker() -> None:
    found = residents_of(a_course(one(), resident_margin_s=-0.1))
    assert [found[kind]["late"] for kind in ("during_a_move_to_it", "beside_moves", "control")] == [1, 1, 2]
    away = residents_of(a_course(one(to="worker-1")))
    assert [away[kind]["n"] for kind in ("during_a_move_to_it", "beside_moves")] == [0, 2]


def test_frames_that_the_player_saw_are_compared_with_those_that_were_taken() -> None:
    found = a_course(one())
    assert summary_of(found)["frames"]["equal_to_the_workers"] == 4
    found.seen[0].digests[1] = "other"
    assert summary_of(found)["frames"]["equal_to_the_workers"] == 3
    assert samples_of(found)["blocks"][0][2] == [2, 1, 3.0, 100.0, 10.0]


def test_the_steps_of_one_gpu_command_leave_room_in_their_limits(tmp_path: Any) -> None:
    options = options_of(["--out", str(tmp_path)])
    made = {step.name: step for step in steps(options, tmp_path)}
    assert options.budget < 600
    assert made["play"].limit_s > options.play_s
    assert not {"island", "sanity"} & set(options.only.split(","))
    assert made["play"].limit_s + made["verify"].limit_s < 600
    assert all(step.limit_s < 600 for name, step in made.items() if name != "island")
    assert str(record_of(options, tmp_path)) in made["verify"].command
    assert "--apart" in made["resident"].command  # blocks that always lie beside others' are reckoned as long anywhere


def result_of(found: Course) -> dict[str, Any]:
    """A run as it is filed."""
    replay = {"num_blocks": 4, "num_states": 2, "num_moves": 1, "equal": True}
    return {
        "begun_at": "2026-01-02T03:04:05",
        "commit": {"sha": "c" * 40},
        "options": {"engine": "reference:x"},
        "summary": {**summary_of(found), "replay": replay},
        "samples": samples_of(found),
    }


def test_a_run_is_told_by_way_with_what_was_expected_and_who_was_late() -> None:
    text = " ".join("\n".join(under_play(result_of(a_course(one())))).split())
    assert "| any, 1gbit | 1 | replay (1) | 8.0 | 8.0 | 8.0 | 9.0 | 0 | met |" in text
    assert "90th percentile over 1 moves is 1.0 ms, 0.50 of what is allowed" in text
    assert "Late blocks: 0 of 2 with moves, 0 of 2 in the control." in text
    assert "4 blocks, 2 states and 1 moves equal: met." in text
    assert "0 of 1 of its blocks were late" in " ".join("\n".join(resident(result_of(a_course(one())))).split())


def test_the_edge_of_admission_is_told_with_what_would_have_helped() -> None:
    detail = "Not moved, nothing changed. It is too slow; it would take a path of 4 GB/s. Your world goes on."
    refused = one(outcome="refused", reason="too_slow", detail=detail, pause_ms=None, gap_ms=None)
    found = a_course(one(), refused)
    found.edges = [
        {"strategy": "boundary-copy", "side": "below", "least_mbit": 36_900.0, "move": 1},
        {"strategy": "boundary-copy", "side": "above", "least_mbit": 36_900.0, "move": 0},
        {"strategy": "replay", "side": "below", "least_mbit": None},
    ]
    rows = edges(result_of(found)).splitlines()[2:]
    assert rows[0].startswith("| boundary copy | 36.900 | 1gbit: refused, too_slow; it would take a path of 4 GB/s |")
    assert rows[0].endswith("| 1gbit: moved, 8.0 ms (9.0 expected, after 0.1 s) |")
    assert rows[1] == "| replay | - | not tried | - |"


def test_each_try_at_an_edge_has_a_row_of_its_own() -> None:
    refused = one(outcome="refused", reason="too_slow", detail="Not moved.", pause_ms=None, gap_ms=None)
    found = a_course(one(), refused, one(pause_ms=9.5))
    below, above = ({"strategy": "streaming", "side": side, "least_mbit": 9_000.0} for side in ("below", "above"))
    other = {"strategy": "pre-copy", "side": "below", "least_mbit": None}
    found.edges = [below | {"move": 1}, above | {"move": 0}, below | {"move": 1}, above | {"move": 2}, other]
    found.edges += [below | {"move": 1}]
    rows = edges(result_of(found)).splitlines()[2:]
    assert [row.split(" | ")[0].removeprefix("| ") for row in rows] == ["streaming"] * 2 + ["pre copy", "streaming"]
    assert ["8.0 ms" in rows[0], "9.5 ms" in rows[1], rows[3].endswith("| - |")] == [True] * 3


def test_what_the_record_came_to_is_put_into_the_result(tmp_path: Path) -> None:
    path = tmp_path / "under_play-here.json"
    path.write_text(dumped({"summary": {"replay": None, "moves": 3}, "samples": {"moves": []}}), encoding="utf-8")
    with_replay(path, {"equal": True})
    with_replay(tmp_path / "under_play-nowhere.json", {"equal": True})
    assert json.loads(path.read_text(encoding="utf-8"))["summary"] == {"replay": {"equal": True}, "moves": 3}


def test_what_is_kept_of_a_run_that_is_ended_early_are_its_moves(tmp_path: Path) -> None:
    out = tmp_path / "under_play-here.json"
    keep(Recorder("under_play", argparse.Namespace(out=str(out))), out, a_course(one(), one(followed_bytes=4)))
    kept = json.loads(out.read_text(encoding="utf-8"))
    assert kept["summary"] == {"moves": 2, "is_whole": False}
    assert [row["followed_bytes"] for row in kept["samples"]["moves"]] == [0, 4]


def test_a_move_is_said_with_its_phases_in_their_order() -> None:
    phases = [
        {"side": "destination", "name": "land", "start_ms": 2.0, "end_ms": 3.5},
        {"side": "source", "name": "freeze", "start_ms": 0.0, "end_ms": 1.0},
    ]
    lines = said(move_row(one(phases=phases))).splitlines()
    assert lines[0].startswith("any 1gbit: outcome committed, reason done, pause_ms 8.0")
    assert [line.split()[0] for line in lines[2:]] == ["source.freeze", "destination.land"]
    assert lines[3].split()[1:] == ["2.0", "3.5", "1.5"]
