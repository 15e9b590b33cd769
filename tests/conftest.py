"""What all tests share: which need the machine for themselves, and the order in which they run."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ALONE = (
    "browser",
    "faults",
    "fleet/test_two_workers.py",
    "hostile/test_clients.py",
    "serve/test_restart.py",
    "serve/test_server.py",
    "test_metrics_page.py",
)
"""Folders and files whose tests play worlds in real time in real processes: beside others, they would time those."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what must be alone, and run the browser's tests last: its driver keeps a loop running in this thread."""
    for item in items:
        if _is_among(item.path.relative_to(TESTS), ALONE):
            item.add_marker(pytest.mark.alone)
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


def _is_among(path: Path, names: tuple[str, ...]) -> bool:
    return any(path.is_relative_to(name) for name in names)
