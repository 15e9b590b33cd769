"""Memory of a GPU: allocations of the driver, maps of those of other processes, torch's views, pinned host memory.

Arenas are allocations of the driver, outside torch's pool, which may map memory in pieces that no handle names.
"""

from collections.abc import Callable
from dataclasses import replace

import torch

from worldmove.errors import ArenaFull, TransportError
from worldmove.state import cuda_driver
from worldmove.state.cuda_device import CudaDevice
from worldmove.state.cuda_pending import finished
from worldmove.state.memory import DeviceMemory, Part

TILE_BYTES = 1 << 26

GiveBack = Callable[[int, int], None]


class CudaMemory(CudaDevice):
    """What there is of memory on one GPU."""

    def __init__(self, device: str) -> None:
        """Raises UserError where there is no such device."""
        super().__init__(device)
        self._own: dict[bytes, DeviceMemory] = {}

    def allocate(self, num_bytes: int) -> DeviceMemory:
        """Take memory of the driver. Raises ArenaFull."""
        try:
            with self.standing.none():
                address = cuda_driver.allocate(self._index, num_bytes)
        except cuda_driver.DriverError as error:
            if error.status != cuda_driver.OUT_OF_MEMORY:
                raise
            raise ArenaFull(num_bytes, torch.cuda.mem_get_info(self.device)[0]) from error
        return self._held(address, num_bytes, cuda_driver.free)

    def export(self, memory: DeviceMemory) -> bytes:
        """Return the allocation's IPC handle. Raises TransportError."""
        handle = cuda_driver.export(self._index, memory.address)
        self._own[handle] = memory
        return handle

    def open(self, handle: bytes, num_bytes: int) -> DeviceMemory:
        """Map another process's allocation and read its first and last byte. Raises TransportError."""
        own = self._own.get(handle)
        if own is not None:  # the driver maps no memory into the process that it is of
            if own.num_bytes < num_bytes:
                raise TransportError(f"the source's memory has {own.num_bytes} bytes, not {num_bytes}")
            return replace(own, release=lambda: None)
        with self.standing.none():
            address = cuda_driver.open_handle(self._index, handle, num_bytes)
        memory = self._held(address, num_bytes, cuda_driver.close_handle)
        try:
            for offset in (0, num_bytes - 1):
                self.read(Part(memory.address + offset, 1))
        except BaseException:
            memory.release()
            raise
        return memory

    def poison(self, part: Part) -> None:
        """Fill whole words with a pattern that is nowhere zero."""
        words = self._bytes(part).view(torch.int64)
        with self._lock, torch.cuda.stream(self._stream):
            per_tile = TILE_BYTES // 8
            tile = torch.arange(1, per_tile + 1, device=self.device, dtype=torch.int64) * -7046029254386353131
            for number, begin in enumerate(range(0, len(words), per_tile)):
                room = words[begin : begin + per_tile]
                torch.bitwise_xor(tile[: len(room)], number * 0x51B54A32D192ED03 % 2**63, out=room)
            words.bitwise_or_(0x0101010101010101)
        finished(self._stream, tile).wait()

    def storage(self, part: Part, owner: object) -> torch.UntypedStorage:
        """Return torch's view of device memory; it keeps ``owner`` alive."""
        return self._bytes(part, owner).untyped_storage()

    def nothing(self) -> torch.UntypedStorage:
        """Return a storage on the GPU without a byte."""
        return torch.empty(0, dtype=torch.uint8, device=self.device).untyped_storage()

    def pin(self, part: Part) -> Callable[[], None]:
        """Register host memory with the driver. Raises TransportError."""
        with self.standing.none():
            cuda_driver.register(self._index, part.address, part.length)
        held = [part.address]

        def release() -> None:
            if held:
                with self.standing.none():
                    cuda_driver.unregister(self._index, held.pop())

        return release

    def _held(self, address: int, num_bytes: int, give_back: GiveBack) -> DeviceMemory:
        held = [address]

        def release() -> None:
            if held:
                self._own = {handle: memory for handle, memory in self._own.items() if memory.address != address}
                with self.standing.none():
                    give_back(self._index, held.pop())

        return DeviceMemory(address=address, num_bytes=num_bytes, release=release)

    def _bytes(self, part: Part, owner: object = None) -> torch.Tensor:
        return torch.as_tensor(_Window(part, owner), device=self.device)


class _Window:
    """Device memory, for torch to view; keeps its owner alive."""

    def __init__(self, part: Part, owner: object) -> None:
        self.__cuda_array_interface__ = {
            "data": (part.address, False),
            "shape": (part.length,),
            "typestr": "|u1",
            "version": 3,
            "strides": None,
            "stream": None,
        }
        self.owner = owner
