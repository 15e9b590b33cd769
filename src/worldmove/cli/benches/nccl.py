"""NCCL's send and receive of as many bytes between two processes: what collectives offer, without a verification.

Needs two GPUs. The sender's clock runs until the receiver, whose device has all of it, has said so by one byte more.
"""

import multiprocessing
import os
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor

REPEATS = 20
WARM_UP = 3
LIMIT_S = 120.0

Times = dict[str, list[float]]


def measure_nccl(sizes: Sequence[int]) -> dict[str, list[float] | str]:
    """Return ms of each repeat, by way; or why there is none."""
    if torch.cuda.device_count() < 2:
        return {"NCCL send and receive": "fewer than two GPUs are here"}
    return dict(between_two(sizes, "nccl", ("cuda:0", "cuda:1")))


def between_two(sizes: Sequence[int], backend: str, devices: tuple[str, str], repeats: int = REPEATS) -> Times:
    """Send tensors of so many bytes from one process to another. Raises RuntimeError where one of them fails."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    with TemporaryDirectory(prefix="worldmove-bench-") as folder:
        groups = [(backend, device, str(Path(folder) / "meet")) for device in devices]
        ends = [(rank, list(sizes), group, repeats, there) for rank, group in enumerate(groups)]
        processes = [context.Process(target=_end, args=arguments) for arguments in ends]
        for process in processes:
            process.start()
        there.close()
        try:
            if not here.poll(LIMIT_S):
                raise RuntimeError(f"no answer within {LIMIT_S:.0f} s")
            return cast("Times", here.recv())
        except EOFError as error:
            raise RuntimeError("one of the two processes failed") from error
        finally:
            here.close()
            for process in processes:
                process.join(20)
                if process.is_alive():
                    process.kill()


def _end(rank: int, sizes: list[int], group: tuple[str, str, str], repeats: int, parent: Connection) -> None:
    """``group``: backend, device of this end, file at which both meet."""
    backend, where, meeting = group
    # Nothing here needs multicast, and to ask for it where it is shared can take a host's switches out of service.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    device = torch.device(where)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(backend, init_method=f"file://{meeting}", rank=rank, world_size=2)
    each = [torch.full((size,), rank, dtype=torch.uint8, device=device) for size in sizes if size]
    ways = {f"{backend.upper()}, one flat tensor": [torch.cat(each)], f"{backend.upper()}, each tensor": each}
    times = {name: _timed(rank, tensors, device, repeats) for name, tensors in ways.items()}
    if rank == 0:
        parent.send(times)
    dist.destroy_process_group()


def _timed(rank: int, tensors: list[Tensor], device: torch.device, repeats: int) -> list[float]:
    work = _send if rank == 0 else _receive
    for _ in range(WARM_UP):
        work(tensors, device)
    found = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work(tensors, device)
        found.append((time.perf_counter() - begin) * 1000)
    return found


def _send(tensors: list[Tensor], device: torch.device) -> None:
    _all([dist.P2POp(dist.isend, tensor, 1) for tensor in tensors])
    dist.recv(torch.empty(1, dtype=torch.uint8, device=device), 1)
    _settle(device)


def _receive(tensors: list[Tensor], device: torch.device) -> None:
    _all([dist.P2POp(dist.irecv, tensor, 0) for tensor in tensors])
    _settle(device)
    dist.send(torch.ones(1, dtype=torch.uint8, device=device), 0)


def _all(operations: list["dist.P2POp"]) -> None:
    for request in dist.batch_isend_irecv(operations):
        request.wait()


def _settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
