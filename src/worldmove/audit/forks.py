"""Work in forks of this process: each begins with the very memory that this process has now, and leaves it alone."""

import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import msgspec

from worldmove.errors import WorldMoveError

T = TypeVar("T")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What ended a fork's work."""

    message: str
    code: str


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    fault: Fault | None = None
    result: bytes = b""
    """As msgpack, of whatever kind the job returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fork:
    number: int
    pid: int
    reader: int
    deadline: float
    data: bytearray


def in_forks(
    jobs: Sequence[Callable[[], T]], kind: type[T], *, at_once: int, limit_s: float | None = None
) -> list[T | Fault]:
    """Do each job in a fork of its own, some at once; return what each returned, or the fault that ended it."""
    results: dict[int, T | Fault] = {}
    waiting = list(enumerate(jobs))
    running: dict[int, _Fork] = {}
    while waiting or running:
        while waiting and len(running) < at_once:
            fork = _start(*waiting.pop(0), limit_s)
            running[fork.reader] = fork
        for reader in select.select(list(running), [], [], _patience(running.values()))[0]:
            data = os.read(reader, 1 << 20)
            running[reader].data.extend(data)
            if not data:
                fork = running.pop(reader)
                results[fork.number] = _ended(fork, kind)
        for fork in [fork for fork in running.values() if time.monotonic() > fork.deadline]:
            os.kill(fork.pid, signal.SIGKILL)
            running.pop(fork.reader)
            results[fork.number] = _ended(fork, kind, overdue=limit_s)
    return [results[number] for number in range(len(jobs))]


def in_fork(job: Callable[[], T], kind: type[T], *, limit_s: float | None = None) -> T | Fault:
    """Do one job in a fork."""
    return in_forks([job], kind, at_once=1, limit_s=limit_s)[0]


def _start(number: int, job: Callable[[], object], limit_s: float | None) -> _Fork:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        _work(job, writer)
    os.close(writer)
    deadline = float("inf") if limit_s is None else time.monotonic() + limit_s
    return _Fork(number=number, pid=pid, reader=reader, deadline=deadline, data=bytearray())


def _work(job: Callable[[], object], writer: int) -> NoReturn:
    """The fork's whole life. Whatever the job raises is told; nothing of the parent's cleans up here."""
    answer = _Answer(fault=Fault(message="it was interrupted", code="interrupted"))
    try:
        answer = _Answer(result=msgspec.msgpack.encode(job()))
    except WorldMoveError as error:
        answer = _Answer(fault=Fault(message=str(error), code=error.code))
    except Exception as error:  # noqa: BLE001  (the process ends with it)
        answer = _Answer(fault=Fault(message=f"{type(error).__name__}: {error}", code="engine_failed"))
    finally:
        with open(writer, "wb") as pipe:
            pipe.write(msgspec.msgpack.encode(answer))
        os._exit(0)


def _patience(running: Iterable[_Fork]) -> float | None:
    deadlines = [fork.deadline for fork in running]
    left = min(deadlines, default=float("inf")) - time.monotonic()
    return None if left == float("inf") else max(0.0, left)


def _ended(fork: _Fork, kind: type[T], *, overdue: float | None = None) -> T | Fault:
    os.close(fork.reader)
    _, status = os.waitpid(fork.pid, 0)
    if overdue is not None:
        return Fault(message=f"it did not end within {overdue:.0f} s", code="overdue")
    if not fork.data:
        return Fault(message=f"its process ended with status {os.waitstatus_to_exitcode(status)}", code="crashed")
    answer = msgspec.msgpack.decode(bytes(fork.data), type=_Answer)
    return answer.fault or msgspec.msgpack.decode(answer.result, type=kind)
