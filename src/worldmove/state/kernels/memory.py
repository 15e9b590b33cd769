"""Tables that the host writes and the device reads."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray


class Mirror:
    """Numbers in pinned host memory and a copy of them on the device. On the CPU both are the same memory."""

    def __init__(self, count: int, dtype: torch.dtype, device: torch.device) -> None:
        on_device = device.type == "cuda"
        self._host = torch.zeros(max(count, 1), dtype=dtype, pin_memory=on_device)
        self.device = self._host.to(device) if on_device else self._host
        self._stale = False
        self._uploaded = new_event(device)
        self._readers: list[torch.cuda.Event] = []

    @property
    def capacity(self) -> int:
        """How many numbers fit."""
        return self._host.numel()

    def write(self, numbers: NDArray[np.generic], begin: int = 0) -> None:
        """Write on the host; waits for an upload that is still reading."""
        if self._uploaded is not None:
            self._uploaded.synchronize()
        self._host.numpy()[begin : begin + numbers.size] = numbers.reshape(-1)
        self._stale = True

    def upload(self, stream: torch.cuda.Stream | None) -> None:
        """Make what was written true on the device before anything that is launched on ``stream`` later."""
        if stream is None or self._uploaded is None:
            return
        if self._stale:
            for event in self._readers:
                stream.wait_event(event)
            self._readers = []
            self.device.copy_(self._host, non_blocking=True)
            self._uploaded.record(stream)
            self._stale = False
        stream.wait_event(self._uploaded)

    def used(self, event: torch.cuda.Event | None) -> None:
        """Say when the device has done reading: the next upload waits for all who are not."""
        if event is not None:
            self._readers = [other for other in self._readers if other is not event and not other.query()] + [event]


def new_event(device: torch.device) -> torch.cuda.Event | None:
    """Return an event of the device, or None where there are no streams."""
    return torch.cuda.Event() if device.type == "cuda" else None


@contextmanager
def on_stream(device: torch.device, stream: torch.cuda.Stream | None) -> Iterator[torch.cuda.Stream | None]:
    """Launch on ``stream``, or on the device's current one; yields None where there are no streams."""
    if device.type != "cuda":
        yield None
        return
    chosen = torch.cuda.current_stream(device) if stream is None else stream
    with torch.cuda.stream(chosen):
        yield chosen
