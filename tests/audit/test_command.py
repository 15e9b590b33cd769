"""The command ``audit``: its document, its table, its exit status."""

from pathlib import Path

import pytest

from tests.cli.test_commands import worldmove
from worldmove.cli.exits import ExitCode


def test_the_island_gives_no_alarm_and_ends_with_0() -> None:
    ran = worldmove("audit", "worldmove.engine.reference:island", "--json")
    assert ran.status == ExitCode.DONE
    found = ran.document
    assert (found["schema"], found["clean"], found["exact"], found["blocks"]) == ("worldmove.audit", True, True, 20)
    assert found["places"] == []
    assert {leaf["verdict"] for leaf in found["leaves"]} == {"needed"}
    assert sum(leaf["bytes"] for leaf in found["leaves"]) > 12_000_000


def test_what_is_missing_comes_first_and_ends_with_3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    ran = worldmove("audit", "tests.audit.omissions:Index", "--before", "7", "--blocks", "1")
    header, first, *_ = ran.out.splitlines()
    assert ran.status == ExitCode.REFUSED
    assert header.split() == ["VERDICT", "PATH", "KIND", "SIZE(bytes)", "WHY"]
    assert first.split()[:4] == ["missing", "session.index", "int", "8"]
    assert "not in its state: session.index" in ran.err


def test_a_name_that_names_no_engine_ends_with_2() -> None:
    ran = worldmove("audit", "island")
    assert ran.status == ExitCode.USAGE
    assert ran.err.strip() == "island names no engine; write package.module:attribute."
