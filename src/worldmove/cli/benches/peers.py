"""What a move is measured against: other ways to bring as many bytes, in as many tensors, to another place.

None of them verifies anything, or says who owns the world afterwards. A way that cannot be taken is said so by the
error in place of its times, and stops no other.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from worldmove.cli.benches.nccl import measure_nccl

MEMORY_FOLDER = Path("/dev/shm")
REPEATS = 20
WARM_UP = 2

Stage = Callable[[str], None]
Way = Callable[[list[Tensor], str, int], list[float]]
"""Tensors, the device, how often."""
Times = Mapping[str, list[float] | str]
"""Milliseconds of each repeat; or why a way could not be taken."""


def measure_peers(sizes: Sequence[int], device: str, stage: Stage, *, file_repeats: int = REPEATS) -> Times:
    """Bring tensors of so many bytes elsewhere on ``device`` ("cpu", "cuda"), in each way that there is.

    Every repeat is timed from an idle device to an idle device.
    """
    tensors = [_noise(size, device) for size in sizes if size]
    found: dict[str, list[float] | str] = {}
    for name, way in WAYS.items():
        repeats = file_repeats if way in THROUGH_FILES else REPEATS
        stage(f"as many bytes: {name}")
        found[name] = _taken(way, tensors, device, repeats)
    del tensors
    if torch.device(device).type == "cuda":
        found |= _nccl([size for size in sizes if size], stage)
    return found


def medians(times: Times) -> dict[str, float | str]:
    """Return the median of each way, in ms."""
    return {name: found if isinstance(found, str) else round(median(found), 4) for name, found in times.items()}


def _noise(size: int, device: str) -> Tensor:
    """Zeros would travel faster than a state does."""
    generator = torch.Generator(device).manual_seed(size)
    return torch.randint(0, 256, (size,), dtype=torch.uint8, device=device, generator=generator)


def _taken(way: Way, tensors: list[Tensor], device: str, repeats: int) -> list[float] | str:
    try:
        return way(tensors, device, repeats)
    except (OSError, RuntimeError) as error:
        return str(error)[:200]


def _nccl(sizes: Sequence[int], stage: Stage) -> Mapping[str, list[float] | str]:
    stage("as many bytes: NCCL")
    try:
        return measure_nccl(sizes)
    except (OSError, RuntimeError) as error:
        return {"NCCL send and receive": str(error)[:200]}


def _flat(tensors: list[Tensor], device: str, repeats: int) -> list[float]:
    source = torch.cat(tensors)
    target = torch.empty_like(source)
    return _timed(lambda: target.copy_(source), device, repeats)


def _flat_to_another(tensors: list[Tensor], device: str, repeats: int) -> list[float]:
    _require_another(device)
    source = torch.cat(tensors)
    target = torch.empty_like(source, device="cuda:1")
    return _timed(lambda: target.copy_(source), device, repeats)


def _each(tensors: list[Tensor], device: str, repeats: int) -> list[float]:
    targets = [torch.empty_like(tensor) for tensor in tensors]

    def copy() -> None:
        for target, source in zip(targets, tensors, strict=True):
            target.copy_(source)

    return _timed(copy, device, repeats)


def _each_to_another(tensors: list[Tensor], device: str, repeats: int) -> list[float]:
    _require_another(device)
    targets = [torch.empty_like(tensor, device="cuda:1") for tensor in tensors]

    def copy() -> None:
        for target, source in zip(targets, tensors, strict=True):
            target.copy_(source, non_blocking=True)

    return _timed(copy, device, repeats)


def _require_another(device: str) -> None:
    if torch.device(device).type != "cuda" or torch.cuda.device_count() < 2:
        raise RuntimeError("fewer than two GPUs are here")


def _torch_files(tensors: list[Tensor], device: str, repeats: int) -> list[float]:
    with TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        path = Path(folder) / "state.pt"

        def save_and_load() -> None:
            torch.save(tensors, path)
            torch.load(path, map_location=device, weights_only=True)

        return _timed(save_and_load, device, repeats, warm_up=1)


def _safetensors_files(tensors: list[Tensor], device: str, repeats: int) -> list[float]:
    named = {str(number): tensor for number, tensor in enumerate(tensors)}
    with TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        path = Path(folder) / "state.safetensors"

        def save_and_load() -> None:
            save_file(named, path)
            load_file(path, device=device)

        return _timed(save_and_load, device, repeats, warm_up=1)


WAYS: Mapping[str, Way] = {
    "one flat copy": _flat,
    "one flat copy to another GPU": _flat_to_another,
    "one copy for each tensor": _each,
    "one copy for each tensor, to another GPU": _each_to_another,
    "torch.save and torch.load through memory": _torch_files,
    "safetensors through memory": _safetensors_files,
}
THROUGH_FILES = (_torch_files, _safetensors_files)
"""Those that take seconds where the others take milliseconds."""


def _timed(work: Callable[[], object], device: str, repeats: int, *, warm_up: int = WARM_UP) -> list[float]:
    for _ in range(warm_up):
        work()
    return [_once(work, device) for _ in range(repeats)]


def _once(work: Callable[[], object], device: str) -> float:
    _settle(device)
    begin = time.perf_counter()
    work()
    _settle(device)
    return (time.perf_counter() - begin) * 1000


def _settle(device: str) -> None:
    if torch.device(device).type == "cuda":
        for index in range(torch.cuda.device_count()):
            torch.cuda.synchronize(index)
