"""Two processes in which one engine is played: from the beginning in one, from what is restored in the other."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec

import worldmove
from worldmove.audit.findings import Order
from worldmove.errors import UserError


class _Fault(msgspec.Struct, frozen=True, kw_only=True):
    message: str
    code: str


class _Done(msgspec.Struct, frozen=True, kw_only=True):
    fault: _Fault | None = None


class Workplace:
    """The two processes. They start at once, and end with ``close``."""

    def __init__(self) -> None:
        self._source = _Process(_start())
        self._fresh = _Process(_start())

    def play(self, order: Order) -> None:
        """Have an order carried out by its process. Raises UserError with the one sentence of what went wrong."""
        (self._source if order.role == "source" else self._fresh).play(order)

    def close(self) -> None:
        """End both processes."""
        self._source.close()
        self._fresh.close()

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
        fault = msgspec.json.decode(line, type=_Done).fault
        if fault is not None:
            raise UserError(fault.message, code=fault.code)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def _start() -> subprocess.Popen[bytes]:
    """Start a process with this very package first on its path."""
    paths = [str(Path(worldmove.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [sys.executable, "-m", "worldmove.audit.process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)},
    )
