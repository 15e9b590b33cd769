"""Numbers between host memory and a device's, through pinned pages where there are any."""

import numpy as np
import torch
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def to_device(numbers: Numbers, device: torch.device) -> torch.Tensor:
    """Bring int64[n] there, in the current stream's order; the array may be written to again at once."""
    if device.type == "cpu":
        return torch.from_numpy(numbers.copy())
    staged = torch.empty(len(numbers), dtype=torch.int64, pin_memory=True)
    staged.numpy()[:] = numbers
    return staged.to(device, non_blocking=True)


def to_host(numbers: torch.Tensor) -> Numbers:
    """Return int64 of any shape as an array of its own; waits for the current stream."""
    here = torch.empty(numbers.shape, dtype=torch.int64, pin_memory=numbers.is_cuda)
    found: Numbers = here.copy_(numbers).numpy()
    return found
