"""The few calls to the CUDA driver that torch does not offer, by ``ctypes``.

The driver's library is there wherever there is a GPU, its entry points keep their meaning from version to version, and
nothing has to be installed for it. Every call works in the device's primary context, which is torch's.
"""

import ctypes
from collections.abc import Callable
from functools import cache

from worldmove.errors import TransportError

LIBRARY = "libcuda.so.1"
OUT_OF_MEMORY = 2
_LAZY_PEER_ACCESS = 1
IPC_BYTES = 64


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * IPC_BYTES),)


class DriverError(TransportError):
    """The driver refused a call. ``status`` is its number."""

    def __init__(self, call: str, status: int) -> None:
        super().__init__(f"{call}: {_name(status)}")
        self.status = status


@cache
def _library() -> ctypes.CDLL:
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise TransportError(f"there is no CUDA driver here: {error}") from error


@cache
def _context(device: int) -> ctypes.c_void_p:
    """Return the device's primary context, which is held for the life of the process."""
    number, context = ctypes.c_int(), ctypes.c_void_p()
    _check("cuInit", _library().cuInit(0))
    _check("cuDeviceGet", _library().cuDeviceGet(ctypes.byref(number), device))
    _check("cuDevicePrimaryCtxRetain", _library().cuDevicePrimaryCtxRetain(ctypes.byref(context), number))
    return context


def allocate(device: int, num_bytes: int) -> int:
    """Return the address of new memory. Raises DriverError."""
    address = ctypes.c_uint64()
    _call(device, "cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(num_bytes))
    return address.value


def free(device: int, address: int) -> None:
    """Give memory back. Raises DriverError."""
    _call(device, "cuMemFree_v2", ctypes.c_uint64(address))


def export(device: int, address: int) -> bytes:
    """Return the handle of an allocation that begins at ``address``. Raises DriverError."""
    handle = _Handle()
    _call(device, "cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(address))
    return bytes(handle)


def open_handle(device: int, handle: bytes) -> int:
    """Map another process's allocation, and enable access where it lies on another device. Raises DriverError."""
    address = ctypes.c_uint64()
    given = _Handle.from_buffer_copy(handle.ljust(IPC_BYTES, b"\0")[:IPC_BYTES])
    _call(device, "cuIpcOpenMemHandle_v2", ctypes.byref(address), given, ctypes.c_uint(_LAZY_PEER_ACCESS))
    return address.value


def close_handle(device: int, address: int) -> None:
    """Unmap it. Raises DriverError."""
    _call(device, "cuIpcCloseMemHandle", ctypes.c_uint64(address))


def copy(device: int, piece: tuple[int, int, int], stream: int) -> None:
    """Begin to copy (source, destination, bytes) between any two memories, in a stream's order. Raises DriverError."""
    source, destination, length = piece
    _call(
        device,
        "cuMemcpyAsync",
        ctypes.c_uint64(destination),
        ctypes.c_uint64(source),
        ctypes.c_size_t(length),
        ctypes.c_void_p(stream),
    )


def version(device: int) -> int:
    """Return the newest CUDA version that the driver knows: 13000 is 13.0."""
    found = ctypes.c_int()
    _call(device, "cuDriverGetVersion", ctypes.byref(found))
    return found.value


def library_version(*names: str) -> str:
    """Return the version of the first of some cuBLAS libraries that is there, or ``unknown``."""
    for name in names:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        parts = [ctypes.c_int() for _ in range(3)]
        status = [library.cublasGetProperty(kind, ctypes.byref(part)) for kind, part in enumerate(parts)]
        return "unknown" if any(status) else ".".join(str(part.value) for part in parts)
    return "unknown"


def _call(device: int, name: str, *arguments: object) -> None:
    function: Callable[..., int] = getattr(_library(), name)
    _check("cuCtxSetCurrent", _library().cuCtxSetCurrent(_context(device)))
    _check(name, function(*arguments))


def _check(call: str, status: int) -> None:
    if status:
        raise DriverError(call, status)


def _name(status: int) -> str:
    text = ctypes.c_char_p()
    if _library().cuGetErrorName(status, ctypes.byref(text)) or not text.value:
        return f"error {status}"
    return text.value.decode()
