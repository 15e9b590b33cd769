"""The device's launcher, made when it is first needed: a worker without a GPU never imports what it stands on."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Protocol

import torch

from worldmove.errors import UserError


class Call(Protocol):
    """A program with its arguments in place, to be started any number of times."""

    def start(self, stream: int) -> None:
        """Start it in the order of a stream, given by its handle."""
        ...


class Launcher(Protocol):
    """Compiles the device programs for one set of constants, and starts them."""

    @property
    def num_processors(self) -> int:
        """How many multiprocessors the device has."""
        ...

    def call(self, program: str, *, blocks: int, threads: int, shared_bytes: int, arguments: Sequence[int]) -> Call:
        """Prepare a program; arguments are addresses."""
        ...


def launcher(device: torch.device, constants: Mapping[str, int]) -> Launcher:
    """Return the launcher of a CUDA device. Raises UserError where a package is missing or the device too old."""
    try:
        module = import_module("worldmove.state.kernels.cuda")
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("cuda"):
            raise
        raise UserError("the kernels for device memory need cuda-bindings, which comes with torch for CUDA") from error
    made: Launcher = module.CudaLauncher(device, constants)
    return made
