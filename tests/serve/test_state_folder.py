"""The folder that a server lives in, and what dead demos leave behind."""

import fcntl
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from worldmove.errors import UserError
from worldmove.fleet.ledger import LedgerConfig, open_ledger
from worldmove.fleet.notes import Notes, WorkerNote
from worldmove.serve.leftovers import remove_leftovers
from worldmove.serve.state_folder import LEDGER, LOCK, TEMPORARY, default_folder, locked, state_folder, temporary_folder
from worldmove.worker.birth import birth_of


def test_a_second_server_is_kept_out_with_one_sentence_and_let_in_afterwards(tmp_path: Path) -> None:
    lives = pytest.raises(UserError, match=f"process id {os.getpid()} lives")
    with state_folder(tmp_path / "state"), lives as refused, state_folder(tmp_path / "state"):
        pass
    assert refused.value.code == "state_in_use"
    with state_folder(tmp_path / "state") as folder:
        assert folder == tmp_path / "state"


def removed(folder: Path) -> None:
    (folder / LOCK).unlink()


def replaced(folder: Path) -> None:
    (folder / LOCK).rename(folder / "lock.old")
    (folder / LOCK).write_text("12")


def emptied(folder: Path) -> None:
    (folder / LOCK).write_text("")


def renamed(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(folder.with_name("moved"))


@pytest.mark.parametrize("change", [removed, replaced, emptied, renamed])
def test_nothing_that_is_done_to_the_lock_lets_a_second_server_in(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    with state_folder(tmp_path / "state") as folder:
        change(folder)
        for _ in range(2):
            with pytest.raises(UserError, match=r" lives in .*state; end it") as refused, state_folder(folder):
                pass
            assert refused.value.code == "state_in_use"
    with state_folder(tmp_path / "state"):
        """It is free now."""


def test_a_server_of_an_earlier_version_which_locks_the_file_alone_is_kept_out_and_keeps_out(tmp_path: Path) -> None:
    def by_file_alone() -> bool:
        descriptor = os.open(tmp_path / LOCK, os.O_RDWR | os.O_CREAT)
        held.append(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    held: list[int] = []
    with state_folder(tmp_path):
        assert not by_file_alone()
    assert by_file_alone()
    with pytest.raises(UserError, match="lives in"), state_folder(tmp_path):
        pass
    for descriptor in held:
        os.close(descriptor)


def test_a_folder_is_its_owners_alone_and_stays(tmp_path: Path) -> None:
    with state_folder(tmp_path / "a" / "b") as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert folder.is_dir()


def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be used") as refused, state_folder(tmp_path / "file" / "state"):
        pass
    assert refused.value.code == "state_unusable"


def test_a_name_that_is_no_text_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    with pytest.raises(UserError, match="no text") as refused, state_folder(folder / "state"):
        pass
    assert (refused.value.code, folder.exists()) == ("state_unusable", False)
    assert str(refused.value).isascii()
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with pytest.raises(UserError, match="TMPDIR"), temporary_folder():
        pass


def test_a_path_that_is_too_long_for_sockets_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="too long a path"), state_folder(tmp_path / ("x" * 100)):
        pass


def _dangling(path: Path) -> None:
    path.symlink_to(path.parent / "no" / "folder")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


@pytest.mark.parametrize("other", [Path.mkdir, os.mkfifo, _dangling, _socket])
def test_what_has_the_locks_name_and_is_none_is_said(tmp_path: Path, other: Callable[[Path], None]) -> None:
    other(tmp_path / LOCK)
    with pytest.raises(UserError, match=f"{tmp_path / LOCK} cannot be used") as refused, state_folder(tmp_path):
        pass
    assert refused.value.code == "state_unusable"


def test_an_error_inside_is_not_taken_for_one_of_the_lock(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError), state_folder(tmp_path):
        raise IsADirectoryError("of somebody else")
    with state_folder(tmp_path):
        """It was let go of."""


def test_where_no_temporary_folder_can_be_made_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/no/such/folder")
    with pytest.raises(UserError, match=r"/proc/no/such/folder.* cannot be used") as refused, state_folder(None):
        pass
    assert refused.value.code == "state_unusable"


def test_a_temporary_folder_goes_with_its_server() -> None:
    with state_folder(None) as folder:
        assert folder.name.startswith(TEMPORARY)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("port", "variables", "folder"),
    [
        (0, {"XDG_STATE_HOME": "/x"}, None),
        (8787, {"XDG_STATE_HOME": "/x"}, Path("/x/worldmove/serve-8787")),
        (9000, {}, Path.home() / ".local/state/worldmove/serve-9000"),
        (9000, {"XDG_STATE_HOME": ""}, Path.home() / ".local/state/worldmove/serve-9000"),
    ],
)
def test_each_port_has_a_folder_of_its_own(port: int, variables: dict[str, str], folder: Path | None) -> None:
    assert default_folder(port, variables) == folder


def make_old(folder: Path) -> Path:
    then = time.time() - 3600
    os.utime(folder, (then, then))
    return folder


def test_what_a_dead_demo_left_is_removed_and_its_workers_are_ended(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as worker:
        left = tmp_path / f"{TEMPORARY}dead"
        left.mkdir()
        with locked(left):
            ledger = open_ledger(LedgerConfig(path=left / LEDGER))
            note = WorkerNote(name="worker-1", incarnation=1, pid=worker.pid, birth=birth_of(worker.pid) or "")
            Notes(ledger).keep_worker(note)
            # The same number, and another process by now: it is left alone.
            Notes(ledger).keep_worker(WorkerNote(name="worker-2", incarnation=1, pid=os.getpid(), birth="earlier"))
            ledger.close()
        assert remove_leftovers(time.time(), tmp_path) == []  # it may be of a server that only begins
        assert remove_leftovers(make_old(left).stat().st_mtime + 3600, tmp_path) == [left]
        assert not left.exists()
        assert worker.wait(10) == -15


def test_what_a_living_demo_uses_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / f"{TEMPORARY}alive"
    folder.mkdir()
    with locked(folder):
        assert remove_leftovers(make_old(folder).stat().st_mtime + 3600, tmp_path) == []
        (folder / LOCK).unlink()
        assert remove_leftovers(make_old(folder).stat().st_mtime + 3600, tmp_path) == []
    with temporary_folder() as used:
        remove_leftovers(time.time())
        assert used.exists()


def test_a_leftover_whose_ledger_cannot_be_read_is_removed_too(tmp_path: Path) -> None:
    folder = tmp_path / f"{TEMPORARY}damaged"
    folder.mkdir()
    with locked(folder):
        (folder / LEDGER).write_bytes(b"no database" * 500)
    assert remove_leftovers(make_old(folder).stat().st_mtime + 3600, tmp_path) == [folder]


def test_a_leftover_whose_notes_are_damaged_is_removed_too(tmp_path: Path) -> None:
    folder = tmp_path / f"{TEMPORARY}damaged"
    folder.mkdir()
    with locked(folder):
        ledger = open_ledger(LedgerConfig(path=folder / LEDGER))
        ledger.keep("worker", "worker-1", '{"name": "worker-1", "incarnation": 1, "pid": 0}')
        ledger.close()
    assert remove_leftovers(make_old(folder).stat().st_mtime + 3600, tmp_path) == [folder]


def test_a_link_that_has_a_leftovers_name_is_not_followed(tmp_path: Path) -> None:
    """Anybody can make one in /tmp, to a state folder whose workers wait for their next server."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as worker:
        state = tmp_path / "state"
        state.mkdir()
        with locked(state):
            ledger = open_ledger(LedgerConfig(path=state / LEDGER))
            note = WorkerNote(name="worker-1", incarnation=1, pid=worker.pid, birth=birth_of(worker.pid) or "")
            Notes(ledger).keep_worker(note)
            ledger.close()
        (tmp_path / f"{TEMPORARY}link").symlink_to(state)
        assert remove_leftovers(make_old(state).stat().st_mtime + 3600, tmp_path) == []
        assert worker.poll() is None
        worker.terminate()
