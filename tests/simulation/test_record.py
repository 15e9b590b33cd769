"""Long runs: what is kept of them, and how they go on."""

import json
from pathlib import Path

import pytest

from tests.simulation import batch as batches
from tests.simulation.__main__ import main


@pytest.fixture(autouse=True)
def _commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLDMOVE_COMMIT", "one")
    monkeypatch.setattr(batches, "PART", 2)


def test_a_run_that_reaches_its_limit_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "simulation.json"
    command = ("--seeds", "3", "--first", "40", "--out", str(out))
    assert main([*command, "--limit-s", "0"]) == 0
    assert "2 seeds, 0 broken" in (said := capsys.readouterr().out)
    assert "1 are left: the same command goes on" in said
    stopped = json.loads(out.read_text())
    assert (stopped["next_seed"], stopped["totals"]["runs"], stopped["commit"]) == (42, 2, "one")
    assert main(command) == 0
    assert "3 seeds, 0 broken" in (said := capsys.readouterr().out)
    assert "left" not in said.splitlines()[0]
    assert json.loads(out.read_text())["totals"]["runs"] == 3


def test_seeds_of_two_commits_are_not_counted_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "simulation.json"
    assert main(["--seeds", "1", "--out", str(out)]) == 0
    before = out.read_text()
    monkeypatch.setenv("WORLDMOVE_COMMIT", "two")
    assert main(["--seeds", "2", "--out", str(out)]) == 2
    assert "is of commit one, and this is two: move it away" in capsys.readouterr().err
    assert out.read_text() == before
