"""Which GPU is whose: a process sees its own first, as CUDA's ``cuda:0``, and those of the others behind it.

So an engine that computes on ``cuda`` computes on its own GPU, in every thread, and need not know of any other; and
memory of another GPU is mapped as CUDA's documentation has it, between two devices that this process sees. Pure.
"""

from collections.abc import Mapping, Sequence
from itertools import cycle
from types import MappingProxyType

from worldmove.errors import UserError

VARIABLE = "CUDA_VISIBLE_DEVICES"
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})


def seeing(gpu: str, gpus: Sequence[str]) -> dict[str, str]:
    """Return what the environment of a process says whose GPU is ``gpu``, one of ``gpus``; nothing without any."""
    if not gpus:
        return {}
    return {VARIABLE: ",".join((gpu, *(other for other in gpus if other != gpu)))}


def dealt(names: Sequence[str], gpus: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return what the environment of each process says: GPUs in turn."""
    return {name: seeing(gpu, gpus) for name, gpu in zip(names, cycle(gpus or ("",)), strict=False)}


def gpus_named(text: str) -> tuple[str, ...]:
    """Read a list with commas, of names as ``CUDA_VISIBLE_DEVICES`` has them. Raises UserError."""
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    if not all(names) or len(set(names)) != len(names):
        raise UserError(f"--gpus is a list of different GPUs, like 0,1; not {text!r}")
    return names
