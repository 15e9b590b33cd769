"""The device programs compiled (NVRTC) and started on a CUDA device. The only file that imports ``cuda.bindings``."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cuda.bindings import driver, nvrtc

from worldmove.errors import UserError

SOURCE = Path(__file__).with_name("programs.cu")
LEAST_CAPABILITY = (8, 0)
"""From here on a device fetches into shared memory asynchronously."""


class CudaLauncher:
    """The programs in one device's primary context, the one that torch works in."""

    def __init__(self, device: torch.device, constants: Mapping[str, int]) -> None:
        properties = torch.cuda.get_device_properties(device)
        if (properties.major, properties.minor) < LEAST_CAPABILITY:
            raise UserError(f"{properties.name} is older than the kernels for device memory can use")
        self.num_processors = int(properties.multi_processor_count)
        torch.empty(1, device=device)  # torch makes the context
        index = torch.cuda.current_device() if device.index is None else device.index
        self.context = _checked(driver.cuDevicePrimaryCtxRetain(_checked(driver.cuDeviceGet(index))))
        image = compiled(f"sm_{properties.major}{properties.minor}", tuple(constants.items()))
        self._image = ctypes.create_string_buffer(image, len(image))
        with _Current(self.context):
            self._module = _checked(driver.cuModuleLoadData(ctypes.addressof(self._image)))

    def call(
        self, program: str, *, blocks: int, threads: int, shared_bytes: int, arguments: Sequence[int]
    ) -> "CudaCall":
        """Prepare a program."""
        with _Current(self.context):
            function = _checked(driver.cuModuleGetFunction(self._module, program.encode()))
            if shared_bytes:
                most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                _checked(driver.cuFuncSetAttribute(function, most, shared_bytes))
        return CudaCall(self, function, (blocks, threads, shared_bytes), arguments)


class CudaCall:
    """A program whose arguments lie ready, as the driver wants them."""

    def __init__(
        self, owner: CudaLauncher, function: Any, shape: tuple[int, int, int], arguments: Sequence[int]
    ) -> None:
        self._owner = owner
        self._function = function
        self._blocks, self._threads, self._shared_bytes = shape
        self._values = np.array(arguments, dtype=np.uint64)
        self._pointers = self._values.ctypes.data + 8 * np.arange(len(arguments), dtype=np.uint64)
        self._at = int(self._pointers.ctypes.data)

    def start(self, stream: int) -> None:
        """Start it; asynchronous."""
        with _Current(self._owner.context):
            _checked(
                driver.cuLaunchKernel(
                    self._function, self._blocks, 1, 1, self._threads, 1, 1, self._shared_bytes, stream, self._at, 0
                )
            )


class _Current:
    """Makes a context this thread's, if it is not, for as long as it is entered."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._pushed = False

    def __enter__(self) -> None:
        self._pushed = int(_checked(driver.cuCtxGetCurrent())) != int(self._context)
        if self._pushed:
            _checked(driver.cuCtxPushCurrent(self._context))

    def __exit__(self, *_: object) -> None:
        if self._pushed:
            _checked(driver.cuCtxPopCurrent())


@lru_cache(maxsize=4)
def compiled(architecture: str, constants: tuple[tuple[str, int], ...]) -> bytes:
    """Return the programs' machine code; it takes seconds. Raises RuntimeError with the compiler's words."""
    program = _checked(nvrtc.nvrtcCreateProgram(SOURCE.read_bytes(), SOURCE.name.encode(), 0, [], []))
    options = [f"--gpu-architecture={architecture}", *(f"-D{name}={value}" for name, value in constants)]
    try:
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if int(status):
            log = bytearray(_checked(nvrtc.nvrtcGetProgramLogSize(program)))
            _checked(nvrtc.nvrtcGetProgramLog(program, log))
            raise RuntimeError(f"the device programs do not compile: {log.decode(errors='replace')}")
        image = bytearray(_checked(nvrtc.nvrtcGetCUBINSize(program)))
        _checked(nvrtc.nvrtcGetCUBIN(program, image))
    finally:
        _checked(nvrtc.nvrtcDestroyProgram(program))
    return bytes(image)


def _checked(found: tuple[Any, ...]) -> Any:
    status, *rest = found
    if int(status):
        raise RuntimeError(f"the CUDA driver says {status!s}")
    return rest[0] if rest else None
