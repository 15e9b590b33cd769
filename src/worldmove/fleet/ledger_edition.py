"""How often a ledger's file was written: kept in it, and told beside it. A file that was put back has seen fewer.

Of what was begun since it was copied it knows nothing: worlds that play, workers that run. A server on it would end
them as what nobody has named. So none starts on it while what is told beside it is of this run of the machine; after a
power cut the file itself may lack its last writes, and every worker is gone.
"""

import os
from contextlib import suppress
from pathlib import Path

from worldmove.errors import LedgerError
from worldmove.small_file import read_small

BESIDE = ".edition"
"""How the name of what is told goes on."""
MAX_BYTES = 256
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
"""A pipe in its place is not waited for."""
BOOT = Path("/proc/sys/kernel/random/boot_id")


class Edition:
    """Of one file, whose writer this process is."""

    def __init__(self, ledger: Path, number: int) -> None:
        """``number``: what the file says. Raises LedgerError where more was told beside it."""
        self.number = number
        self._path = ledger.with_name(ledger.name + BESIDE)
        self._boot = BOOT.read_text(encoding="ascii").strip() if BOOT.exists() else ""
        told = self._told()
        if told > number:
            raise LedgerError(
                f"{ledger} is older than the ledger that was here: it was written {number:,} times, that one {told:,}. "
                f"Put that one back. To go on with this one, remove {self._path}: "
                "whatever was begun since it was copied is ended."
            )
        self._file: int | None = None

    def tell(self) -> None:
        """One more write is durable. Where it cannot be told, an older file is not known by it."""
        self.number += 1
        with suppress(OSError):
            if self._file is None:
                self._file = os.open(self._path, FLAGS, 0o600)
            os.pwrite(self._file, f"{self._boot} {self.number:020d}\n".encode("ascii"), 0)

    def close(self) -> None:
        """Tell no more. Idempotent."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _told(self) -> int:
        try:
            boot, number = read_small(self._path, MAX_BYTES).decode("ascii").split()
        except (OSError, ValueError):
            return 0
        return int(number) if boot == self._boot and number.isdigit() else 0
