"""Points in a worker at which a fault happens to it: by itself, in the thread that has come there, at once.

A board is a small file that a worker's process and its test both map. The test writes what is to happen where;
the worker looks at each point that it passes, and does it: kill (SIGKILL) or stop (SIGSTOP) itself, raise, drift, or
hang.
So a fault hits between two statements, and not some milliseconds after a line of a log was read. Points:

    source: PHASE, EFFECT           the source's table has answered; the effect is next
    destination: PHASE, EFFECT      the same
    at: NAME                        a timed phase of a move begins
    sent: MESSAGE                   the message has left this process
    heard: MESSAGE                  the message has come, and nothing was done about it
"""

import mmap
import os
import signal
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from worldmove.move import destination, source
from worldmove.move.times import Times
from worldmove.worker.messages import LedgerAnswer, LedgerAsk
from worldmove.worker.uplink import Uplink
from worldmove.worker.worker import Worker

BOARD_BYTES = 4096
_HALF = BOARD_BYTES // 2


class Action(Enum):
    """What is to happen."""

    KILL = "kill"
    STOP = "stop"
    RAISE = "raise"
    DRIFT = "drift"
    """In an engine's step: compute something else."""
    HANG = "hang"
    """Do nothing any more, in the thread that has come there, until the board is cleared."""


class DriftError(RuntimeError):
    """An engine is to compute something else."""


class Board:
    """One worker's board. Text up to the first zero: the order in its first half, the answer in its second."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(BOARD_BYTES))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), BOARD_BYTES)

    def order(self, action: Action, point: str, *, passes: int = 0) -> None:
        """Have it happen at a point, when that was passed so often before."""
        self._write(_HALF, "")
        self._write(0, f"{action.value}|{passes}|{point}")

    def clear(self) -> None:
        """Have nothing happen, and let go on what hangs."""
        self._write(0, "")
        self._write(_HALF, "")

    @property
    def answer(self) -> str:
        """The point at which it has happened; empty before."""
        return self._read(_HALF)

    def passed(self, point: str) -> None:
        """Do what is ordered for this point."""
        if self._memory[0] == 0:
            return
        action, passes, wanted = (*self._read(0).split("|", 2), "", "")[:3]
        if wanted != point:  # or it was cleared while it was read
            return
        if int(passes):
            self._write(0, f"{action}|{int(passes) - 1}|{wanted}")
            return
        self._write(0, "")
        self._write(_HALF, point)
        match Action(action):
            case Action.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case Action.STOP:
                os.kill(os.getpid(), signal.SIGSTOP)
            case Action.RAISE:
                raise RuntimeError(f"ordered at {point}")
            case Action.DRIFT:
                raise DriftError(point)
            case Action.HANG:
                while self.answer == point:
                    time.sleep(0.005)

    def _write(self, at: int, text: str) -> None:
        body = text.encode() + b"\0"
        self._memory[at] = 0  # whoever reads meanwhile finds nothing
        self._memory[at + 1 : at + len(body)] = body[1:]
        self._memory[at] = body[0]

    def _read(self, at: int) -> str:
        return self._memory[at : at + _HALF].partition(b"\0")[0].decode()


_mine: list[Board] = []


def reached(point: str) -> None:
    """This process has come to a point."""
    for board in _mine:
        board.passed(point)


def install(board: Path) -> None:
    """Look at a board from now on, in this process: a worker that is about to begin."""
    _mine.append(Board(board))
    _after_steps(source, "source_step", "source")
    _after_steps(destination, "destination_step", "destination")
    _before(Times, "start", lambda _, phase, **__: f"at: {phase}")
    _after(Uplink, "send", lambda _, message: f"sent: {named(message)}")
    _before(Worker, "take", lambda _, message: f"heard: {named(message)}")


def named(message: object) -> str:
    """Return a message's name; that of the question or answer inside, where it carries one to or from the ledger."""
    match message:
        case LedgerAsk(operation=inside) | LedgerAnswer(answer=inside):
            return type(inside).__name__
    return type(message).__name__


def _after_steps(module: Any, name: str, end: str) -> None:
    step = getattr(module, name)

    def stepped(phase: Any, event: Any) -> Any:
        then, effect = step(phase, event)
        reached(point_of(end, then, effect))
        return then, effect

    setattr(module, name, stepped)


def point_of(end: str, phase: Enum, effect: Enum) -> str:
    """Name the point after a step of a table."""
    return f"{end}: {phase.value}, {effect.name.lower()}"


def _before(owner: type, name: str, point: Callable[..., str]) -> None:
    plain = getattr(owner, name)

    def hooked(*arguments: Any, **options: Any) -> Any:
        reached(point(*arguments, **options))
        return plain(*arguments, **options)

    setattr(owner, name, hooked)


def _after(owner: type, name: str, point: Callable[..., str]) -> None:
    plain = getattr(owner, name)

    def hooked(*arguments: Any, **options: Any) -> Any:
        made = plain(*arguments, **options)
        reached(point(*arguments, **options))
        return made

    setattr(owner, name, hooked)
