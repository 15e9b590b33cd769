"""The folder that a server lives in: its ledger, its workers' socket, and the lock that keeps a second server out."""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from worldmove.errors import UserError
from worldmove.limits import MAX_WORKERS
from worldmove.small_file import read_small

LEDGER = "ledger.sqlite"
SOCKET = "server.sock"
LOCK = "lock"
MAX_PID = 20
"""Bytes."""
SAVED = "saved"
"""A link to the folder of saved worlds that are on their way."""
TEMPORARY = "worldmove-demo-"
"""How the name of a folder begins that ends with its server."""
MAX_SOCKET_PATH = 107
"""Bytes of a unix socket's path, without the closing zero."""
LONGEST_NAME = f"worker-{MAX_WORKERS}-1000000.sock"


@contextmanager
def state_folder(path: Path | None) -> Iterator[Path]:
    """Hold a server's folder while inside; None: a temporary one, removed at the end. Raises UserError."""
    if path is None:
        with temporary_folder() as folder:
            yield folder
        return
    folder = _made(path.expanduser().absolute())
    with locked(folder):
        yield folder


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Hold a folder that is removed at the end."""
    try:
        _require_text(Path(tempfile.gettempdir()), "TMPDIR")
        folder = Path(tempfile.mkdtemp(prefix=TEMPORARY))  # mkdtemp makes it 0700
    except OSError as error:
        raise _unusable(Path(error.filename or tempfile.tempdir or "TMPDIR"), error) from error
    try:
        with locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep every other server out of a folder while inside. Raises UserError where one is in it.

    The folder itself is locked, which nobody takes away without all that is in it; the file beside is what an earlier
    version looks at, and says who it is. Both locks go with their descriptors, also where the process is killed.
    """
    with ExitStack() as held:
        _lock_folder(folder, held)
        _lock_file(folder, held)
        yield


def _lock_folder(folder: Path, held: ExitStack) -> None:
    """Raise UserError where another process has it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unusable(folder, error) from error
    held.callback(os.close, descriptor)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _in_use(folder, _said_in(folder / LOCK)) from None
    except OSError:
        return  # a file system that locks no folders, over a network mostly: the file is all that there is


def _lock_file(folder: Path, held: ExitStack) -> None:
    """Say in it who has the folder. Raises UserError where another process has it."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        held.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _in_use(folder, os.read(descriptor, MAX_PID)) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
    except OSError as error:
        raise _unusable(folder / LOCK, error) from error


def _said_in(path: Path) -> bytes:
    """Return who has a folder; empty where nobody says so."""
    with suppress(OSError):
        return read_small(path, MAX_PID)
    return b""


def _in_use(folder: Path, said: bytes) -> UserError:
    who = f"The server with process id {said.decode(errors='replace')}" if said else "Another server"
    why = f"{who} lives in {folder}; end it, or give another folder with --state."
    return UserError(why, code="state_in_use", status=409)


def _unusable(path: Path, error: OSError) -> UserError:
    if error.errno == errno.ENOSPC:
        return UserError(f"No space is left for {path}; free some.", code="no_space", status=507)
    why = f"{path} cannot be used ({error.strerror}): move it away, or give another folder with --state."
    return UserError(why, code="state_unusable")


def default_folder(port: int, variables: Mapping[str, str]) -> Path | None:
    """Return where the server of a port keeps its state by default; None, a temporary one, for any free port."""
    return None if port == 0 else _state_home(variables) / f"serve-{port}"


def path_notes_file(variables: Mapping[str, str]) -> Path:
    """Return where is kept what a probe of this host's paths has found: for every server of this user."""
    return _state_home(variables) / "paths.json"


def _state_home(variables: Mapping[str, str]) -> Path:
    return Path(variables.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")) / "worldmove"


def _require_text(folder: Path, option: str) -> None:
    """Raise UserError for a name that is no text: no worker could be told it."""
    try:
        str(folder).encode()
    except UnicodeError as error:
        why = f"{str(folder)!a} has a name that is no text (UTF-8); give another folder with {option}."
        raise UserError(why, code="state_unusable") from error


def _made(folder: Path) -> Path:
    _require_text(folder, "--state")
    if len(os.fsencode(folder / LONGEST_NAME)) > MAX_SOCKET_PATH:
        longest = MAX_SOCKET_PATH - len(LONGEST_NAME) - 1
        raise UserError(f"{folder} is too long a path for sockets; give one of at most {longest} bytes with --state.")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = f"The folder {folder} cannot be used ({error.strerror}); give another one with --state."
        raise UserError(why, code="state_unusable") from error
    with suppress(OSError):
        folder.chmod(0o700)
    return folder
