"""The table of two GPUs: each goal can be met, missed, or not measured; two commands come to one table."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench import under_play
from bench.gpu_pair import joined, options_of, steps, with_files
from bench.pair_goals import LINKS, rows, text
from bench.ways import ways_of


def a_run() -> dict[str, Any]:
    """What every step brings where every goal is met."""
    way = {"moves": 3, "strategies": {"replay": 3}, "pause_ms": {"p50": 6.0, "max": 9.0}, "goal_met": True}
    direct = {"match_ms": {"median": 4.6}, "copy_ms": {"median": 4.3}, "match_in_copies": 1.07}
    return {
        "doctor": {"checks": [{"name": f"the path from {a} to {b}, ..", "ok": True} for a in "01" for b in "01"]},
        "alike": {
            "alike": {"num_fields": 40, "differences": [], "canaries_equal": True},
            "refused": {"outcome": "refused", "reason": "environment", "detail": "x is 1", "names_the_fields": True},
        },
        "latents": {
            "between_processes": {"slot-resident": direct, "scattered": direct},
            "peers_ms": {"NCCL, one flat tensor": 4.5, "torch.save and torch.load through memory": 2500.0},
        },
        "play": {
            "pause_ms": {"median": 11.0, "p99": 19.0},
            "moves": 200,
            "directions": {"a to b": 100, "b to a": 100},
            "blocks": {"moved": {"n": 9, "late": 0}, "control": {"n": 3, "late": 0}},
            "replay": {"equal": True, "num_blocks": 9, "num_states": 2, "num_moves": 200},
        },
        "links": {
            "summary": {
                "ways": {f"any, {link}": way for link in LINKS},
            }
        },
        "crowd": {
            "summary": {
                "strategies": {"replay": 3},
                "residents": {"n": 2, "during_a_move_to_it": {"n": 8, "late": 0}},
            }
        },
    }


def test_a_run_that_meets_every_goal_says_so_in_every_row() -> None:
    assert [row.is_met for row in rows(a_run())] == [True] * 15
    assert "NOT" not in text(rows(a_run()))


@pytest.mark.parametrize(
    ("path", "value", "figure"),
    [
        ("latents/between_processes/slot-resident/match_in_copies", 1.16, "verified move, latents, slot-resident"),
        ("latents/between_processes/scattered/match_in_copies", 1.31, "verified move, latents, scattered"),
        ("latents/peers_ms/NCCL, one flat tensor", 4.0, "against NCCL send and receive"),
        ("latents/peers_ms/NCCL, one flat tensor", "fewer than two GPUs are here", "against NCCL send and receive"),
        ("latents/peers_ms/torch.save and torch.load through memory", 2000.0, "against torch.save and torch.load"),
        ("play/pause_ms/p99", 20.1, "complete, both directions at once"),
        ("play/moves", 199, "complete, both directions at once"),
        ("play/directions", {"a to b": 200}, "complete, both directions at once"),
        ("play/blocks/moved/late", 1, "late blocks with moves"),
        ("play/replay/equal", False, "every block against a replay"),
        ("links/summary/ways/any, 10gbit/goal_met", False, "pause at 10gbit"),
        ("links/summary/ways/any, 1gbit/moves", 2, "pause at 1gbit"),
        ("crowd/summary/residents/during_a_move_to_it/late", 1, "residents' late blocks"),
        ("crowd/summary/strategies", {}, "residents' late blocks"),
        ("crowd/summary/residents/n", 1, "residents' late blocks"),
        ("alike/alike/differences", [{"field": "device.name"}], "canary and environment"),
        ("alike/alike/canaries_equal", False, "canary and environment"),
        ("alike/refused/names_the_fields", False, "a forced difference"),
        ("alike/refused/outcome", "committed", "a forced difference"),
        ("doctor/checks", [], "every path between two GPUs"),
    ],
)
def test_a_goal_that_is_missed_is_the_only_one_that_says_so(path: str, value: object, figure: str) -> None:
    found = json.loads(json.dumps(a_run()))  # no part is another's too
    *parents, last = path.split("/")
    holder = found
    for name in parents:
        holder = holder[name]
    holder[last] = value
    (missed,) = [row.figure for row in rows(found) if row.is_met is not True]
    assert missed.startswith(figure)


def test_a_step_that_brought_nothing_or_something_else_is_not_measured() -> None:
    assert {row.is_met for row in rows({})} == {None}
    broken = [row for row in rows({"play": {"error": "x"}}) if "brought no" in row.measured]
    assert len(broken) == 3


def test_two_commands_come_to_one_table_and_the_later_counts() -> None:
    parts = a_run()
    earlier = {"steps": {"play": {"status": 1}, "alike": {"status": 0}}, "results": {"alike": parts["alike"]}}
    later = {"begun_at": "2026-11-30T", "steps": {"play": {"status": 0}}, "results": {"play": parts["play"]}}
    found = joined(earlier, later, "here")
    assert {name: step["status"] for name, step in found["steps"].items()} == {"play": 0, "alike": 0}
    assert sum(goal["is_met"] is True for goal in found["goals"]) == 5
    assert found["name"] == "pair-here"


def test_what_a_step_wrote_to_a_file_comes_into_the_one_file_and_its_log_goes(tmp_path: Path) -> None:
    for name in ("links.json", "links.log", "links.record", "tests.log", "play.log"):
        (tmp_path / name).write_text(json.dumps({"summary": {}}), encoding="utf-8")
    steps_ended = {"links": {"status": 0}, "tests": {"status": 0}, "play": {"status": 1}}
    found = with_files({"steps": steps_ended, "results": {}}, tmp_path)
    assert found["results"] == {"links": {"summary": {}}}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["links.json", "play.log", "tests.log"]


def test_of_a_run_whose_links_were_taken_beside_others_those_count() -> None:
    found = a_run()
    found["links"]["summary"] |= found.pop("crowd")["summary"]
    assert all(row.is_met for row in rows(found))
    found["links"]["summary"]["residents"] = {"n": 0}
    assert [row.figure for row in rows(found) if row.is_met is None] == ["residents' late blocks in a catch-up"]


def test_worlds_that_play_beside_moves_begin_apart_and_their_number_is_told(tmp_path: Path) -> None:
    options = options_of(["--out", str(tmp_path), "--preset", "matrix-tiny", "--links-residents", "3"])
    taken = {step.name: step.command for step in steps(options, tmp_path)}
    for name, residents in (("links", 3), ("crowd", 2)):
        _, module, *arguments = taken[name][1:]
        assert module == "bench.under_play"
        read = under_play.options_of(arguments)
        assert (read.residents, read.apart, read.engine, read.gpus) == (residents, True, "reference:matrix-tiny", "0,1")
        assert read.out == f"{tmp_path}/{name}.json"
        assert ways_of(read.ways)


def test_every_step_is_on_both_gpus_and_within_ten_minutes(tmp_path: Path) -> None:
    options = options_of(["--out", str(tmp_path), "--gpus", "2,3"])
    taken = steps(options, tmp_path)
    assert options.budget < 600
    assert all(step.limit_s < 600 for step in taken)
    assert [step.name for step in taken if "2,3" not in step.command] == ["tests", "doctor"]
