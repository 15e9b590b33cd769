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

MEMORY_FOLDER = Path("/dev/shm")
REPEATS = 20
FILE_REPEATS = 3
WARM_UP = 2

Times = Mapping[str, list[float] | str]
"""Milliseconds of each repeat; or why a way could not be taken."""


def measure_peers(sizes: Sequence[int], device: str, stage: Callable[[str], None]) -> Times:
    """Bring tensors of so many bytes elsewhere on ``device`` ("cpu", "cuda"), in each way that there is.

    Every repeat is timed from an idle device to an idle device.
    """
    tensors = [_noise(size, device) for size in sizes if size]
    return {name: _taken(way, tensors, device, stage, name) for name, way in WAYS.items()}


def medians(times: Times) -> dict[str, float | str]:
    """Return the median of each way, in ms."""
    return {name: found if isinstance(found, str) else round(median(found), 4) for name, found in times.items()}


def _noise(size: int, device: str) -> Tensor:
    """Zeros would travel faster than a state does."""
    generator = torch.Generator(device).manual_seed(size)
    return torch.randint(0, 256, (size,), dtype=torch.uint8, device=device, generator=generator)


def _taken(
    way: Callable[[list[Tensor], str], list[float]],
    tensors: list[Tensor],
    device: str,
    stage: Callable[[str], None],
    name: str,
) -> list[float] | str:
    stage(f"as many bytes: {name}")
    try:
        return way(tensors, device)
    except (OSError, RuntimeError) as error:
        return str(error)[:200]


def _flat(tensors: list[Tensor], device: str) -> list[float]:
    source = torch.cat(tensors)
    target = torch.empty_like(source)
    return _timed(lambda: target.copy_(source), device, REPEATS)


def _each(tensors: list[Tensor], device: str) -> list[float]:
    targets = [torch.empty_like(tensor) for tensor in tensors]

    def copy() -> None:
        for target, source in zip(targets, tensors, strict=True):
            target.copy_(source)

    return _timed(copy, device, REPEATS)


def _torch_files(tensors: list[Tensor], device: str) -> list[float]:
    with TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        path = Path(folder) / "state.pt"

        def save_and_load() -> None:
            torch.save(tensors, path)
            torch.load(path, map_location=device, weights_only=True)

        return _timed(save_and_load, device, FILE_REPEATS, warm_up=1)


def _safetensors_files(tensors: list[Tensor], device: str) -> list[float]:
    named = {str(number): tensor for number, tensor in enumerate(tensors)}
    with TemporaryDirectory(dir=MEMORY_FOLDER) as folder:
        path = Path(folder) / "state.safetensors"

        def save_and_load() -> None:
            save_file(named, path)
            load_file(path, device=device)

        return _timed(save_and_load, device, FILE_REPEATS, warm_up=1)


WAYS: dict[str, Callable[[list[Tensor], str], list[float]]] = {
    "one flat copy": _flat,
    "one copy for each tensor": _each,
    "torch.save and torch.load through memory": _torch_files,
    "safetensors through memory": _safetensors_files,
}


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
        torch.cuda.synchronize()
