"""A request has left and its answer breaks: of what changes something, no command says that nothing was done."""

import os
import signal
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.cli.breaking_server import breaking
from tests.cli.command import worldmove
from tests.cli.test_unwritten import CHANGING, READING
from tests.state.test_saved import saved
from worldmove.cli.client import Client
from worldmove.cli.exits import ExitCode
from worldmove.cli.no_answer import Unreachable
from worldmove.state import capture

LOOK = "What was asked for may have been done, or still go on there: `worldmove sessions` and `worldmove moves` say"
OK = b"HTTP/1.1 200 OK\r\n"
BODY = b'{"session": "s-1", "outcome": "committed"}'
WAYS = {
    "closed": b"",
    "half a line": b"HTTP/1.1 20",
    "half a head": OK + b"content-type: application/js",
    "half a field of the length": OK + b"content-length: 1",
    "no body": OK + b"content-length: 42\r\n\r\n",
    "half a body": OK + b"content-length: 42\r\n\r\n" + BODY[:20],
    "half a chunk": OK + b"transfer-encoding: chunked\r\n\r\n2a\r\n" + BODY[:20],
    "no last chunk": OK + b"transfer-encoding: chunked\r\n\r\n2a\r\n" + BODY + b"\r\n",
    "half a refusal's head": b"HTTP/1.1 409 Conflict\r\ncontent-type: appl",
    "half a refusal": b"HTTP/1.1 409 Conflict\r\ncontent-length: 80\r\n\r\n" + b'{"error": {"code": "moving"',
    "garbage": b"\x16\x03\x01\x00\xff garbage \r\n\r\n",
    "a body of garbage": OK + b"content-length: 4\r\n\r\n\xff\xfe{}",
    "a list": OK + b"content-length: 2\r\n\r\n[]",
    "another's object": OK + b"content-length: 12\r\n\r\n" + b'{"done": 1} ',
    "empty": OK + b"content-length: 0\r\n\r\n",
    "nothing more to say": b"HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n",
    "elsewhere": b"HTTP/1.1 303 See Other\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n",
    "a gateway's page": b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 13\r\n\r\n<html></html>",
    "a gateway's object": b"HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 23\r\n\r\n" + b'{"message": "Too late"}',
    "a gateway's silence": b"HTTP/1.1 504 Gateway Timeout\r\ncontent-length: 0\r\n\r\n",
}
AT_A_SERVER = {name: row[0] for name, row in CHANGING.items() if "OUT" not in row[0] and name != "move, aborted"}
INTO_A_FILE = {name: row[0] for name, row in CHANGING.items() if "OUT" in row[0]}
FROM_A_SERVER = [command for command, answer in READING.values() if answer is not None]


@pytest.fixture(name="folder", autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    saved(capture({"name": 1}), tmp_path / "WORLD")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", AT_A_SERVER)
def test_what_was_asked_for_and_not_answered_may_have_been_done(name: str, way: str, *, reset: bool) -> None:
    with breaking(WAYS[way], reset=reset) as server:
        ran = worldmove(*AT_A_SERVER[name].split(), "--server", server.url)
        as_json = worldmove(*AT_A_SERVER[name].split(), "--server", server.url, "--json")
    assert ran.status == as_json.status == ExitCode.UNREACHABLE
    (line,) = ran.err.splitlines()
    assert LOOK in line
    assert ran.out == ""
    assert as_json.document["error"]["code"] == "unanswered"
    assert len(server.taken) == 2  # once each: nothing is asked for a second time


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("command", FROM_A_SERVER)
def test_of_what_changes_nothing_nothing_is_said_to_go_on(command: str, way: str) -> None:
    with breaking(WAYS[way]) as server:
        ran = worldmove(*command.split(), "--server", server.url)
        as_json = worldmove(*command.split(), "--server", server.url, "--json")
    assert ran.status == as_json.status != ExitCode.DONE
    assert "may have been done" not in ran.err
    assert as_json.document["error"]["code"] in ("unreachable", "internal" if "gateway" in way else "unreachable")


@pytest.mark.parametrize("way", ["closed", "no body", "half a body", "half a chunk"])
@pytest.mark.parametrize("name", INTO_A_FILE)
def test_a_file_is_not_blamed_where_the_line_broke(folder: Path, name: str, way: str) -> None:
    with breaking(WAYS[way]) as server:
        ran = worldmove(*INTO_A_FILE[name].split(), "--server", server.url, "-q")
    assert ran.status == ExitCode.UNREACHABLE
    assert "does not answer" in ran.err
    assert sorted(path.name for path in folder.iterdir()) == ["WORLD"]


def test_what_never_left_whole_was_not_asked_for(folder: Path) -> None:
    with (folder / "LARGE").open("w+b") as file, breaking(b"", reset=True, takes_all=False) as server:
        file.truncate(64 << 20)
        with pytest.raises(Unreachable):
            Client(server.url).upload("sessions", "restore", query={}, file=file, num_bytes=64 << 20)


TOLD = {
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.HUNG_UP,
}
"""Ctrl-C, and what else tells a command to end."""


def interrupt(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", TOLD)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("name", AT_A_SERVER)
def test_who_is_told_to_end_while_a_server_is_at_it_says_that_it_may_go_on_there(
    name: str, number: signal.Signals, *, as_json: bool
) -> None:
    before = signal.getsignal(number)
    with breaking(OK, taken=partial(interrupt, number)) as server:
        ran = worldmove(*AT_A_SERVER[name].split(), "--server", server.url, "-q", *(["--json"] if as_json else []))
    assert ran.status == TOLD[number]
    assert signal.getsignal(number) is before
    (line,) = ran.err.splitlines()
    assert line.startswith("Interrupted before the server at ")
    assert LOOK in line
    assert ran.out == ""


@pytest.mark.parametrize("command", FROM_A_SERVER)
def test_ctrl_c_while_something_is_read_says_nothing(command: str) -> None:
    with breaking(OK, taken=interrupt) as server:
        ran = worldmove(*command.split(), "--server", server.url)
    assert (ran.status, ran.out, ran.err) == (ExitCode.INTERRUPTED, "", "")


@pytest.mark.parametrize("name", AT_A_SERVER)
def test_ctrl_c_before_a_server_was_reached_says_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(_self: HTTPConnection) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(HTTPConnection, "connect", connect)
    ran = worldmove(*AT_A_SERVER[name].split(), "--server", "http://127.0.0.1:9")
    assert (ran.status, ran.out, ran.err) == (ExitCode.INTERRUPTED, "", "")
