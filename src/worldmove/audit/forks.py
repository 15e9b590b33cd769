"""Work in forks of this process: each begins with the very memory that this process has now, and leaves it alone."""

import os
import select
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

import msgspec

from worldmove.audit.findings import Fault
from worldmove.engine.raised import is_a_persons, said
from worldmove.errors import WorldMoveError

T = TypeVar("T")

MAX_SENTENCE = 2048


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    fault: Fault | None = None
    result: bytes = b""
    """As msgpack, of whatever kind the job returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fork:
    number: int
    pid: int
    ending: int
    """Readable once the fork has ended."""
    answer: int
    """The file in memory that it writes its answer to: no pipe, which an engine's own children would keep open."""


def in_forks(jobs: Sequence[Callable[[], T]], kind: type[T], *, at_once: int, limit_s: float) -> list[T | Fault]:
    """Do each job in a fork of its own, some at once; return what each returned, or the fault that ended it.

    A fork ends itself after ``limit_s``, by its own alarm: also where nobody is left who waits for it.
    """
    results: dict[int, T | Fault] = {}
    waiting = list(enumerate(jobs))
    running: dict[int, _Fork] = {}
    while waiting or running:
        while waiting and len(running) < at_once:
            fork = _start(*waiting.pop(0), limit_s)
            running[fork.ending] = fork
        for ended in select.select(list(running), [], [])[0]:
            fork = running.pop(ended)
            results[fork.number] = _ended(fork, kind, limit_s)
    return [results[number] for number in range(len(jobs))]


def left_s() -> float:
    """Return how long this fork may go on."""
    return signal.getitimer(signal.ITIMER_REAL)[0]


def _start(number: int, job: Callable[[], object], limit_s: float) -> _Fork:
    answer = os.memfd_create("worldmove-audit")
    pid = os.fork()
    if pid == 0:
        _work(job, answer, limit_s)
    return _Fork(number=number, pid=pid, ending=os.pidfd_open(pid), answer=answer)


def _work(job: Callable[[], object], file: int, limit_s: float) -> NoReturn:
    """The fork's whole life. Whatever the job raises is told; nothing of the parent's cleans up here."""
    answer = _Answer(fault=Fault(message="It was interrupted.", code="interrupted"))
    try:
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        answer = _Answer(result=msgspec.msgpack.encode(job()))
    except WorldMoveError as error:
        answer = _Answer(fault=Fault(message=_text(str(error)), code=error.code))
    except BaseException as error:
        if is_a_persons(error):
            raise
        answer = _Answer(fault=Fault(message=_text(said(error)), code="engine_failed"))
    finally:
        with open(file, "wb") as written:
            written.write(msgspec.msgpack.encode(answer))
        os._exit(0)


def _text(words: str) -> str:
    return words.encode("utf-8", "backslashreplace").decode()[:MAX_SENTENCE]


def _ended(fork: _Fork, kind: type[T], limit_s: float) -> T | Fault:
    os.close(fork.ending)
    status = os.waitstatus_to_exitcode(os.waitpid(fork.pid, 0)[1])
    with open(fork.answer, "rb") as written:
        written.seek(0)
        data = written.read()
    if status == -signal.SIGALRM:
        return Fault(message=f"It did not end within {limit_s:.3g} s.", code="overdue")
    if status != 0 or not data:
        return Fault(message=f"The engine's process ended with status {status}.", code="crashed")
    answer = msgspec.msgpack.decode(data, type=_Answer)
    return answer.fault or msgspec.msgpack.decode(answer.result, type=kind)
