import argparse
import json
import subprocess
from pathlib import Path

import pytest

from bench.record import ROOT, Recorder, Usage, shares
from worldmove.cli.benches.machine import commit


def test_a_result_says_where_it_comes_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "deep" / "x.json"
    Recorder("x", argparse.Namespace(out=str(out), engine="e")).write({"a": 1.5}, {"rows": [{"b": 1}], "c": [1, 2]})
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["options"] == {"engine": "e"}
    assert found["summary"] == json.loads(capsys.readouterr().out) == {"a": 1.5}
    assert found["samples"] == {"rows": [{"b": 1}], "c": [1, 2]}
    assert found["hardware"]["cores"] >= 1
    assert found["versions"]["torch"] != "absent"


def test_results_alone_do_not_make_the_code_another() -> None:
    status = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False)
    changed = [line for line in status.stdout.splitlines() if "bench/results" not in line]
    assert commit()["clean"] is not bool(changed)


def test_what_others_used_is_what_was_busy_and_not_ours() -> None:
    before = Usage(wall_s=10.0, busy_s=5.0, stolen_s=0.0, own_s=1.0)
    after = Usage(wall_s=20.0, busy_s=20.0, stolen_s=1.0, own_s=6.0)
    assert shares(before, after) == {"seconds": 10.0, "own_cores": 0.5, "other_cores": 1.0, "stolen_cores": 0.1}
