"""What profiles of workers say of pauses."""

import json
from pathlib import Path
from typing import Any

from worldmove.cli.benches.profiles import of_pauses


def job(what: str, *, asked: float, took: float, thread: str = "engine") -> dict[str, Any]:
    ended = asked + 0.001 + took
    times = {"asked": asked, "began": asked + 0.001, "ended": ended, "resumed": ended + 0.002}
    return {"thread": thread, "what": what, **times, "cpu_s": took / 2, "loop_cpu_s": 0.003}


def profile(path: Path, **parts: Any) -> None:
    path.write_text(json.dumps({"jobs": [], "marks": [], "samples": [], **parts}))


def test_work_and_lines_count_in_pauses_alone_by_the_end_that_they_were_at(tmp_path: Path) -> None:
    profile(
        tmp_path / "w-1.json",
        jobs=[job("step", asked=0.5, took=0.1), job("freeze_in", asked=1.0, took=0.004)],
        samples=[
            [0.5, [["engine_0", "a.py:1 f", "a.py:1 f"]]],
            [1.001, [["engine_0", "state.py:2 g", "x.py:3 h"]]],
            [1.003, [["engine_0", "state.py:2 g", "x.py:3 h"]]],
            [1.5, []],
        ],
    )
    profile(
        tmp_path / "w-2.json",
        jobs=[job("install_tree", asked=1.010, took=0.002), job("step", asked=1.2, took=0.1)],
        marks=[
            {"at": 0.9, "side": "destination", "phase": "shadow"},
            {"at": 1.020, "side": "destination", "phase": "live"},
        ],
    )
    found = of_pauses(tmp_path)
    assert found["pauses"] == 1
    assert found["pauses_ms"] == [20.0]
    assert list(found["jobs_ms"]) == ["source engine: freeze_in", "destination engine: install_tree"]
    expected = {"n": 1, "queued": 1.0, "wall": 4.0, "cpu": 2.0, "loop_cpu": 3.0, "told": 2.0}
    assert found["jobs_ms"]["source engine: freeze_in"] == expected
    assert found["stood_ms"] == {"source engine_0: state.py:2 g > x.py:3 h": 19.0}


def test_without_a_move_there_is_nothing_to_say(tmp_path: Path) -> None:
    profile(tmp_path / "w-1.json", jobs=[job("step", asked=0.5, took=0.1)])
    assert of_pauses(tmp_path)["pauses"] == 0
