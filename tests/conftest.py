"""What all tests share: which need the machine for themselves, and the order in which they run."""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.nursed import Nursed

# How fast the machine is at this moment is no property of what is tested.
settings.register_profile(
    "any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
# Whether a change passes is to depend on the change alone: what is drawn at random is drawn elsewhere.
settings.register_profile("as ever", settings.get_profile("any speed"), derandomize=True, database=None)
settings.load_profile("as ever" if os.environ.get("CI") else "any speed")

TESTS = Path(__file__).parent
ALONE = (
    "browser",
    "cli/benches/test_live_run.py",
    "faults",
    "fleet/test_two_workers.py",
    "hostile/test_clients.py",
    "serve/test_restart.py",
    "serve/test_server.py",
    "test_metrics_page.py",
    "worker/test_neighbours.py",
)
"""Folders and files whose tests play worlds in real time in real processes: one at a time. The marker's one place."""
GC_THRESHOLDS = 5_000, 20, 100
"""Half of what looking for garbage costs at the default of 700: a twentieth of all tests' time was that."""


def pytest_configure() -> None:
    """Hear signals as at a terminal: under nohup, or in a shell's background, those of a terminal are ignored."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import nothing of what is not asked for: where either part alone is, the other's files cost seconds."""
    part, is_named = config.getoption("markexpr"), any(".py" in argument for argument in config.args)
    if part not in ("alone", "not alone") or is_named or not collection_path.is_file():
        return None
    return True if _is_alone(collection_path) != (part == "alone") else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage in what is imported, neither now (it is a quarter of the time) nor later: all of it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what must be alone, and run the browser's tests last: its driver keeps a loop running in this thread."""
    for item in items:
        if item.get_closest_marker("alone"):
            raise pytest.UsageError(f"{item.nodeid} would be run by neither part: name its file in ALONE")
        if _is_alone(item.path):
            item.add_marker(pytest.mark.alone)
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@cache
def _is_alone(path: Path) -> bool:
    """Asked of each file for each of its tests: looking through the names is a tenth of what collecting takes."""
    return any(path.is_relative_to(TESTS / name) for name in ALONE)


@pytest.fixture(scope="session")
def nursed(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Nursed]":
    """Where workers of real servers come from, for all tests of this process."""
    from tests.nursed import nursed_in

    with nursed_in(tmp_path_factory.mktemp("nursery")) as nursed:
        yield nursed
