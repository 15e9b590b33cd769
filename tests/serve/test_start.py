"""A server that cannot begin: one sentence and the right exit status, before a worker is started."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from worldmove.cli.exits import ExitCode, exit_of
from worldmove.engine.facts import fields_of
from worldmove.errors import UserError
from worldmove.fleet.ledger import LedgerConfig, open_ledger
from worldmove.fleet.notes import Notes, ServerNote, WorkerNote
from worldmove.serve.server import run
from worldmove.serve.server_config import Hooks, ServerConfig
from worldmove.serve.state_folder import LEDGER, locked
from worldmove.worker.birth import birth_of
from worldmove.worker.config import WorkerConfig
from worldmove.worker.engines import build_engine
from worldmove.worker.speech import speech

ENGINE = "python:tests.serve.logging_engine:engine"


def refused(state: Path) -> UserError:
    """Return why a server does not begin on a folder."""
    config = ServerConfig(port=0, state=state, worker=WorkerConfig(engine=ENGINE))
    with pytest.raises(UserError) as caught:
        asyncio.run(run(config, Hooks(stage=lambda text: None, ready=lambda url: None)))
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_folder_with_a_server_in_it_is_a_mistake_of_the_command(tmp_path: Path) -> None:
    with locked(tmp_path):
        error = refused(tmp_path)
    assert (error.code, exit_of(error)) == ("state_in_use", ExitCode.USAGE)


def _garbage(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)


def _newer(path: Path) -> None:
    open_ledger(LedgerConfig(path=path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def _damaged_note(path: Path) -> None:
    ledger = open_ledger(LedgerConfig(path=path))
    ledger.keep("worker", "worker-1", "{}")
    ledger.close()


@pytest.mark.parametrize(
    ("harm", "words"), [(_garbage, "is damaged"), (_newer, "a newer WorldMove"), (_damaged_note, "is damaged")]
)
def test_a_ledger_that_cannot_be_used_is_one_sentence(tmp_path: Path, harm: Callable[[Path], None], words: str) -> None:
    harm(tmp_path / LEDGER)
    error = refused(tmp_path)
    assert words in str(error)
    assert (error.code, exit_of(error)) == ("ledger_unusable", ExitCode.USAGE)


def test_worlds_of_another_engine_are_not_taken_up_and_go_on(tmp_path: Path) -> None:
    ledger = open_ledger(LedgerConfig(path=tmp_path / LEDGER))
    notes, pid = Notes(ledger), 1
    notes.keep_server(ServerNote(life=1, engine="reference:island", speech=speech()))
    notes.keep_worker(WorkerNote(name="worker-1", incarnation=1, pid=pid, birth=birth_of(pid) or ""))
    ledger.close()
    error = refused(tmp_path)
    assert (error.code, exit_of(error)) == ("other_engine", ExitCode.USAGE)
    assert "start with --engine reference:island" in str(error)


@pytest.mark.parametrize(("field", "was"), [("engine.keys", '["up"]'), ("engine.weights_sha256", "00")])
def test_worlds_of_the_engine_as_it_was_before_an_upgrade_are_not_taken_up_and_go_on(
    tmp_path: Path, field: str, was: str
) -> None:
    ledger = open_ledger(LedgerConfig(path=tmp_path / LEDGER))
    notes, pid = Notes(ledger), 1
    fields = {**fields_of(build_engine(ENGINE, 1).spec), field: was}
    notes.keep_server(ServerNote(life=1, engine=ENGINE, fields=fields, speech=speech()))
    notes.keep_worker(WorkerNote(name="worker-1", incarnation=1, pid=pid, birth=birth_of(pid) or ""))
    ledger.close()
    error = refused(tmp_path)
    assert (error.code, exit_of(error)) == ("other_engine", ExitCode.USAGE)
    assert f"{field} was {was} and is " in str(error)
