"""Tests that need a CUDA device; without one they are skipped, and say so."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from tests.gpu.children import environment

try:
    from tests.worker.device_engine import DeviceEngine
    from worldmove.state.kits import kit_of
except ModuleNotFoundError as lacking:
    pytest.exit(f"This host lacks {lacking.name}; python -m tests.gpu.wheelhouse run FOLDER brings it.", 4)

ROWS = 4096
"""16 MiB of window a session."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if "tests/gpu" in item.path.as_posix()]
    for item in here:
        item.add_marker("gpu")
        if not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no CUDA device is here"))
        elif item.get_closest_marker("two_gpus") and torch.cuda.device_count() < 2:
            item.add_marker(pytest.mark.skip(reason="only one CUDA device is here"))


@pytest.fixture(scope="session", autouse=True)
def _children_find_what_this_process_finds() -> Iterator[None]:
    """Every child process has this one's path, also a worker's that a server here starts."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment().items():
            if os.environ.get(name) != value:
                patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def kit() -> Any:
    return kit_of("cuda")


@pytest.fixture
def engine() -> DeviceEngine:
    return DeviceEngine(device="cuda", rows=ROWS)
