"""One command for a GPU host: each step within its limit, and none stops another."""

import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bench.gpu_all import Step, options_of, steps, take, write


def a_step(name: str, program: str, limit_s: float = 30.0, *, prints_result: bool = True) -> Step:
    return Step(name=name, command=(sys.executable, "-c", program), limit_s=limit_s, prints_result=prints_result)


def test_a_step_that_fails_or_hangs_says_so_and_the_next_has_its_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [
        a_step("latents", "print('loading'); print('{\"num_bytes\": 7}')"),
        a_step("complete", "raise SystemExit('no device is here')"),
        a_step("live", "import time; time.sleep(60)", limit_s=0.5),
    ]
    heard: list[list[str]] = []
    found = take(chosen, tmp_path, 60.0, time.monotonic, lambda so_far: heard.append([*so_far["steps"]]))
    assert heard == [["latents"], ["latents", "complete"], ["latents", "complete", "live"]]
    assert found["steps"]["latents"]["status"] == 0
    assert (found["steps"]["complete"]["status"], found["steps"]["complete"]["why"]) == (1, "it failed")
    assert "no device is here" in found["steps"]["complete"]["errors"]
    assert "longer than" in found["steps"]["live"]["why"]
    write(tmp_path, found, "here")
    moves = json.loads((tmp_path / "move-here.json").read_text(encoding="utf-8"))
    assert moves["latents"] == {"num_bytes": 7}
    assert moves["hardware"]["cores"] >= 1
    assert list(json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))["steps"]) == [s.name for s in chosen]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "all.json", "complete.log", "live.log", "move-here.json"
    ]  # fmt: skip
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_what_no_time_is_left_for_is_not_begun(tmp_path: Path) -> None:
    instants = iter([0.0, 11.0, 12.0, 13.0])
    found = take([a_step("tests", "raise SystemExit(1)")], tmp_path, 10.0, lambda: next(instants))
    assert found["steps"] == {"tests": {"status": None, "why": "no time was left"}}
    instants = iter([0.0, 4.0, 5.0, 6.0])
    long = replace(a_step("play", "raise SystemExit(1)"), needs_s=7.0)
    assert take([long], tmp_path, 10.0, lambda: next(instants))["steps"]["play"]["why"] == "no time was left"


def test_the_limits_of_what_one_call_takes_are_within_ten_minutes_but_for_the_live_loop(tmp_path: Path) -> None:
    options = options_of(["--out", str(tmp_path)])
    assert options.budget < 600
    assert all(step.limit_s < 600 for step in steps(options, tmp_path))
