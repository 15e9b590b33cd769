"""Standard output is the data's alone: whatever an engine prints, of it and below it, stands on standard error."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import Ran
from tests.own_path import with_own_path
from worldmove.cli.exits import ExitCode

COMMAND = (sys.executable, "-c", "from worldmove.cli.main import main; main()")
MODULE = "tests.cli.chattering_engine:engine"
ENGINE = f"python:{MODULE}"
WAYS = ("printed", "written", "put", "printed elsewhere")


def ended(process: "subprocess.Popen[str]") -> Ran:
    out, err = process.communicate(timeout=100)
    return Ran(process.returncode, out, err)


def begun(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=with_own_path()
    )


def required_apart(ran: Ran, *whens: str) -> None:
    """What it printed is all on standard error."""
    for way in WAYS:
        assert f"{way} when" not in ran.out
        assert f"{way} when imported" in ran.err
    for when in whens:
        assert f"put {when}" in ran.err


@pytest.mark.slow
def test_a_server_and_a_verification_of_an_engine_that_prints_say_one_document_each(tmp_path: Path) -> None:
    record = tmp_path / "walk.record"
    with begun("serve", "--engine", ENGINE, "--port", "0", "--json", "--state", str(tmp_path / "state")) as server:
        try:
            assert server.stdout is not None
            url = Ran(0, server.stdout.readline(), "").document["url"]
            session = ended(begun("open", "--json", "--server", url)).document["session"]
            kept = ended(begun("record", session, "-o", str(record), "--now", "--json", "--server", url))
            assert kept.status == ExitCode.DONE, kept.err
        finally:
            server.terminate()
        served = ended(server)
    assert (served.status, served.out) == (ExitCode.DONE, "")
    required_apart(served, "when made")
    ran = ended(begun("verify", str(record), "--engine", ENGINE, "--json"))
    assert (ran.status, ran.document["schema"], ran.document["equal"]) == (ExitCode.DONE, "worldmove.verify", True)
    required_apart(ran, "when made", "when warmed up", "when opened", "at a step")
    ran = ended(begun("verify", str(record), "--engine", ENGINE))
    assert ran.out.startswith("equal over ")
    assert len(ran.out.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("doctor", "--engine", ENGINE),
        ("audit", MODULE, "--before", "1", "--blocks", "1", "--no-leaves"),
        ("bench", "move", "--preset", ENGINE, "-n", "1", "--repeats", "1", "--file-repeats", "1", "--no-scattered"),
    ],
    ids=lambda command: command[0],
)
def test_a_command_that_runs_an_engine_that_prints_says_one_document(command: tuple[str, ...]) -> None:
    ran = ended(begun(*command, "--json"))
    assert ran.status in (ExitCode.DONE, ExitCode.REFUSED), ran.err
    assert ran.document["schema"].startswith(f"worldmove.{command[0]}")
    required_apart(ran)


@pytest.mark.slow
def test_an_engine_that_prints_and_cannot_be_made_leaves_one_document_that_says_so() -> None:
    ran = ended(begun("doctor", "--engine", "python:tests.cli.chattering_engine:nothing", "--json"))
    assert ran.status != ExitCode.DONE
    assert ran.document["schema"] in ("worldmove.error", "worldmove.doctor")
    required_apart(ran)
