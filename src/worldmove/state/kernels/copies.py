"""Many pieces of memory copied by one launch."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from worldmove.state.kernels.load import num_programs, programs
from worldmove.state.kernels.memory import Mirror, new_event, on_stream
from worldmove.state.kernels.shares import Numbers, deal

Piece = tuple[int, int, int]
"""Source address, target address, bytes."""

PER_PROCESSOR = 4
BLOCK = 4096
WARPS = 8
STAGES = 1


class CopyPlan:
    """Pieces, dealt to programs. Made by ``Copies.plan``; may be launched any number of times."""

    def __init__(self, pieces: Sequence[Piece], copies: "Copies") -> None:
        count = copies.num_programs
        self.shares = Mirror(4 * (3 * len(pieces) + count), torch.int64, copies.device)
        self.bounds = Mirror(count + 1, torch.int32, copies.device)
        self.num_bytes = 0
        self._room = len(pieces)
        self._block = copies.block
        self.point(pieces)

    def point(self, pieces: Sequence[Piece]) -> None:
        """Take other pieces, no more of them than at first. Allocates nothing; upload is part of the next launch."""
        if len(pieces) > self._room:
            raise ValueError(f"this plan has room for {self._room} pieces, not {len(pieces)}")
        table = np.array(pieces, dtype=np.int64).reshape(-1, 3)
        self.num_bytes = int(table[:, 2].sum())
        shares, bounds = _dealt(_lines(table), self.bounds.capacity - 1, self._block)
        self.shares.write(shares)
        self.bounds.write(bounds)


class Copies:
    """Copies between any addresses that the device can reach, a peer's mapping among them."""

    def __init__(
        self,
        device: torch.device,
        *,
        per_processor: int = PER_PROCESSOR,
        block: int = BLOCK,
        warps: int = WARPS,
        stages: int = STAGES,
    ) -> None:
        self.device = device
        self.num_programs = num_programs(device, per_processor)
        self.block = block
        self._options: dict[str, Any] = {"BLOCK": block, "STAGES": stages, "num_warps": warps}
        self._programs = programs()
        self.launch(self.plan([]))  # compiles

    def plan(self, pieces: Sequence[Piece]) -> CopyPlan:
        """Prepare a launch. Pieces may have any alignment and length; no target may overlap another piece."""
        return CopyPlan(pieces, self)

    def launch(self, plan: CopyPlan, *, stream: torch.cuda.Stream | None = None) -> torch.cuda.Event | None:
        """Start the copy, in the stream's order. The event is there for who waits on another stream."""
        event = new_event(self.device)
        with on_stream(self.device, stream) as chosen:
            plan.shares.upload(chosen)
            plan.bounds.upload(chosen)
            self._programs.copy_pieces[(self.num_programs,)](plan.shares.device, plan.bounds.device, **self._options)
            if event is not None:
                event.record(chosen)
        plan.shares.used(event)
        plan.bounds.used(event)
        return event


def _lines(pieces: Numbers) -> Numbers:
    """Cut pieces into [source, target, number of elements, kind]: a head, a body and a tail each.

    Kind 16: words at addresses that are multiples of 16; 4: words; 1: bytes.
    """
    source, target, length = pieces.T
    apart = source - target
    kind = np.where(apart % 16 == 0, 16, np.where(apart % 4 == 0, 4, 1))
    head = np.minimum(-source % kind, length)
    body = (length - head) // kind * kind
    tail = length - head - body
    one = np.ones_like(kind)
    parts = [
        np.stack((source + head, target + head, np.where(kind == 1, body, body // 4), kind), axis=1),
        np.stack((source, target, head, one), axis=1),
        np.stack((source + head + body, target + head + body, tail, one), axis=1),
    ]
    lines = np.concatenate(parts)
    return lines[lines[:, 2] > 0]


def _dealt(lines: Numbers, count: int, block: int) -> tuple[Numbers, Numbers]:
    work = deal(-(-lines[:, 2] // block), count)
    shares = lines[work.line]
    done = work.tile * block
    stride = np.where(shares[:, 3] == 1, 1, 4)
    shares[:, 0] += done * stride
    shares[:, 1] += done * stride
    shares[:, 2] = np.minimum(shares[:, 2] - done, work.num_tiles * block)
    return shares, work.bounds.astype(np.int64)
