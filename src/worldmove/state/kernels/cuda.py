"""The device programs compiled (NVRTC) and started on a CUDA device."""

import ctypes
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cuda.bindings import driver, nvrtc

from worldmove.errors import UserError
from worldmove.state.cuda_driver import InContext, call

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
        self.device = index
        image = compiled(f"sm_{properties.major}{properties.minor}", tuple(constants.items()))
        self._image = ctypes.create_string_buffer(image, len(image))
        with InContext(index):
            self._module = call(driver.cuModuleLoadData, ctypes.addressof(self._image))
        self._functions: dict[tuple[str, int], Any] = {}

    def call(
        self, program: str, *, blocks: int, threads: int, shared_bytes: int, arguments: Sequence[int]
    ) -> "CudaCall":
        """Prepare a program."""
        function = self._functions.get((program, shared_bytes))
        if function is None:
            function = self._functions[program, shared_bytes] = self._function(program, shared_bytes)
        return CudaCall(self, function, (blocks, threads, shared_bytes), arguments)

    def _function(self, program: str, shared_bytes: int) -> Any:
        with InContext(self.device):
            function = call(driver.cuModuleGetFunction, self._module, program.encode())
            if shared_bytes:
                most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                call(driver.cuFuncSetAttribute, function, most, shared_bytes)
        return function


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
        blocks, threads, shared = self._blocks, self._threads, self._shared_bytes
        with InContext(self._owner.device):
            call(driver.cuLaunchKernel, self._function, blocks, 1, 1, threads, 1, 1, shared, stream, self._at, 0)


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
        raise RuntimeError(f"the compiler says {status!s}")
    return rest[0] if rest else None
