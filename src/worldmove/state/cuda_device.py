"""A GPU as its kit sees it: its context, a stream of the kit's own, and small reads and writes in that order."""

import threading
from collections.abc import Mapping, Sequence
from itertools import accumulate

import torch

from worldmove.errors import UserError
from worldmove.state import cuda_driver
from worldmove.state.cuda_fields import device_fields
from worldmove.state.cuda_pending import finished
from worldmove.state.memory import HostBytes, Part
from worldmove.state.standing import Standing


class CudaDevice:
    """One GPU, and the stream of the kit's own."""

    def __init__(self, device: str) -> None:
        """Make a context on ``cuda`` or ``cuda:NUMBER``. Raises UserError where there is no such device."""
        try:
            torch.cuda.init()
            index = torch.device(device).index or 0
            properties = torch.cuda.get_device_properties(index)
        except (RuntimeError, AssertionError) as error:
            raise UserError(f"the device {device} cannot be used: {error}") from error
        self.device = torch.device("cuda", index)
        self.name = f"cuda:{index}"
        self.device_id = str(getattr(properties, "uuid", properties.name))
        self._index = index
        self._lock = threading.RLock()  # the copy thread and the engine's both come here
        self._stream = torch.cuda.Stream(self.device)
        self.standing = Standing()

    @property
    def fields(self) -> Mapping[str, str]:
        """Read the device, its libraries, and torch's settings for it."""
        return device_fields(self._index)

    def holds(self, value: torch.Tensor | torch.Generator) -> bool:
        """Whether it lies on this very GPU. A generator of ``cuda`` says no number: it is the current device's."""
        where = value.device
        return where.type == "cuda" and where.index in (None, self._index)

    def save_generator(self, generator: torch.Generator) -> bytes:
        """Return seed and offset, 16 bytes."""
        return generator.get_state().numpy().tobytes()

    def load_generator(self, state: bytes) -> torch.Generator:
        """Return a new generator of this GPU in a saved state."""
        generator = torch.Generator(device=self.device)
        generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
        return generator

    def read(self, part: Part) -> HostBytes:
        """Copy to host memory."""
        return self.read_all([part])[0]

    def write(self, address: int, data: HostBytes) -> None:
        """Copy from host memory."""
        self.write_all([(address, data)])

    def read_all(self, parts: Sequence[Part]) -> list[HostBytes]:
        """Copy to host memory, through one pinned page or as many as it takes."""
        ends = list(accumulate(part.length for part in parts))
        pinned = torch.empty(max(ends[-1], 1), dtype=torch.uint8, pin_memory=True)
        begin = pinned.data_ptr()
        pieces = [(part.address, begin + end - part.length, part.length) for part, end in zip(parts, ends, strict=True)]
        with self._lock:
            cuda_driver.copy_all(self._index, pieces, self._stream.cuda_stream)
            pending = finished(self._stream, pinned)
        pending.wait()
        found: HostBytes = pinned.numpy()
        return [found[end - part.length : end] for part, end in zip(parts, ends, strict=True)]

    def write_all(self, runs: Sequence[tuple[int, HostBytes]]) -> None:
        """Copy from host memory, through one pinned page or as many as it takes."""
        ends = list(accumulate(len(data) for _, data in runs))
        pinned = torch.empty(max(ends[-1], 1), dtype=torch.uint8, pin_memory=True)
        held: HostBytes = pinned.numpy()
        pieces = []
        for (address, data), end in zip(runs, ends, strict=True):
            held[end - len(data) : end] = data
            pieces.append((pinned.data_ptr() + end - len(data), address, len(data)))
        with self._lock:
            cuda_driver.copy_all(self._index, pieces, self._stream.cuda_stream)
            pending = finished(self._stream, pinned)
        pending.wait()
