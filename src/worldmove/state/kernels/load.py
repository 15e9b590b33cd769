"""The device programs, imported when they are first needed: Triton is no dependency of a worker without a GPU."""

from importlib import import_module
from typing import Any

import torch

from worldmove.errors import UserError

PROGRAMS_PER_PROCESSOR = 4


def programs() -> Any:
    """Return the module of the device programs. Raises UserError where Triton is not installed."""
    try:
        return import_module("worldmove.state.kernels.programs")
    except ModuleNotFoundError as error:
        if error.name != "triton":
            raise
        raise UserError("the kernels for device memory need the package triton, which is not installed") from error


def num_programs(device: torch.device, per_processor: int) -> int:
    """Return how many programs keep the device busy; three where they are only interpreted."""
    if device.type != "cuda":
        return 3
    return int(torch.cuda.get_device_properties(device).multi_processor_count) * per_processor
