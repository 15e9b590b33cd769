"""The command line: every sentence, every exit status, data and notes on their own streams."""

import errno
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.cli.command import Ran, worldmove
from tests.cli.fake_server import begin
from tests.forks import FORKS
from tests.own_path import with_own_path
from worldmove import __version__
from worldmove.cli.acting import BY_CANCELLED
from worldmove.cli.client import Client
from worldmove.cli.exits import ExitCode
from worldmove.fleet.reports import Outcome
from worldmove.move.strategy import Strategy

ENVIRONMENT = {name: value for name, value in with_own_path().items() if name not in ("WORLDMOVE_SERVER", "NO_COLOR")}
COMMAND = (sys.executable, "-c", "from worldmove.cli.main import main; main()")


def worldmove_process(*arguments: str, **environment: str) -> Ran:
    """Run a command line as a shell does."""
    done = subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, timeout=60, env=ENVIRONMENT | environment, check=False
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    port_file = tmp_path_factory.mktemp("server") / "url"
    process = FORKS.Process(target=begin, args=(port_file,), daemon=True)
    process.start()
    try:
        deadline = time.monotonic() + 100
        while not (port_file.exists() and port_file.read_text()):
            assert process.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield port_file.read_text()
    finally:
        process.kill()
        process.join()


@pytest.fixture
def session(server: str) -> str:
    return worldmove("open", "--seed", "7", "--server", server).out.strip()


def test_open_prints_the_name_alone_on_standard_output_and_the_page_on_standard_error(server: str) -> None:
    ran = worldmove("open", "--server", server)
    assert ran.status == ExitCode.DONE
    assert ran.err.strip() == f"Play it at {server}/play/{ran.out.strip()}"


def test_quiet_says_nothing_beside_the_data_wherever_it_stands(server: str) -> None:
    for arguments in (("-q", "open", "--server", server), ("open", "--server", server, "--quiet")):
        ran = worldmove(*arguments)
        assert ran.status == ExitCode.DONE
        assert ran.out.strip().startswith("s-")
        assert ran.err == ""


def test_the_server_is_named_by_the_environment_too(server: str) -> None:
    assert worldmove_process("workers", WORLDMOVE_SERVER=server).status == ExitCode.DONE


def test_lists_are_tables_without_borders_with_numbers_to_the_right(server: str, session: str) -> None:
    ran = worldmove("sessions", "--server", server)
    header, *rows = ran.out.splitlines()
    assert header.split() == [
        "SESSION",
        "STATE",
        "WORKER",
        "EPOCH",
        "BLOCK",
        "WATCHERS",
        "SEED",
        "SIZE(bytes)",
        "KEEPER",
        "AGE(blocks)",
        "STALLED(ms)",
        "RESTS",
    ]
    assert session in [row.split()[0] for row in rows]
    assert rows[0][: header.index("EPOCH") + 5].endswith("    1")
    assert ran.err == ""
    workers = worldmove("workers", "--server", server).out.splitlines()
    assert [row.split()[0] for row in workers] == ["WORKER", "a", "b", "refused", "aborted", "in_doubt", "lost"]
    assert [row.split()[:3] for row in workers[-2:]] == [["in_doubt", "ready", "104"], ["lost", "gone", "-"]]


@pytest.mark.parametrize(
    ("to", "status", "says", "notes"),
    [
        ("b", ExitCode.DONE, r"moved to b: pause 2\.0 ms, gap \d+\.\d ms, 4/4 parts identical", ""),
        ("refused", ExitCode.REFUSED, r"not moved: refused \(environment\)", "Not moved, nothing changed. Device: cpu"),
        ("aborted", ExitCode.ABORTED, "not moved: aborted", "Your world goes on at a."),
        ("in_doubt", ExitCode.IN_DOUBT, "not moved: in_doubt", "Holding. We are making sure"),
        ("lost", ExitCode.LOST, "not moved: lost", "This world could not be recovered."),
    ],
)
def test_a_move_ends_with_the_status_of_its_outcome(
    server: str, session: str, to: str, status: ExitCode, says: str, notes: str
) -> None:
    ran = worldmove("move", session, "--to", to, "--server", server)
    assert ran.status == status
    assert ran.out.startswith(session)
    assert re.search(says, ran.out)
    assert notes in ran.err


def test_a_move_as_json_is_one_document_whatever_its_outcome(server: str, session: str) -> None:
    for to, status in (("b", ExitCode.DONE), ("refused", ExitCode.REFUSED)):
        ran = worldmove("move", session, "--to", to, "--json", "--server", server)
        assert ran.status == status
        assert (ran.document["schema"], ran.document["version"]) == ("worldmove.move", 1)
        assert ran.document["to"] == to
        assert (ran.document["gap_ms"] is None) == (to == "refused")


def test_every_client_command_writes_json(server: str, session: str) -> None:
    protect = ("protect", session, "--every", "8")
    lists = (("workers",), ("sessions",), ("moves",), ("failovers",))
    for command in (*lists, ("open", "--protect", "4"), protect, ("doctor",), ("close", session)):
        ran = worldmove(*command, "--json", "--server", server)
        assert ran.document["schema"].startswith("worldmove.")
        assert ran.document["version"] == 1


def test_a_cancel_where_nothing_moves_is_refused_as_text_and_as_json(server: str, session: str) -> None:
    ran = worldmove("cancel", session, "--server", server)
    assert (ran.status, ran.err.strip()) == (ExitCode.REFUSED, f"No move of {session} is under way.")
    ran = worldmove("cancel", session, "--json", "--server", server)
    assert ran.status == ExitCode.REFUSED
    assert ran.document["error"]["code"] == "not_moving"


def test_a_cancel_is_done_where_the_move_was_given_up_and_refused_where_it_was_too_late() -> None:
    statuses = {outcome: BY_CANCELLED[outcome.value] for outcome in Outcome}
    assert statuses == {
        Outcome.COMMITTED: ExitCode.REFUSED,
        Outcome.REFUSED: ExitCode.DONE,
        Outcome.ABORTED: ExitCode.DONE,
        Outcome.IN_DOUBT: ExitCode.IN_DOUBT,
        Outcome.LOST: ExitCode.LOST,
    }


def test_close_ends_a_session_once(server: str, session: str) -> None:
    assert worldmove("close", session, "--server", server).out == f"{session} closed\n"
    assert worldmove("close", session, "--server", server).status == ExitCode.USAGE


def test_an_unknown_name_is_answered_with_the_nearest_one(server: str, session: str) -> None:
    ran = worldmove("move", f"{session}x", "--server", server)
    assert ran.status == ExitCode.USAGE
    assert ran.err.strip() == f"There is no session {session}x; did you mean {session}?"
    ran = worldmove("move", session, "--to", "refusd", "--server", server)
    assert ran.status == ExitCode.USAGE
    assert ran.err.strip() == "There is no worker refusd; did you mean refused?"


def test_a_move_to_where_it_is_already_is_refused(server: str, session: str) -> None:
    ran = worldmove("move", session, "--to", "a", "--server", server)
    assert ran.status == ExitCode.REFUSED
    assert "already" in ran.err


def test_doctor_of_a_server_fails_where_its_workers_differ_and_names_the_field(server: str) -> None:
    ran = worldmove("doctor", "--server", server)
    assert ran.status == ExitCode.REFUSED
    assert "worker_specific differs" in " ".join(ran.out.split())
    assert "FAIL workers compute alike" in ran.err


def test_an_unreachable_server_is_said_in_one_sentence_that_says_what_to_do() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{unused.getsockname()[1]}"
    ran = worldmove_process("sessions", "--server", nobody)
    assert ran.status == ExitCode.UNREACHABLE
    assert len(ran.err.splitlines()) == 1
    assert "worldmove serve" in ran.err
    as_json = worldmove("sessions", "--server", nobody, "--json")
    assert as_json.document["error"]["code"] == "unreachable"
    assert as_json.document["error"]["fault"] == "remote"
    assert as_json.err == ""


def test_what_is_no_worldmove_server_is_said_to_be_none(tmp_path: Path) -> None:
    page = [sys.executable, "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(tmp_path)]
    with subprocess.Popen(
        [*page], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENVIRONMENT | {"PYTHONUNBUFFERED": "1"}
    ) as other:
        assert other.stdout is not None
        port = other.stdout.readline().split(b"port ")[1].split()[0].decode()
        ran = worldmove("sessions", "--server", f"http://127.0.0.1:{port}")
        other.kill()
    assert ran.status == ExitCode.UNREACHABLE
    assert "is no WorldMove server" in ran.err


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


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (200, b"", "is no WorldMove server"),
        (200, b"[]", "is no WorldMove server"),
        (200, b"null", "is no WorldMove server"),
        (200, b'{"a": [' * 5000, "is no WorldMove server"),
        (200, b'{"sessions": [{}], "workers": [{}], "moves": [{}]}', "is no WorldMove server"),
        (418, b'{"error": {}}', "answered with status 418"),
        (418, b'{"error": "no"}', "status 418"),
        (418, b'{"error": {"message": "\\ud800 no"}}', "\\xd800 no"),
    ],
)
def test_an_answer_that_no_server_of_ours_gives_is_one_sentence(status: int, body: bytes, says: str) -> None:
    verbs = dict.fromkeys(("do_POST", "do_DELETE"), Answering.do_GET)
    kind = type("Other", (Answering,), {"status": status, "body": body, **verbs})
    with HTTPServer(("127.0.0.1", 0), kind) as other:
        serving = Thread(target=other.serve_forever, args=(0.01,))
        serving.start()
        for command in ("workers", "sessions", "moves", "plan s-1", "move s-1", "cancel s-1", "close s-1", "open"):
            ran = worldmove(*command.split(), "--server", f"http://127.0.0.1:{other.server_port}")
            assert says in ran.err, (command, ran)
            assert len(ran.err.splitlines()) == 1
        other.shutdown()
        serving.join()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("sesions",), "Did you mean 'sessions'? See worldmove --help."),
        (("move",), "Missing argument"),
        (("move", "s-1", "--too", "b"), "--to"),
        (("serve", "--port", "99999"), "--port"),
        (("sessions", "--server", "nonsense"), "is no address of a server"),
    ],
)
def test_a_usage_mistake_is_one_sentence_and_status_2(arguments: tuple[str, ...], says: str) -> None:
    ran = worldmove(*arguments)
    assert ran.status == ExitCode.USAGE
    assert says in ran.err
    assert "Traceback" not in ran.err
    as_json = worldmove(*arguments, "--json")
    assert as_json.status == ExitCode.USAGE
    assert as_json.document["error"]["code"] == "usage"


def test_a_shell_sees_what_a_usage_mistake_is() -> None:
    ran = worldmove_process("sesions")
    assert ran.status == ExitCode.USAGE
    assert "Did you mean 'sessions'?" in ran.err
    assert "Traceback" not in ran.err


def test_the_command_line_is_there_before_torch_is_imported() -> None:
    code = "import sys, worldmove.cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, check=False).returncode == 0


def test_a_sentence_of_the_parser_ends_before_ours_begins() -> None:
    assert "equal to 0. See worldmove --help." in worldmove("open", "--seed", "-4").err


def test_debug_shows_where_an_error_came_from() -> None:
    ran = worldmove("sessions", "--server", "nonsense", "--debug")
    assert "Traceback" in ran.err
    assert "is no address of a server" in ran.err


def test_every_command_documents_its_exit_status_and_opens_its_help_with_examples() -> None:
    commands = [
        (name,)
        for name in ("demo", "serve", "workers", "sessions", "moves", "open", "move", "close", "doctor", "audit")
    ] + [(name,) for name in ("record", "verify", "save", "inspect")]
    for command in [*commands, ("bench", "move")]:
        ran = worldmove(*command, "--help")
        assert ran.status == ExitCode.DONE
        assert "Exit status: 0 done" in ran.out
        assert ran.out.count(f"worldmove {' '.join(command)}") >= 3
        assert "--json" in ran.out


def test_the_list_of_commands_breaks_no_sentence_off() -> None:
    assert "..." not in worldmove("--help").out.partition("Commands:")[2]


def test_no_command_is_a_request_for_help_and_version_is_printed_alone() -> None:
    assert worldmove().out.startswith("Usage: worldmove")
    assert worldmove_process("--version").out.strip() == __version__


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/dev/shm/x"), "no_space", "No space is left (/dev/shm/x)"),
        (ZeroDivisionError("division by zero"), "internal", "ZeroDivisionError: division by zero. --debug shows"),
    ],
)
def test_a_failure_of_the_machine_or_of_ours_is_one_sentence_too(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, code: str, says: str
) -> None:
    def fail(_client: Client, *_path: str) -> dict[str, Any]:
        raise raised

    monkeypatch.setattr(Client, "get", fail)
    ran = worldmove("sessions")
    assert ran.status == ExitCode.FAILED
    assert says in ran.err
    assert worldmove("sessions", "--json").document["error"]["code"] == code


def test_a_plan_is_a_sheet_and_ends_with_0_where_a_move_would_be_admitted(server: str, session: str) -> None:
    ran = worldmove("plan", session, "--to", "b", "--server", server)
    assert (ran.status, ran.err) == (ExitCode.DONE, "")
    assert ran.out.startswith(f"{session}: a to b over fake, 20.0 MB\n")
    assert "\x1b" not in ran.out


def test_a_plans_document_has_every_term_of_every_strategy(server: str, session: str) -> None:
    document = worldmove("plan", session, "--to", "b", "--link", "1gbit", "--json", "--server", server).document
    assert (document["schema"], document["version"]) == ("worldmove.plan", 1)
    assert (document["from"], document["to"], document["transport"]) == ("a", "b", "throttled-1gbit-fake")
    assert [found["strategy"] for found in document["strategies"]] == [strategy.value for strategy in Strategy]
    copied = next(term for term in document["strategies"][0]["pause"] if term["name"] == "land")
    assert copied["ms"] == 160.0
    assert document["measured"]["path_rate"] == 1.25e8
    assert document["measured"]["row_rate"] is None


def test_a_move_that_would_be_refused_ends_the_command_with_3(server: str, session: str) -> None:
    ran = worldmove("plan", session, "--strategy", "boundary-copy", "--link", "1mbit", "--server", server)
    assert ran.status == ExitCode.REFUSED
    assert "It would not be moved." in ran.out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--link", "fast"), "fast is no speed of a link; say one such as 1gbit, 25gbit or 2.5mbit."),
        (("--strategy", "teleport"), "There is no strategy named teleport; there is boundary copy"),
        (("--to", "nowhere"), "There is no worker nowhere"),
    ],
)
def test_what_there_is_not_is_named_with_what_there_is(
    server: str, session: str, options: tuple[str, ...], words: str
) -> None:
    for command in ("plan", "move"):
        ran = worldmove(command, session, *options, "--server", server)
        assert ran.status == ExitCode.USAGE
        assert words in ran.err
