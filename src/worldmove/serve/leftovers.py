"""What demos that were killed have left behind: folders, and workers that no server will ever come back to."""

import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from worldmove.errors import LedgerError, UserError
from worldmove.fleet.ledger import LedgerConfig, open_ledger
from worldmove.fleet.local_process import terminate
from worldmove.fleet.notes import Notes, WorkerNote
from worldmove.serve.spool import clear
from worldmove.serve.state_folder import LEDGER, SAVED, TEMPORARY, locked

AT_LEAST_S = 10.0
"""How old a folder must be: a younger one may be of a server that has not locked it yet."""


def remove_leftovers(now: float, folder: Path | None = None) -> list[Path]:
    """Remove the temporary folders of servers that are dead, and end their workers. Returns what was removed.

    ``now``: wall clock, seconds since 1970.
    """
    removed = []
    for path in sorted((folder or Path(tempfile.gettempdir())).glob(f"{TEMPORARY}*")):
        with suppress(UserError, OSError):  # a server lives in it, or it is somebody else's, or just gone
            found = path.lstat()  # a link to a folder of this user's may be somebody else's
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and now - found.st_mtime >= AT_LEAST_S:
                _remove(path)
                removed.append(path)
    return removed


def _remove(path: Path) -> None:
    with locked(path):
        for worker in _workers_of(path / LEDGER):
            if worker.pid is not None:
                terminate(worker.pid, worker.birth)
        clear(path / SAVED)
        shutil.rmtree(path)


def _workers_of(ledger_path: Path) -> Sequence[WorkerNote]:
    """Return those that a ledger names; none where it cannot be read: they end by themselves."""
    if not ledger_path.exists():
        return ()
    try:
        with closing(open_ledger(LedgerConfig(path=ledger_path))) as ledger:
            return Notes(ledger).workers()
    except LedgerError:
        return ()
