"""Work in a fork ends: with its result, with a fault, or with its alarm."""

import os
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from worldmove.audit.findings import Fault
from worldmove.audit.forks import MAX_SENTENCE, in_forks, left_s
from worldmove.errors import StateRefused

pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
"""Newer Pythons warn of a fork beside threads; none of these forks takes a lock that a thread could hold."""


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """As in the process of an audit: an alarm ends a fork."""
    kept = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGALRM, kept)


def squared(number: int) -> int:
    return number * number


def hang(told: Path) -> int:
    told.write_text(str(os.getpid()))
    time.sleep(60)
    return 0


class WordlessError(Exception):
    """Raises when it is asked what it says."""

    def __str__(self) -> str:
        raise ValueError("nothing")


def raise_it(error: Exception) -> int:
    raise error


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_results_come_in_the_order_of_the_jobs() -> None:
    jobs = [partial(squared, number) for number in range(5)]
    assert in_forks(jobs, int, at_once=2, limit_s=30) == [0, 1, 4, 9, 16]


def test_a_fork_that_hangs_ends_by_itself_and_so_does_what_it_waits_for(tmp_path: Path) -> None:
    told = tmp_path / "pid"

    def wait_for_another() -> int:
        in_forks([partial(hang, told)], int, at_once=1, limit_s=left_s() + 0.1)
        return 0

    assert in_forks([wait_for_another], int, at_once=1, limit_s=2.0) == [
        Fault(message="It did not end within 2 s.", code="overdue")
    ]
    ends = time.monotonic() + 10
    while is_running(int(told.read_text())) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not is_running(int(told.read_text()))


def test_a_child_that_outlives_a_fork_does_not_hold_it_up(tmp_path: Path) -> None:
    def leave_one_behind() -> int:
        if os.fork() == 0:
            hang(tmp_path / "pid")
        return 7

    began = time.monotonic()
    assert in_forks([leave_one_behind], int, at_once=1, limit_s=30) == [7]
    assert time.monotonic() - began < 20
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        time.sleep(0.05)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_whatever_is_raised_in_a_fork_is_told_in_words_that_can_be_sent() -> None:
    raised = [RuntimeError("\udcff"), RuntimeError("x" * 10_000), WordlessError(), StateRefused("\udcff", "odd")]
    faults = in_forks([partial(raise_it, error) for error in raised], int, at_once=4, limit_s=20)
    told = [fault.message for fault in faults if isinstance(fault, Fault)]
    assert told == [
        "RuntimeError: \\udcff",
        f"RuntimeError: {'x' * 10_000}"[:MAX_SENTENCE],
        "WordlessError",
        "\\udcff cannot be carried: odd",
    ]
