"""A second process that exports an arena, shared by every test that needs one."""

import os
from collections.abc import Iterator, Mapping

import pytest

from tests.forks import FORKS
from tests.transport import exporter
from tests.transport.conformance import SIZE


class OtherProcess:
    """The exporting process, by its standard input and output."""

    def __init__(self, kind: str, where: str) -> None:
        (orders, mine), (theirs, answers) = FORKS.Pipe(duplex=False), FORKS.Pipe(duplex=False)
        self._process = FORKS.Process(target=exporter.begin, args=(kind, where, SIZE, orders, answers), daemon=True)
        self._process.start()
        self._orders = os.fdopen(os.dup(mine.fileno()), "w")
        self._answers = os.fdopen(os.dup(theirs.fileno()))
        for end in (orders, mine, theirs, answers):
            end.close()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def ask(self, words: str) -> str:
        """Give one order, and return the answer."""
        self._orders.write(words + "\n")
        self._orders.flush()
        return self._answers.readline().strip()

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self.join()

    def join(self) -> None:
        """Close its input, and wait for its end."""
        self._orders.close()
        self._process.join()
        self._answers.close()
        self._process.close()


@pytest.fixture(scope="session")
def other_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherProcess]:
    process = OtherProcess("shm", str(tmp_path_factory.mktemp("exporter") / "source.sock"))
    yield process
    process.join()


@pytest.fixture(scope="session")
def other_process_by_tcp() -> Iterator[OtherProcess]:
    process = OtherProcess("tcp", "127.0.0.1")
    yield process
    process.join()


@pytest.fixture(scope="session")
def other_process_by_ring(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherProcess]:
    process = OtherProcess("staged", str(tmp_path_factory.mktemp("exporter") / "source.ring"))
    yield process
    process.join()


@pytest.fixture(scope="session")
def others(
    other_process: OtherProcess, other_process_by_tcp: OtherProcess, other_process_by_ring: OtherProcess
) -> Mapping[str, OtherProcess]:
    """By the path that each exports by."""
    return {"shm": other_process, "tcp": other_process_by_tcp, "staged": other_process_by_ring}
