import pytest

from bench.figures import by_machine, is_of_now, texts
from bench.figures_live import live
from bench.figures_move import BEGIN, END, with_moves
from bench.figures_pair import in_short, pair
from bench.figures_staged import staged
from bench.figures_text import page
from bench.markdown import paragraph
from bench.staged import summary
from bench.staged_ends import Pulls
from worldmove.cli.benches.direct import Direct


def test_the_page_of_figures_and_the_readme_are_what_the_results_say() -> None:
    for path, text in texts(by_machine()).items():
        assert path.read_text(encoding="utf-8") == text


def test_the_table_of_moves_has_a_row_for_what_was_measured_and_none_for_what_was_not() -> None:
    found = {
        "num_bytes": 2_000_000_000,
        "outcomes": {"committed": 20},
        "peers_ms": {"one flat copy": 0.5, "one flat copy to another GPU": "fewer than two GPUs are here"},
        "between_processes": {"scattered": {"match_ms": {"median": 2.0}, "match_in_copies": 4.0}},
        "match_ms": None,
        "commit_ms": {"median": 1.25},
        "pause_ms": {"median": 12.5},
        "phase_starts_ms": {},
    }
    result = {
        "hardware": {"accelerator": "a GPU"},
        "versions": {"torch": "9"},
        "commit": {"sha": "c" * 40},
        "day": "2026-01-02",
        "latents": found,
    }
    before = f"head\n{BEGIN}\nold\n{END}\ntail"
    text = with_moves(before, {"machine": result})
    assert text.startswith("head\n")
    assert text.endswith("\ntail")
    assert "old" not in text
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("|")]
    assert [row[-1].removesuffix(" |") for row in rows] == [
        "latents, 2.00 GB", "---", "0.50", "2.00 (4.0 copies)", "12.5", "1.25"
    ]  # fmt: skip
    assert with_moves(text, {"machine": result}) == text


def test_the_path_through_host_memory_is_told_with_its_share_of_the_link() -> None:
    num_bytes = 3_000_000_000
    found = Pulls(num_bytes=num_bytes, connect_ms=[90.0, 1.0], pull_ms=[60.0], scattered_ms=[61.0])
    times = {"read": [1.0], "landed": [61.0], "matched": [75.0]}
    move = Direct(num_bytes=num_bytes, num_storages=9, parts=times, copy_ms=[1.0])
    rates = {"out": 51e9, "in": 55e9, "both": 50e9, "ring out": 52e9, "ring in": 53e9}
    link = {name: [rate] for name, rate in rates.items()}
    told = summary(link, {"pinned": [80.0], "released": [9.0]}, {"8 x 16 MiB": [found]}, {"reference:x": move})
    result = {
        "begun_at": "2026-01-02T03:04:05",
        "commit": {"sha": "c" * 40},
        "options": {"repeats": 20},
        "summary": told,
    }
    text = "".join(staged(result))
    assert "51.0 GB/s" in text
    assert "| a pull by a ring of 8 x 16 MiB | 3.00 | 60.0 | 50.0 | 98% |" in text
    assert "| **verified move of `reference:x`**, from freeze to match | 3.00 | 75.0 | 40.0 | 78% |" in text


def test_a_live_loop_is_told_with_what_it_missed() -> None:
    spread = {"n": 2, "median": 1.0, "p99": 2.0, "max": 3.0}
    blocks = {"n": 40, "late": 1, "compute_ms": spread}
    result = {
        "begun_at": "2026-01-02T03:04:05",
        "commit": {"sha": "c" * 40},
        "engine": "reference:x",
        "moves": 200,
        "num_bytes": 2_700_000_000,
        "blocks_a_move": 2.05,
        "period_ms": 480.0,
        "residents": {"n": 2, "cost_of_a_move": 0.021, "fit_without_checks": 2, "fit_with_checks": 1},
        "pause_ms": spread,
        "commit_ms": None,
        "blocks": {"moved": blocks, "control": blocks},
        "residents_blocks": {"during_a_move": blocks, "control": blocks},
        "replay": {"equal": True, "num_blocks": 900, "num_states": 50, "num_moves": 200},
        "misses": ["pause p99 over 15 ms"],
    }
    text = " ".join("\n".join(live(result)).split())
    assert "A resident's block takes +2.1% during a move" in text
    assert "one every 2.0 blocks of 480 ms" in text
    assert "Missed: pause p99 over 15 ms." in text
    assert "| pause | 1.00 | 2.00 | 3.00 |" in text


def test_two_gpus_have_their_goals_and_when_each_part_of_a_move_ended() -> None:
    spread = {"median": 4.6}
    direct = {"match_ms": spread, "match_in_copies": 1.07, "parts_ms": {"landed": {"median": 4.4}, "matched": spread}}
    result = {
        "name": "pair-h200x2",
        "day": "2026-01-02",
        "commit": {"sha": "c" * 40},
        "versions": {"torch": "9"},
        "hardware": {"accelerator": "a GPU", "accelerators": [{"name": "a GPU"}] * 2},
        "goals": [
            {"figure": "one", "goal": "<= 1", "measured": "0.5", "is_met": True},
            {"figure": "other", "goal": "<= 1", "measured": "2", "is_met": False},
            {"figure": "third", "goal": "0", "measured": "-", "is_met": None},
        ],
        "results": {
            "latents": {
                "num_bytes": 2_000_000_000,
                "peers_ms": {"one copy for each tensor, to another GPU": 11.2},
                "between_processes": {"slot-resident": direct},
                "pause_ms": {"n": 3, "median": 7.5, "max": 9.0},
                "match_ms": None,
                "commit_ms": None,
                "phase_starts_ms": {},
                "phases_ms": {},
            }
        },
    }
    text = "\n".join(pair(result))
    assert "2 of a GPU" in text
    for row in ("| one | <= 1 | 0.5 | met |", "| other | <= 1 | 2 | **not met** |", "| third | 0 | - | not measured |"):
        assert row in text
    assert "| every byte has landed | 4.40 |" in text
    assert "11.2" in text
    assert page({"h200x2": {"pair": result}}).endswith(text)
    readme = with_moves(f"{BEGIN}{END}", {}, list(in_short(result, "h200x2")))
    assert "| other | <= 1 | 2 | **not met** |" in readme
    assert "| third |" not in readme
    assert "3 moves as admission chose: a pause of 7.5 ms by median and 9.0 ms at most." in readme


def test_what_is_older_than_the_moves_under_play_of_its_machine_is_not_for_the_readme() -> None:
    move = {"day": "2026-01-02"}
    assert is_of_now({"move": move})
    assert is_of_now({"move": move, "under_play": {"begun_at": "2026-01-02T23:00:00+00:00"}})
    assert not is_of_now({"move": move, "under_play": {"begun_at": "2026-01-03T00:00:00+00:00"}})
    assert not is_of_now({})


def test_a_readme_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no place"):
        with_moves("nothing", {})


def test_without_results_the_page_says_so() -> None:
    assert "Nothing was measured" in page({})


def test_code_is_not_broken_over_lines() -> None:
    words = "word " * 23
    assert paragraph(words + "`make bench`.").splitlines() == [words.strip(), "`make bench`."]
