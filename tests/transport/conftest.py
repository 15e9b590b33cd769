"""A second process that exports an arena, shared by every test that needs one."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.transport.conformance import SIZE

ROOT = Path(__file__).parents[2]


class OtherProcess:
    """The exporting process, by its standard input and output."""

    def __init__(self, kind: str, where: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.transport.exporter", kind, where, str(SIZE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={"PYTHONPATH": f"{ROOT}/src:{ROOT}", "PATH": "/usr/bin:/bin"},
            text=True,
        )

    def ask(self, words: str) -> str:
        """Give one order, and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(words + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self.join()

    def join(self) -> None:
        """Close its input, and wait for its end."""
        self._process.communicate()


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
