"""Many pieces of memory copied by one launch."""

from collections.abc import Sequence

import numpy as np
import torch

from worldmove.state.kernels.load import Launcher, launcher
from worldmove.state.kernels.memory import Mirror, Stream, chosen, handle, new_event
from worldmove.state.kernels.shares import Numbers, deal
from worldmove.state.kernels.strides import strided
from worldmove.state.kernels.tuning import Tuning

_LARGEST_UNIT = 16
"""Bytes of the largest load."""

Piece = tuple[int, int, int]
"""Source address, target address, bytes."""

_SHARE = 8
_FEW = 4096
"""Up to so many pieces a plan has room for whatever others there may be: planning anew takes pinned memory."""


class CopyPlan:
    """Pieces, dealt to blocks. Made by ``Copies.plan``; may be launched any number of times."""

    def __init__(self, pieces: Sequence[Piece] | Numbers, copies: "Copies") -> None:
        table = _table(pieces)
        lines, led_by = _lines(table)
        self.num_bytes = 0
        self.done = new_event(copies.device)
        self.most_lines = max(3 * min(len(pieces), _FEW), len(lines) + len(lines) // 4)
        self._blocks = copies.num_blocks
        self._tile = copies.tuning.copy_threads
        self._overhead = copies.tuning.share_loads
        self._pieces = table
        self._leaders = _leaders(table)
        self.table = Mirror(self._blocks + 1 + _SHARE * (self.most_lines + self._blocks), copies.device)
        shares = self.table.address + 8 * (self._blocks + 1)
        self.call = copies.launcher.call(
            "copy_pieces",
            blocks=self._blocks,
            threads=copies.tuning.copy_threads,
            shared_bytes=0,
            arguments=(shares, self.table.address),
        )
        self._deal(lines, led_by)

    def point(self, pieces: Sequence[Piece] | Numbers) -> bool:
        """Take other pieces; False where there is no room for them. Allocates nothing; the next launch uploads them."""
        table = _table(pieces)
        if not self._shifted(table):
            lines, led_by = _lines(table)
            if len(lines) > self.most_lines:
                return False
            self._deal(lines, led_by)
            self._leaders = _leaders(table)
        self._pieces = table
        return True

    def _shifted(self, table: Numbers) -> bool:
        """Let the same pieces lie elsewhere; False if they have other lengths, or are cut otherwise there."""
        before = self._pieces
        if not np.array_equal(table[:, 2], before[:, 2]):
            return False
        steps = table[:, :2] - before[:, :2]
        if (steps % _LARGEST_UNIT).any() or (steps != steps[self._leaders]).any():
            return False
        _shares(self.table.numbers(), self._blocks, len(self._led_by))[:, :2] += steps[self._led_by]
        return True

    def _deal(self, lines: Numbers, led_by: Numbers) -> None:
        sources, targets, width, unit, count, source_step, target_step = lines.T
        self.num_bytes = int((width * unit * count).sum())
        work = deal(-(-(width * count) // self._tile), self._blocks, overhead=self._overhead)
        self._led_by = led_by[work.line]
        first = work.tile * self._tile
        row, inside = np.divmod(first, width[work.line])
        shares = np.empty((len(work.line), _SHARE), dtype=np.int64)
        shares[:, 0] = sources[work.line] + row * source_step[work.line]
        shares[:, 1] = targets[work.line] + row * target_step[work.line]
        shares[:, 2] = np.minimum((width * count)[work.line] - first, work.num_tiles * self._tile)
        shares[:, 3] = unit[work.line]
        shares[:, 4] = inside
        shares[:, 5] = width[work.line]
        shares[:, 6] = source_step[work.line]
        shares[:, 7] = target_step[work.line]
        numbers = self.table.numbers()
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
        return plan if plan is not None and plan.point(pieces) else self.plan(pieces)

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
    return numbers[num_blocks + 1 : num_blocks + 1 + _SHARE * count].reshape(-1, _SHARE)


def _table(pieces: Sequence[Piece] | Numbers) -> Numbers:
    return np.asarray(pieces, dtype=np.int64).reshape(-1, 3)


def _leaders(pieces: Numbers) -> Numbers:
    """Return for each piece the first one of its line."""
    lines = strided(*pieces.T)
    return np.repeat(lines.first, lines.counts)


def _lines(pieces: Numbers) -> tuple[Numbers, Numbers]:
    """Cut pieces into [source, target, number of units, bytes of a unit, how many of these, steps of both].

    And the first piece of each.

    A head, a body and a tail of each. The body's unit is the largest of 16, 4 and 1 that addresses and steps can all be
    multiples of.
    """
    source, target, length, count, source_step, target_step, first = strided(*pieces.T)
    odd = (source - target) | source_step | target_step
    unit = np.where(odd % 16 == 0, 16, np.where(odd % 4 == 0, 4, 1))
    head = np.minimum(-source % unit, length)
    body = (length - head) // unit * unit
    tail = length - head - body
    one = np.ones_like(unit)
    steps = count, source_step, target_step
    parts = [
        np.stack((source + head, target + head, body // unit, unit, *steps), axis=1),
        np.stack((source, target, head, one, *steps), axis=1),
        np.stack((source + head + body, target + head + body, tail, one, *steps), axis=1),
    ]
    lines = np.concatenate(parts)
    some = lines[:, 2] > 0
    return lines[some], np.tile(first, 3)[some]
