"""The kit of a GPU (``memory.MemoryKit``): torch's context and streams, the driver's allocations, our kernels.

Rules:

1. Arenas are allocations of the driver: outside torch's pool, which may map memory in pieces that no handle names.
2. All work is on a stream of the kit's own, and whoever needs its end waits for an event, not for the device: the
   residents' streams go on. What the engine wrote before must be complete (``Engine.quiesce``).
3. Large runs of bytes go by the copy engine; many small ones by one launch.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate

import torch

from worldmove.errors import ArenaFull, TransportError, UserError
from worldmove.state import cuda_driver
from worldmove.state.cuda_fields import device_fields
from worldmove.state.kernels import CopyPlan, Fingerprints, Pending, Plan, RowPrints
from worldmove.state.memory import (
    DeviceMemory,
    HostBytes,
    MemoryKit,
    Numbers,
    Part,
    PendingCopy,
    Piece,
    Pieces,
    Shifts,
)
from worldmove.state.ways_to_copy import ways_to_copy, written
from worldmove.state.wmf1 import Table

TILE_BYTES = 1 << 26
DIGEST_BYTES = 16

GiveBack = Callable[[int, int], None]


class CudaCopy:
    """A copy on the kit's stream."""

    def __init__(self, event: torch.cuda.Event, kept: object) -> None:
        self._event = event
        self._kept = kept

    def is_done(self) -> bool:
        """Whether every byte has landed. Raises TransportError if the device has failed."""
        try:
            return bool(self._event.query())
        except RuntimeError as error:
            raise TransportError(f"the device has failed: {error}") from error

    def precedes(self, stream: torch.cuda.Stream) -> None:
        """Let what comes on a stream wait for it."""
        stream.wait_event(self._event)

    def wait(self) -> None:
        """Return when every byte has landed; others run meanwhile. Raises TransportError."""
        try:
            self._event.synchronize()
        except RuntimeError as error:
            raise TransportError(f"the device has failed: {error}") from error


class CudaDigests:
    """Digests on the kit's stream."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending

    def joined(self) -> bytes:
        """Wait, and return them; others run meanwhile. Raises TransportError if the device has failed."""
        try:
            return self._pending.joined()
        except torch.AcceleratorError as error:
            raise TransportError(f"the device has failed: {error}") from error


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


class CudaKit:
    """All byte work on one GPU."""

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
        self._out, self._in = torch.cuda.Stream(self.device), torch.cuda.Stream(self.device)
        """For copies out of the device and into it: the link carries both at once, beside all other work."""
        self._own: dict[bytes, DeviceMemory] = {}
        self._fingerprints = Fingerprints(self.device)
        self._copies = self._fingerprints.copies
        self._pulls = torch.cuda.Stream(self.device)
        self._pulling: list[tuple[CudaCopy, tuple[int, int]]] = []
        """Those under way, and from where to where each writes."""
        self._pulled: CopyPlan | None = None
        self._under_way: list[Pending] = []
        """What the device may still read and write the plans of: nobody may want its digests any more."""
        self._rows = RowPrints(self._copies)
        self._scattered: CopyPlan | None = None
        """Of the last copy of scattered pieces, to be pointed at the next one's: planning anew takes milliseconds."""

    @property
    def fields(self) -> Mapping[str, str]:
        """Read the device, its libraries, and torch's settings for it."""
        return device_fields(self._index)

    def holds(self, value: torch.Tensor | torch.Generator) -> bool:
        """Whether it lies on this very GPU. A generator of ``cuda`` says no number: it is the current device's."""
        where = value.device
        return where.type == "cuda" and where.index in (None, self._index)

    def allocate(self, num_bytes: int) -> DeviceMemory:
        """Take memory of the driver. Raises ArenaFull."""
        try:
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
        if handle in self._own:  # the driver maps no memory into the process that it is of
            return replace(self._own[handle], release=lambda: None)
        memory = self._held(cuda_driver.open_handle(self._index, handle), num_bytes, cuda_driver.close_handle)
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
        self._finished(tile).wait()

    def storage(self, part: Part, owner: object) -> torch.UntypedStorage:
        """Return torch's view of device memory; it keeps ``owner`` alive."""
        return self._bytes(part, owner).untyped_storage()

    def nothing(self) -> torch.UntypedStorage:
        """Return a storage on the GPU without a byte."""
        return torch.empty(0, dtype=torch.uint8, device=self.device).untyped_storage()

    def start_copy(self, pieces: Pieces) -> PendingCopy:
        """Begin to copy, on the kit's stream."""
        with self._lock:
            pending, self._scattered = self._started(pieces, self._stream, self._scattered)
            return pending

    def start_pull(self, pieces: Pieces) -> PendingCopy:
        """Begin to copy, on a stream that has nothing else: another session's passes do not wait for it."""
        with self._lock:
            self._pulling = [(other, at) for other, at in self._pulling if not other.is_done()]
            pending, self._pulled = self._started(pieces, self._pulls, self._pulled)
            self._pulling.append((pending, written(pieces)))
            return pending

    def pin(self, part: Part) -> Callable[[], None]:
        """Register host memory with the driver. Raises TransportError."""
        cuda_driver.register(self._index, part.address, part.length)
        held = [part.address]

        def release() -> None:
            if held:
                cuda_driver.unregister(self._index, held.pop())

        return release

    def start_copy_out(self, pieces: Sequence[Piece]) -> PendingCopy:
        """Begin to copy, on a stream for this alone."""
        cuda_driver.copy_all(self._index, pieces, self._out.cuda_stream)
        return _finished(self._out)

    def start_copy_in(self, pieces: Sequence[Piece]) -> PendingCopy:
        """Begin to copy, on a stream for this alone."""
        cuda_driver.copy_all(self._index, pieces, self._in.cuda_stream)
        return _finished(self._in)

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
            pending = self._finished(pinned)
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
            pending = self._finished(pinned)
        pending.wait()

    def plan(self, groups: Sequence[Sequence[Part]]) -> object:
        """Lay the groups out for launches."""
        with self._lock, torch.cuda.device(self.device), torch.cuda.stream(self._stream):
            plan = self._fingerprints.plan(groups)
            plan.table.upload(self._stream)  # now, and not at the first launch
            return plan

    def replan(self, plan: object, shifts: Shifts) -> object:
        """Give some groups other addresses."""
        assert isinstance(plan, Plan)
        if len(shifts):
            with self._lock, torch.cuda.device(self.device), torch.cuda.stream(self._stream):
                plan.shift(shifts)
        return plan

    def fingerprints(self, plan: object, key: bytes) -> tuple[bytes, ...]:
        """Launch once, and wait for the digests."""
        joined = self.begin_fingerprints(plan, key).joined()
        return tuple([joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES)])

    def begin_fingerprints(self, plan: object, key: bytes) -> "CudaDigests":
        """Launch once, in the order of the kit's stream, and after pulls into what is read."""
        assert isinstance(plan, Plan)
        try:
            with self._lock, torch.cuda.device(self.device):
                self._after_pulls(*plan.span)
                pending = self._fingerprints.launch(plan, Table.of(key), stream=self._stream)
                self._under_way = [*(other for other in self._under_way if not other.ready()), pending]
            return CudaDigests(pending)
        except torch.AcceleratorError as error:
            raise TransportError(f"the device has failed: {error}") from error

    def row_digests(self, base: int, offsets: Numbers, lengths: Numbers) -> torch.Tensor:
        """Launch once, on the kit's stream."""
        with self._lock, torch.cuda.device(self.device), torch.cuda.stream(self._stream):
            return self._rows.launch(base, offsets, lengths, stream=self._stream)

    @contextmanager
    def apart(self) -> Iterator[torch.device]:
        """Work on the kit's stream; others may put their own between."""
        try:
            with torch.cuda.device(self.device), torch.cuda.stream(self._stream):
                yield self.device
        except torch.AcceleratorError as error:
            raise TransportError(f"the device has failed: {error}") from error
        self._finished(None).wait()

    def prepare_key(self, key: bytes) -> None:
        """Bring a key's coefficients to the GPU."""
        with self._lock, torch.cuda.device(self.device):
            self._fingerprints.prepare(Table.of(key), stream=self._stream)

    def save_generator(self, generator: torch.Generator) -> bytes:
        """Return seed and offset, 16 bytes."""
        return generator.get_state().numpy().tobytes()

    def load_generator(self, state: bytes) -> torch.Generator:
        """Return a new generator of this GPU in a saved state."""
        generator = torch.Generator(device=self.device)
        generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
        return generator

    def _held(self, address: int, num_bytes: int, give_back: GiveBack) -> DeviceMemory:
        held = [address]

        def release() -> None:
            if held:
                self._own = {handle: memory for handle, memory in self._own.items() if memory.address != address}
                give_back(self._index, held.pop())

        return DeviceMemory(address=address, num_bytes=num_bytes, release=release)

    def _bytes(self, part: Part, owner: object = None) -> torch.Tensor:
        return torch.as_tensor(_Window(part, owner), device=self.device)

    def _started(
        self, pieces: Pieces, stream: torch.cuda.Stream, plan: CopyPlan | None
    ) -> tuple[CudaCopy, CopyPlan | None]:
        """Begin with what is large: it is under way while the rest is planned. Return the plan of the rest, too."""
        ways = ways_to_copy(pieces)
        cuda_driver.copy_all(self._index, ways.by_engine.tolist(), stream.cuda_stream)
        if not len(ways.by_launch):
            return _finished(stream), plan
        with torch.cuda.device(self.device), torch.cuda.stream(stream):
            plan = self._copies.pointed(plan, ways.by_launch)
            self._copies.launch(plan, stream=stream)
        return _finished(stream, plan), plan

    def _after_pulls(self, begin: int, end: int) -> None:
        """Let what comes on the kit's stream wait for pulls into a part of memory."""
        for pending, (first, last) in self._pulling:
            if first < end and begin < last:
                pending.precedes(self._stream)

    def _finished(self, kept: object) -> CudaCopy:
        return _finished(self._stream, kept)


def cuda_kit(device: str) -> MemoryKit:
    """Return the kit of a GPU. Raises UserError where there is no such device."""
    return CudaKit(device)


def _finished(stream: torch.cuda.Stream, kept: object = None) -> CudaCopy:
    event = torch.cuda.Event()
    event.record(stream)
    return CudaCopy(event, kept)
