"""The kit of an engine's device, by the name that its specification gives: one for each device of a process."""

from functools import lru_cache

from worldmove.errors import UserError
from worldmove.state.kit_double import NAME as DOUBLE
from worldmove.state.kit_double import DoubleKit
from worldmove.state.memory import MemoryKit

HOST = "cpu"


@lru_cache(maxsize=8)
def kit_of(device: str) -> MemoryKit | None:
    """Return the kit of a device: ``cuda``, ``cuda:1``, ``double``; None for ``cpu``. Raises UserError."""
    if device == HOST:
        return None
    if device == DOUBLE:
        return DoubleKit(generators=True)
    if device.partition(":")[0] == "cuda":
        # Only now: it looks for a driver, and most processes have none.
        try:
            from worldmove.state.kit_cuda import CudaKit  # noqa: PLC0415
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("cuda"):
                raise
            raise UserError(f"{device} needs cuda-bindings, which comes with torch for CUDA") from error
        return CudaKit(device)
    raise UserError(f"there is no device {device}; there are cpu, cuda and cuda:NUMBER")
