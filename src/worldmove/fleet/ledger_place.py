"""What keeps SQLite from a ledger's file, where it does not say what: asked of the file system, in one sentence."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

BESIDE = ("-wal", "-shm", "-journal")
"""How the names of SQLite's other files go on."""

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISLNK, "a link"),
)


def no_file(path: Path) -> str | None:
    """Say what lies where a ledger's file is, or one of SQLite's beside it, and is none; None where all is well."""
    for each in (path, *(path.with_name(path.name + suffix) for suffix in BESIDE)):
        try:
            mode = each.stat(follow_symlinks=each is path).st_mode  # SQLite follows no other link
        except OSError:
            continue
        for is_one, kind in _KINDS:
            if is_one(mode):
                return f"{each} is {kind}, and not a file: move it away, or use another --state folder."
    return None


def why_unopened(path: Path) -> str:
    """Say what keeps a ledger's file from being opened."""
    found = no_file(path)
    if found is not None:
        return found
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{path} cannot be opened: {error.strerror}. Use another --state folder."
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return f"{path.parent} cannot be written to: check its permissions, or use another --state folder."
    return f"{path} cannot be opened, though it is a file that may be written: use another --state folder."
