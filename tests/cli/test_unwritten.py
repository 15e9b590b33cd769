"""What a command has done is what it says it has done, whether or not its standard output can be written."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import structlog

from tests.cli.command import Ran, worldmove
from tests.cli.outputs import full, gone, unusable
from tests.cli.test_recording import WHOLE
from tests.own_path import with_own_path
from tests.state.test_saved import saved
from worldmove.cli.exits import ExitCode
from worldmove.cli.main import app, hoist, run
from worldmove.cli.no_answer import ServerError
from worldmove.state import capture
from worldmove.worker.standard_streams import text_to

Place = Callable[[], AbstractContextManager[int]]
COMMAND = (sys.executable, "-c", "from worldmove.cli.main import main; main()")

MOVED: Mapping[str, Any] = {
    "session": "s-1",
    "outcome": "committed",
    "reason": "done",
    "sentence": "It moved.",
    "to": "b",
    "pause_ms": 3.0,
    "gap_ms": 0.0,
    "took_ms": 20.0,
    "num_bytes": 1000,
    "proof": "checked 7",
    "expected": None,
}
ABORTED = {**MOVED, "outcome": "aborted", "reason": "silent", "sentence": "It did not move."}

CHANGING: Mapping[str, tuple[str, Any, int, str]] = {
    "open": ("open", {"session": "s-1"}, 0, "s-1 was opened."),
    "open --from": ("open --from WORLD", {"session": "s-1"}, 0, "s-1 was opened."),
    "protect": ("protect s-1 --every 8", {"session": "s-1"}, 0, "s-1: a snapshot every 8 blocks."),
    "move": ("move s-1 --to b", MOVED, 0, "s-1 moved to b: pause 3.0 ms"),
    "move, aborted": ("move s-1 --to b", ABORTED, 4, "s-1 not moved: aborted (silent)."),
    "cancel": ("cancel s-1", ABORTED, 0, "s-1 not moved: aborted (silent)."),
    "close": ("close s-1", None, 0, "s-1 closed."),
    "record": ("record s-1 -o OUT", WHOLE, 0, "OUT: 4 blocks"),
    "save": ("save s-1 -o OUT", Path("WORLD"), 0, "OUT: s-1 before block 9"),
}
"""By name: the command, the server's answer, the status where all can be written, and what is said to be done."""
READING: Mapping[str, tuple[str, Any]] = {
    "workers": ("workers", {"workers": []}),
    "sessions": ("sessions", {"sessions": []}),
    "moves": ("moves", {"moves": []}),
    "failovers": ("failovers", {"failovers": []}),
    "inspect": ("inspect WORLD", None),
}
SEEN_ELSEWHERE = {
    "serve": "below, as a process",
    "demo": "is serve",
    "plan": "writes as inspect does",
    "doctor": "writes as inspect does",
    "verify": "writes as inspect does",
    "audit": "writes as inspect does",
    "bench": "writes as inspect does",
}


class Answering(BaseHTTPRequestHandler):
    """Gives one answer to whatever it is asked."""

    status, body = 200, b""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(self.status)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def answering(answer: Any, folder: Path) -> Iterator[str]:
    """A server that has one answer; gives its address."""
    body = (folder / answer).read_bytes() if isinstance(answer, Path) else answer
    if not isinstance(body, bytes | None):
        body = json.dumps(body).encode()
    said = {"status": 204 if body is None else 200, "body": body or b""}
    kind = type("One", (Answering,), {**said, **dict.fromkeys(("do_POST", "do_DELETE"), Answering.do_GET)})
    with HTTPServer(("127.0.0.1", 0), kind) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    saved(capture({"name": 1}), tmp_path / "WORLD")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_onto(place: Place, *arguments: str) -> Ran:
    """Run a command line whose standard output leads there."""
    err = io.StringIO()
    with place() as descriptor, redirect_stdout(text_to(descriptor)), redirect_stderr(err):
        status = run(hoist(arguments))
    structlog.reset_defaults()
    return Ran(status, "", err.getvalue())


PLACES = pytest.mark.parametrize(
    ("place", "status", "why"),
    [
        (full, ExitCode.UNWRITTEN, "Standard output could not be written (No space left on device)."),
        (unusable, ExitCode.UNWRITTEN, "Standard output could not be written (Bad file descriptor)."),
        (gone, ExitCode.READER_GONE, "Nobody reads standard output any more."),
    ],
)


def test_every_command_is_known_to_change_something_or_not() -> None:
    names = [command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands]
    names += [group.name or "" for group in app.registered_groups]
    listed = {row[0].split()[0] for row in CHANGING.values()} | {row[0].split()[0] for row in READING.values()}
    listed |= SEEN_ELSEWHERE.keys()
    assert sorted(names) == sorted(listed)


@PLACES
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("name", CHANGING)
def test_what_was_done_is_said_on_standard_error_and_the_status_tells_of_the_output(
    folder: Path, name: str, place: Place, status: ExitCode, why: str, *, as_json: bool
) -> None:
    command, answer, otherwise, done = CHANGING[name]
    with answering(answer, folder) as url:
        ran = run_onto(place, *command.split(), "--server", url, "-q", *(["--json"] if as_json else []))
    assert ran.status == (otherwise or status)
    (line,) = ran.err.splitlines()
    assert line.startswith(done)
    assert line.endswith(why)


@PLACES
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("name", READING)
def test_a_command_that_changes_nothing_ends_quietly_where_its_reader_has_gone(
    folder: Path, name: str, place: Place, status: ExitCode, why: str, *, as_json: bool
) -> None:
    command, answer = READING[name]
    with answering(answer, folder) as url:
        server = () if answer is None else ("--server", url)
        ran = run_onto(place, *command.split(), *server, "-q", *(["--json"] if as_json else []))
    assert ran.status == status
    assert ran.err == ("" if place is gone else f"{why}\n")


@PLACES
def test_an_error_that_cannot_be_written_as_json_is_said_as_a_sentence(
    place: Place, status: ExitCode, why: str
) -> None:
    ran = run_onto(place, "sessions", "--server", "nonsense", "--json")
    assert ran.status == ExitCode.USAGE != status
    assert ran.err.startswith("nonsense is no address of a server")
    assert ran.err.strip().endswith(why)


@pytest.mark.parametrize(
    ("raised", "expected"), [(RuntimeError("no"), ExitCode.FAILED), (KeyboardInterrupt(), ExitCode.INTERRUPTED)]
)
def test_what_was_done_before_an_error_is_said_with_it(
    folder: Path, raised: BaseException, expected: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A saved world that is opened and cannot be protected is open all the same, and its name is known."""

    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("worldmove.cli.client.Client.post", fail)
    with answering({"session": "s-1"}, folder) as url:
        ran = worldmove("open", "--from", "WORLD", "--protect", "8", "--server", url)
    assert ran.status == expected
    assert ran.err.startswith("s-1 was opened.\n")


@pytest.mark.parametrize("as_json", [False, True])
def test_a_world_that_was_opened_is_named_where_the_server_refuses_to_protect_it(
    folder: Path, as_json: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ServerError(503, {"error": {"code": "ledger_unusable", "message": "The ledger cannot be written."}})

    monkeypatch.setattr("worldmove.cli.client.Client.post", refuse)
    with answering({"session": "s-1"}, folder) as url:
        command = ("open", "--from", "WORLD", "--protect", "8", "--server", url)
        ran = worldmove(*command, *(["--json"] if as_json else []))
    assert ran.status != ExitCode.DONE
    assert ran.err.startswith("s-1 was opened.\n")
    assert "The ledger cannot be written." in (ran.document["error"]["message"] if as_json else ran.err)


def as_process(*arguments: str, **streams: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*COMMAND, *arguments], text=True, env=with_own_path(), timeout=60, check=False, **streams)


def closing(*descriptors: int) -> Callable[[], None]:
    def close() -> None:
        for descriptor in descriptors:
            os.close(descriptor)

    return close


@PLACES
def test_a_process_ends_in_the_same_way(folder: Path, place: Place, status: ExitCode, why: str) -> None:
    with answering(MOVED, folder) as url, place() as descriptor:
        ran = as_process("move", "s-1", "--server", url, stdout=descriptor, stderr=subprocess.PIPE)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (status, 1)
    assert "s-1 moved to b" in ran.stderr
    assert why in ran.stderr


@pytest.mark.parametrize("place", [full, gone, unusable])
def test_notes_that_cannot_be_written_change_nothing(folder: Path, place: Place) -> None:
    with answering(ABORTED, folder) as url, place() as descriptor:
        ran = as_process("move", "s-1", "--server", url, stdout=subprocess.PIPE, stderr=descriptor)
    assert ran.returncode == ExitCode.ABORTED
    assert ran.stdout == "s-1 not moved: aborted (silent)\n"


@pytest.mark.parametrize(
    ("closed", "status"),
    [((1,), ExitCode.UNWRITTEN), ((2,), ExitCode.ABORTED), ((0, 1, 2), ExitCode.UNWRITTEN)],
)
def test_streams_that_were_closed_from_the_start_are_no_failure_of_the_command(
    folder: Path, closed: tuple[int, ...], status: ExitCode
) -> None:
    answer = ABORTED if status is ExitCode.ABORTED else MOVED
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": closing(*closed)}
    with answering(answer, folder) as url:
        ran = as_process("move", "s-1", "--server", url, **streams)
    assert ran.returncode == status
    assert "Traceback" not in ran.stderr
    assert ran.stdout == ("" if 1 in closed else "s-1 not moved: aborted (silent)\n")
    assert ("s-1 moved to b" in ran.stderr) == (2 not in closed)
