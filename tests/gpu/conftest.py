"""Tests that need a CUDA device; without one they are skipped, and say so."""

from typing import Any

import pytest
import torch

from tests.worker.device_engine import DeviceEngine
from worldmove.state.kits import kit_of

ROWS = 4096
"""16 MiB of window a session."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if "tests/gpu" in item.path.as_posix()]
    for item in here:
        item.add_marker("gpu")
        if not torch.cuda.is_available():
            item.add_marker(pytest.mark.skip(reason="no CUDA device is here"))


@pytest.fixture(scope="session")
def kit() -> Any:
    return kit_of("cuda")


@pytest.fixture
def engine() -> DeviceEngine:
    return DeviceEngine(device="cuda", rows=ROWS)
