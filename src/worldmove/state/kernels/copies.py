"""Many pieces of memory copied by one launch."""

from collections.abc import Sequence

import numpy as np
import torch

from worldmove.state.kernels.load import Launcher, launcher
from worldmove.state.kernels.memory import Mirror, Stream, chosen, handle, new_event
from worldmove.state.kernels.shares import Numbers, deal
from worldmove.state.kernels.tuning import Tuning

_LARGEST_UNIT = 16
"""Bytes of the largest load."""

Piece = tuple[int, int, int]
"""Source address, target address, bytes."""


class CopyPlan:
    """Pieces, dealt to blocks. Made by ``Copies.plan``; may be launched any number of times."""

    def __init__(self, pieces: Sequence[Piece] | Numbers, copies: "Copies") -> None:
        self.num_bytes = 0
        self.done = new_event(copies.device)
        self.most_pieces = len(pieces)
        self._blocks = copies.num_blocks
        self._tile = copies.tuning.copy_threads
        self._overhead = copies.tuning.share_loads
        self._pieces: Numbers | None = None
        self._piece_of: Numbers = np.zeros(0, dtype=np.int64)
        self.table = Mirror(self._blocks + 1 + 4 * (3 * len(pieces) + self._blocks), copies.device)
        shares = self.table.address + 8 * (self._blocks + 1)
        self.call = copies.launcher.call(
            "copy_pieces",
            blocks=self._blocks,
            threads=copies.tuning.copy_threads,
            shared_bytes=0,
            arguments=(shares, self.table.address),
        )
        self.point(pieces)

    def point(self, pieces: Sequence[Piece] | Numbers) -> None:
        """Take other pieces, no more of them than at first. Allocates nothing; the next launch uploads them."""
        if len(pieces) > self.most_pieces:
            raise ValueError(f"this plan has room for {self.most_pieces} pieces, not {len(pieces)}")
        table = np.asarray(pieces, dtype=np.int64).reshape(-1, 3)
        numbers = self.table.numbers()
        if not self._shifted(table, numbers):
            self._deal(table, numbers)
        self._pieces = table

    def _shifted(self, table: Numbers, numbers: Numbers) -> bool:
        """Let the same pieces lie elsewhere; False if they have other lengths, or are cut otherwise there."""
        before = self._pieces
        if before is None or not np.array_equal(table[:, 2], before[:, 2]):
            return False
        steps = table[:, :2] - before[:, :2]
        if (steps % _LARGEST_UNIT).any():
            return False
        _shares(numbers, self._blocks, len(self._piece_of))[:, :2] += steps[self._piece_of]
        return True

    def _deal(self, table: Numbers, numbers: Numbers) -> None:
        self.num_bytes = int(table[:, 2].sum())
        lines, piece_of = _lines(table)
        work = deal(-(-lines[:, 2] // self._tile), self._blocks, overhead=self._overhead)
        shares = lines[work.line]
        done = work.tile * self._tile
        shares[:, :2] += (done * shares[:, 3])[:, None]
        shares[:, 2] = np.minimum(shares[:, 2] - done, work.num_tiles * self._tile)
        self._piece_of = piece_of[work.line]
        numbers[: self._blocks + 1] = work.bounds
        _shares(numbers, self._blocks, len(shares))[:] = shares


class Copies:
    """Copies between any addresses that the device can reach, a peer's mapping among them."""

    def __init__(
        self, device: torch.device, *, tuning: Tuning | None = None, launcher_: Launcher | None = None
    ) -> None:
        self.device = device
        self.tuning = tuning or Tuning()
        self.launcher = launcher_ or launcher(device, self.tuning.constants)
        self.num_blocks = self.launcher.num_processors * self.tuning.copy_blocks

    def plan(self, pieces: Sequence[Piece] | Numbers) -> CopyPlan:
        """Prepare a launch. Pieces may have any alignment and length; no target may overlap another piece."""
        return CopyPlan(pieces, self)

    def pointed(self, plan: CopyPlan | None, pieces: Sequence[Piece] | Numbers) -> CopyPlan:
        """Return ``plan``, pointed at other pieces, if it has room for them; else a new one."""
        if plan is None or plan.most_pieces < len(pieces):
            return self.plan(pieces)
        plan.point(pieces)
        return plan

    def launch(self, plan: CopyPlan, *, stream: Stream = None) -> torch.cuda.Event | None:
        """Start the copy, in the stream's order, and return an event that comes after it (until the next launch)."""
        on = chosen(self.device, stream)
        plan.table.upload(on)
        plan.call.start(handle(on))
        if plan.done is not None:
            plan.done.record(on)
        plan.table.used(plan.done)
        return plan.done


def _shares(numbers: Numbers, num_blocks: int, count: int) -> Numbers:
    """Return the lines of the shares, as ``programs.cu`` has them, to be written."""
    return numbers[num_blocks + 1 : num_blocks + 1 + 4 * count].reshape(-1, 4)


def _lines(pieces: Numbers) -> tuple[Numbers, Numbers]:
    """Cut pieces into [source, target, number of units, bytes of a unit]: a head, a body and a tail each.

    And of which piece each is.

    The body's unit is the largest of 16, 4 and 1 that source and target can both be multiples of.
    """
    source, target, length = pieces.T
    apart = source - target
    unit = np.where(apart % 16 == 0, 16, np.where(apart % 4 == 0, 4, 1))
    head = np.minimum(-source % unit, length)
    body = (length - head) // unit * unit
    tail = length - head - body
    one = np.ones_like(unit)
    parts = [
        np.stack((source + head, target + head, body // unit, unit), axis=1),
        np.stack((source, target, head, one), axis=1),
        np.stack((source + head + body, target + head + body, tail, one), axis=1),
    ]
    lines, piece_of = np.concatenate(parts), np.tile(np.arange(len(pieces)), 3)
    some = lines[:, 2] > 0
    return lines[some], piece_of[some]
