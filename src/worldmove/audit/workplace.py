"""Two processes in which one engine is played: from the beginning in one, from what is restored in the other."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

import worldmove
from worldmove.audit.findings import RESTORED, SOURCE, Done, Fault, Order
from worldmove.errors import UserError

ROLES = (SOURCE, RESTORED)


class Workplace:
    """The two processes. They start with the first order, and end with ``close``."""

    def __init__(self) -> None:
        self._processes: dict[str, _Process] = {}

    def play(self, order: Order) -> None:
        """Have an order carried out by its process. Raises UserError with the one sentence of what went wrong."""
        if not self._processes:  # both: the second gets ready while the first plays
            self._processes = {role: _Process(_start()) for role in ROLES}
        self._processes[order.role].play(order)

    def close(self) -> None:
        """End both processes."""
        for process in self._processes.values():
            process.close()
        self._processes = {}

    def __enter__(self) -> "Workplace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class _Process:
    process: subprocess.Popen[bytes]

    def play(self, order: Order) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(msgspec.json.encode(order) + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise UserError("The process that plays the engine has ended.", code="engine_failed")
        fault = msgspec.json.decode(line, type=Done).fault
        if fault is not None:
            raise UserError(_sentence(fault, order), code=fault.code)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def _sentence(fault: Fault, order: Order) -> str:
    if fault.code != "overdue":
        return fault.message
    where = "from the beginning" if order.role == SOURCE else "from what was restored"
    return (
        f"{order.engine} was not through its blocks {where} within {order.limit_s:g} s; "
        "if it is only slow give it more with --limit, if it hangs see where with --debug."
    )


def _start() -> subprocess.Popen[bytes]:
    """Start a process with this very package first on its path."""
    paths = [str(Path(worldmove.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-m", "worldmove.audit.process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
    )
