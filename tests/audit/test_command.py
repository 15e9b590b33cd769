"""The command ``audit``: its document, its table, its exit status."""

from contextlib import nullcontext

import pytest

from tests.cli.command import worldmove
from worldmove.audit.workplace import Workplace
from worldmove.cli.exits import ExitCode


@pytest.fixture(autouse=True)
def shared(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command starts processes of its own: two imports of torch each."""
    monkeypatch.setattr("worldmove.cli.audit.Workplace", lambda: nullcontext(workplace))


def test_the_island_gives_no_alarm_and_ends_with_0() -> None:
    # Each leaf is dropped of the tiny world, in test_audit, which has the same: here that would be half of the time.
    ran = worldmove("audit", "worldmove.engine.reference:island", "--json", "--no-leaves")
    assert ran.status == ExitCode.DONE
    found = ran.document
    assert (found["schema"], found["clean"], found["exact"]) == ("worldmove.audit", True, True)
    assert [(b["name"], b["blocks"]) for b in found["boundaries"]] == [("busy", 20), ("calm", 10)]
    assert found["places"] == []
    assert found["complete"]
    assert found["objects"] > 1_000


def test_what_is_missing_comes_first_and_ends_with_3() -> None:
    ran = worldmove("audit", "examples.walker:forgetful", "--before", "3", "--blocks", "1")
    header, first, *_ = ran.out.splitlines()
    assert ran.status == ExitCode.REFUSED
    assert header.split() == ["VERDICT", "PATH", "KIND", "SIZE(bytes)", "WHY"]
    assert first.split()[:4] == ["missing", "session.next", "int", "8"]
    assert "not in its state: session.next" in ran.err


def test_what_is_not_taken_comes_first_is_a_verdict_and_ends_with_3() -> None:
    asked = ("audit", "tests.audit.omissions:NoStrayRelease", "--before", "1", "--blocks", "1", "--no-leaves")
    ran = worldmove(*asked)
    assert ran.status == ExitCode.REFUSED
    assert ran.out.splitlines()[1].startswith("refused  release of a key that is not down ")
    assert "; it takes no release of a key that is not down; " in ran.err
    found = worldmove(*asked, "--json").document
    assert (found["clean"], found["exact"], found["places"]) == (False, True, [])
    assert "release of a key that is not down" in [row["input"] for row in found["refused"]]


def test_a_name_that_names_no_engine_ends_with_2() -> None:
    ran = worldmove("audit", "island")
    assert ran.status == ExitCode.USAGE
    assert ran.err.strip() == "island names no engine; write package.module:attribute."


def test_an_engine_that_hangs_is_one_sentence_and_ends_with_3() -> None:
    ran = worldmove("audit", "tests.audit.omissions:Hangs", "--before", "1", "--blocks", "1", "--limit", "1")
    assert ran.status == ExitCode.REFUSED
    assert ran.err.splitlines()[-1] == (
        "tests.audit.omissions:Hangs was not through its blocks from the beginning within 1 s; "
        "if it is only slow give it more with --limit, if it hangs see where with --debug."
    )
