"""The CUDA driver, for what torch does not offer: allocations with a handle, copies by address, launches.

It is called through ``cuda.bindings``, which comes with torch for CUDA. Every call works in the device's primary
context, which is torch's; it is the calling thread's for that call alone, so that torch finds the device that it had
chosen.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from cuda.bindings import driver

from worldmove.errors import TransportError
from worldmove.units import PAGE_BYTES

OUT_OF_MEMORY = 2
IPC_BYTES = 64
_PORTABLE, _MAPPED = 1, 2  # CU_MEMHOSTREGISTER_*: for every context of this process, and for its devices' programs
_EQUAL = 1  # CU_STREAM_WAIT_VALUE_EQ
_LAZY_PEER_ACCESS = driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS


ALREADY_REGISTERED = 712
"""CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED."""


class DriverError(TransportError):
    """The driver refused a call. ``status`` is its number."""

    def __init__(self, call: str, status: Any) -> None:
        super().__init__(f"{call}: {getattr(status, 'name', status)}")
        self.status = int(status)


class InContext:
    """Makes a device's primary context this thread's, if it is not, for as long as it is entered."""

    def __init__(self, device: int) -> None:
        self._context = _context(device)
        self._pushed = False

    def __enter__(self) -> None:
        self._pushed = int(call(driver.cuCtxGetCurrent)) != int(self._context)
        if self._pushed:
            call(driver.cuCtxPushCurrent, self._context)

    def __exit__(self, *_: object) -> None:
        if self._pushed:
            call(driver.cuCtxPopCurrent)


def allocate(device: int, num_bytes: int) -> int:
    """Return the address of new memory. Raises DriverError."""
    with InContext(device):
        return int(call(driver.cuMemAlloc, num_bytes))


def free(device: int, address: int) -> None:
    """Give memory back. Raises DriverError."""
    with InContext(device):
        call(driver.cuMemFree, address)


def export(device: int, address: int) -> bytes:
    """Return the handle of an allocation that begins at ``address``. Raises DriverError."""
    with InContext(device):
        return bytes(call(driver.cuIpcGetMemHandle, address).reserved)


def open_handle(device: int, handle: bytes, num_bytes: int) -> int:
    """Map another process's allocation, and enable access where it lies on another device.

    Raises DriverError; TransportError where it is not as large as is said: whoever reads past its end reads what is
    another's, or loses the device for all.
    """
    given = driver.CUipcMemHandle()
    given.reserved = handle.ljust(IPC_BYTES, b"\0")[:IPC_BYTES]
    with InContext(device):
        address = int(call(driver.cuIpcOpenMemHandle, given, int(_LAZY_PEER_ACCESS)))
        try:
            base, size = asked(driver.cuMemGetAddressRange, address)
            room = int(base) + int(size) - address
            if room < num_bytes:
                raise TransportError(f"the source's memory has {room} bytes, not {num_bytes}")
        except BaseException:
            call(driver.cuIpcCloseMemHandle, address)
            raise
    return address


def close_handle(device: int, address: int) -> None:
    """Unmap it. Raises DriverError."""
    with InContext(device):
        call(driver.cuIpcCloseMemHandle, address)


def copy_all(device: int, pieces: Iterable[tuple[int, int, int]], stream: int) -> None:
    """Begin to copy (source, destination, bytes) between any two memories, in a stream's order. Raises DriverError."""
    with InContext(device):
        for source, destination, length in pieces:
            call(driver.cuMemcpyAsync, destination, source, length, stream)


class Lines(NamedTuple):
    """Runs of ``width`` bytes, each ``step`` bytes further than the one before."""

    address: int
    step: int
    width: int
    num_lines: int


def copy_lines(device: int, lines: Lines, destination: int, stream: int) -> None:
    """Begin to copy lines to one place, one after the other, in a stream's order. Raises DriverError."""
    asked_for = driver.CUDA_MEMCPY2D()
    asked_for.srcMemoryType = asked_for.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    asked_for.srcDevice, asked_for.srcPitch = lines.address, lines.step
    asked_for.dstDevice, asked_for.dstPitch = destination, lines.width
    asked_for.WidthInBytes, asked_for.Height = lines.width, lines.num_lines
    with InContext(device):
        call(driver.cuMemcpy2DAsync, asked_for, stream)


def register(device: int, address: int, num_bytes: int) -> None:
    """Fix host memory where it lies, for the device to read and write by itself. Raises DriverError.

    Where some is noted there already, that is of pages that are gone, and were never said to be: it makes way.
    """
    with InContext(device):
        try:
            call(driver.cuMemHostRegister, address, num_bytes, _PORTABLE | _MAPPED)
        except DriverError as error:
            if error.status != ALREADY_REGISTERED:
                raise
            call(driver.cuMemHostUnregister, address)
            call(driver.cuMemHostRegister, address, num_bytes, _PORTABLE | _MAPPED)


def unregister(device: int, address: int) -> None:
    """End that. Raises DriverError."""
    with InContext(device):
        call(driver.cuMemHostUnregister, address)


def write_word(device: int, address: int, value: int, stream: int) -> None:
    """Begin to write four bytes of registered memory, in a stream's order. Raises DriverError."""
    with InContext(device):
        call(driver.cuStreamWriteValue32, stream, _seen_by_device(address), value, 0)


def wait_for_word(device: int, address: int, value: int, stream: int) -> None:
    """Let what comes on a stream wait until four bytes of registered memory have a value. Raises DriverError."""
    with InContext(device):
        call(driver.cuStreamWaitValue32, stream, _seen_by_device(address), value, _EQUAL)


def _seen_by_device(address: int) -> int:
    """Return where the device has an address of registered memory; it is asked for a page."""
    within = address % PAGE_BYTES
    return int(call(driver.cuMemHostGetDevicePointer, address - within, 0)) + within


def version() -> int:
    """Return the newest CUDA version that the driver knows: 13000 is 13.0."""
    return int(call(driver.cuDriverGetVersion))


def call(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """Call the driver; return what it gives beside its status. Raises DriverError, TransportError without a driver."""
    found = asked(function, *arguments)
    return found[0] if found else None


def asked(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> list[Any]:
    """Do what ``call`` does, and return all that it gives."""
    try:
        status, *found = function(*arguments)
    except RuntimeError as error:
        raise TransportError(f"there is no CUDA driver here: {error}") from error
    if int(status):
        raise DriverError(function.__name__, status)
    return found


@cache
def _context(device: int) -> Any:
    """Return the device's primary context, which is held for the life of the process."""
    call(driver.cuInit, 0)
    return call(driver.cuDevicePrimaryCtxRetain, call(driver.cuDeviceGet, device))
