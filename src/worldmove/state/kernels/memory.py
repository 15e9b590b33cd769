"""Tables that the host writes and the device reads, and the streams between."""

import numpy as np
import torch
from numpy.typing import NDArray

Stream = torch.cuda.Stream | None
"""None where there are no streams: on the CPU, where launches are tried."""


class Mirror:
    """Numbers of 64 bits in pinned host memory, and a copy of them on the device; on the CPU one and the same."""

    def __init__(self, count: int, device: torch.device) -> None:
        self._on_device = device.type == "cuda"
        self._host = torch.zeros(max(count, 1), dtype=torch.int64, pin_memory=self._on_device)
        self._numbers = self._host.numpy()
        self._device = self._host.to(device) if self._on_device else self._host
        self._stale = False
        self._uploading: torch.cuda.Event | None = None
        self._readers: list[torch.cuda.Event] = []

    @property
    def address(self) -> int:
        """Where the device finds it."""
        return self._device.data_ptr()

    def numbers(self) -> NDArray[np.int64]:
        """Return the host's numbers, to be written; waits for an upload that is still reading them."""
        if self._uploading is not None:
            self._uploading.synchronize()
            self._uploading = None
        self._stale = self._on_device
        return self._numbers

    def upload(self, stream: Stream) -> None:
        """Make what was written true on the device before anything that is started on ``stream`` later."""
        if stream is None:
            return
        if self._stale:
            self._start_upload(stream)
        elif self._uploading is not None:
            if self._uploading.query():
                self._uploading = None
            else:
                stream.wait_event(self._uploading)

    def used(self, event: torch.cuda.Event | None) -> None:
        """Say when the device has done reading: the next upload waits for all who are not."""
        if event is not None and event not in self._readers:
            self._readers = [*(other for other in self._readers if not other.query()), event]

    def _start_upload(self, stream: torch.cuda.Stream) -> None:
        for event in self._readers:
            stream.wait_event(event)
        self._readers = []
        with torch.cuda.stream(stream):
            self._device.copy_(self._host, non_blocking=True)
        self._uploading = torch.cuda.Event()
        self._uploading.record(stream)
        self._stale = False


def chosen(device: torch.device, stream: Stream) -> Stream:
    """Return the stream to use: the given one, or the device's current one."""
    if device.type != "cuda":
        return None
    return torch.cuda.current_stream(device) if stream is None else stream


def new_event(device: torch.device) -> torch.cuda.Event | None:
    """Return an event of the device, or None where there are no streams."""
    return torch.cuda.Event() if device.type == "cuda" else None


def handle(stream: Stream) -> int:
    """Return what the driver calls a stream."""
    return 0 if stream is None else int(stream.cuda_stream)
