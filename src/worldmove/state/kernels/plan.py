"""The groups of a layout, dealt to the warps of a device."""

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from worldmove.state.kernels.copies import Copies, CopyPlan
from worldmove.state.kernels.load import Call
from worldmove.state.kernels.memory import Mirror, Stream, new_event
from worldmove.state.kernels.shares import Numbers, deal
from worldmove.state.wmf1 import ROW_BYTES

Extents = Sequence[tuple[int, int]]
"""Address and bytes of each extent of a group, in order."""

Targets = Sequence[int]
"""Where a launch that copies takes each extent."""

_SHARE = 8
_UNIT = 16
"""Bytes that are read at once: a group that begins at a multiple of it is read where it lies."""


class Outcome:
    """Where a launch leaves its digests, and the event behind it."""

    def __init__(self, num_groups: int, device: torch.device) -> None:
        self.digests = torch.zeros(2 * max(num_groups, 1), dtype=torch.int64, pin_memory=device.type == "cuda")
        self.done = new_event(device)


class Plan:
    """Made by ``Fingerprints.plan``; may be launched any number of times, at one boundary after the other.

    Each launch waits for the one before it, on the device. What the last two have found is kept: a second pass over a
    state may be asked for while the first is under way.
    A group that is one extent at a multiple of 16 is read where it lies; any other is first gathered into scratch
    memory, which the plan has for as long as it lives.
    """

    def __init__(
        self, groups: Sequence[Extents], numbers: Numbers, targets: Sequence[Targets] | None, copies: Copies
    ) -> None:
        """``numbers``: the number of each group's first row."""
        device, tuning = copies.device, copies.tuning
        self._copies = copies
        self._copying = targets is not None
        self._extents = _Extents(groups, targets)
        self._num_bytes = self._extents.num_bytes()
        self._rows = -(-self._num_bytes // ROW_BYTES)
        self.num_blocks = copies.launcher.num_processors * tuning.blocks
        self._work = deal(self._rows, self.num_blocks * tuning.warps, overhead=tuning.share_rows)
        self._sums = torch.zeros(3 * max(self.num_groups, 1), dtype=torch.int64, device=device)
        self._outcomes = (Outcome(self.num_groups, device), Outcome(self.num_groups, device))
        self.empty = np.flatnonzero(self._rows == 0)
        self.launches = 0
        self._stream: Stream = None
        self._calls: dict[tuple[int, int], Call] = {}
        self.before: CopyPlan | None = None
        self.after: CopyPlan | None = None
        self._gathered: Numbers | None = None
        self._scratch = torch.empty(0)
        self._write_table(numbers)
        self._lay_out()

    @property
    def num_groups(self) -> int:
        """How many digests a launch gives."""
        return len(self._num_bytes)

    @property
    def num_bytes(self) -> int:
        """How many bytes a launch reads."""
        return int(self._num_bytes.sum())

    def outcome(self, launch: int) -> Outcome:
        """Return where a launch leaves what it finds, until the next but one; they are counted from 0."""
        return self._outcomes[launch % 2]

    def reads(self, written: Numbers) -> bool:
        """Say whether it reads a byte of memory that is told in lines of begin and end."""
        return any(self._extents.reads(begin, end) for begin, end in written.tolist())

    def shift(self, shifts: Sequence[tuple[int, int, int]] | Numbers) -> None:
        """Let groups, from the first place to before the second, lie so many bytes further.

        Allocates nothing while the same groups are read where they lie.
        """
        steps = self._extents.shift(shifts)
        if self._gathered is None or (steps % _UNIT).any() or steps[self._gathered].any():
            self._lay_out()
        else:  # each is read where it lies, as before
            by_share = steps[self._work.line]
            moved = by_share.nonzero()[0]  # few, where little is bound anew
            self._shares(self.table.numbers())[moved, 0] += by_share[moved]

    def call(self, table: int) -> Call:
        """Return the program of the next launch, with a table of coefficients at an address."""
        key = table, self.launches % 2
        found = self._calls.get(key)
        if found is None:
            tuning = self._copies.tuning
            base = self.table.address
            found = self._calls[key] = self._copies.launcher.call(
                "fingerprint_and_copy" if self._copying else "fingerprint",
                blocks=self.num_blocks,
                threads=32 * tuning.warps,
                shared_bytes=tuning.shared_bytes,
                arguments=(
                    base + 8 * self._shares_at,
                    base,
                    table,
                    self._sums.data_ptr(),
                    self.outcome(self.launches).digests.data_ptr(),
                ),
            )
        return found

    def follow(self, stream: Stream) -> None:
        """Let what comes on ``stream`` wait for the last launch, which uses the same sums."""
        done = self.outcome(self.launches - 1).done
        if stream is not None and done is not None and self.launches and self._stream != stream:
            stream.wait_event(done)

    def launched(self, stream: Stream) -> Outcome:
        """Note a launch on ``stream``, and return where it leaves what it finds: that of the last but one is gone."""
        outcome = self.outcome(self.launches)
        if outcome.done is not None:
            outcome.done.record(stream)
        self.table.used(outcome.done)
        self._stream = stream
        self.launches += 1
        return outcome

    def _write_table(self, numbers: Numbers) -> None:
        """Lay bounds and shares out in one table, all but the addresses."""
        work = self._work
        self._shares_at = -(-len(work.bounds) // _SHARE) * _SHARE
        self.table = Mirror(self._shares_at + _SHARE * len(work.line), self._copies.device)
        table = self.table.numbers()
        table[: len(work.bounds)] = work.bounds
        shares = self._shares(table)
        shares[:, 2] = work.line
        shares[:, 3] = numbers[work.line] + work.tile
        most = work.num_tiles * ROW_BYTES
        shares[:, 4] = np.minimum(self._num_bytes[work.line] - work.tile * ROW_BYTES, most)
        shares[:, 5] = self._rows[work.line]
        shares[:, 6] = self._num_bytes[work.line]

    def _shares(self, table: Numbers) -> Numbers:
        """Return the lines of the shares, as ``programs.cu`` has them, to be written."""
        end = self._shares_at + _SHARE * len(self._work.line)
        return table[self._shares_at : end].reshape(-1, _SHARE)

    def _lay_out(self) -> None:
        """Decide for every group where it is read, and write all addresses."""
        direct = self._extents.direct()
        gathered = np.flatnonzero(~direct)
        if self._gathered is None or not np.array_equal(gathered, self._gathered):
            self._take_scratch(gathered)
        begins = np.zeros(self.num_groups, dtype=np.int64)
        rows = self._rows[gathered]
        begins[gathered] = self._scratch.data_ptr() + (np.cumsum(rows) - rows) * ROW_BYTES
        lines = np.where(direct[:, None], self._extents.lines(), begins[:, None])  # scratch is copied onto itself
        shares = self._shares(self.table.numbers())
        shares[:, :2] = lines[self._work.line] + (self._work.tile * ROW_BYTES)[:, None]
        sources, places, targets, lengths = self._extents.pieces(~direct, begins)
        self.before = self._copied(self.before, np.stack((sources, places, lengths), axis=1))
        if self._copying:  # the very bytes that are digested
            self.after = self._copied(self.after, np.stack((places, targets, lengths), axis=1))

    def _take_scratch(self, gathered: Numbers) -> None:
        num_bytes = int(self._rows[gathered].sum()) * ROW_BYTES
        self._scratch = torch.empty(num_bytes, dtype=torch.uint8, device=self._copies.device)
        self._gathered = gathered

    def _copied(self, plan: CopyPlan | None, pieces: Numbers) -> CopyPlan | None:
        """Return a plan of the pieces: ``plan``, pointed there, if it has room."""
        return self._copies.pointed(plan, pieces) if len(pieces) else None


class _Extents:
    """All extents of all groups in one array: [address, target, bytes]; targets are 0 where nothing is copied."""

    def __init__(self, groups: Sequence[Extents], targets: Sequence[Targets] | None) -> None:
        self._counts = np.fromiter(map(len, groups), dtype=np.int64, count=len(groups))
        self._first = np.cumsum(self._counts) - self._counts
        self._group = np.repeat(np.arange(len(groups)), self._counts)
        total = int(self._counts.sum())
        numbers = chain.from_iterable(chain.from_iterable(groups))
        self._table = np.zeros((total, 3), dtype=np.int64)
        self._table[:, ::2] = np.fromiter(numbers, dtype=np.int64, count=2 * total).reshape(-1, 2)
        if targets is not None:
            self._table[:, 1] = np.fromiter(chain.from_iterable(targets), dtype=np.int64, count=total)

    def reads(self, begin: int, end: int) -> bool:
        """Say whether one of them has a byte from ``begin`` to before ``end``."""
        addresses, lengths = self._table[:, 0], self._table[:, 2]
        return bool(((lengths > 0) & (addresses < end) & (addresses + lengths > begin)).any())

    def num_bytes(self) -> Numbers:
        """Return the bytes of each group."""
        found = np.zeros(len(self._counts), dtype=np.int64)
        np.add.at(found, self._group, self._table[:, 2])
        return found

    def shift(self, shifts: Sequence[tuple[int, int, int]] | Numbers) -> Numbers:
        """Add to the addresses of runs of groups; return by how much, for each group."""
        first, end, by = np.asarray(shifts, dtype=np.int64).reshape(-1, 3).T
        steps = np.zeros(len(self._counts) + 1, dtype=np.int64)
        np.add.at(steps, first, by)
        np.subtract.at(steps, end, by)
        by_group: Numbers = np.cumsum(steps)[:-1]
        by_extent = by_group[self._group]
        moved = by_extent.nonzero()[0]
        self._table[moved, 0] += by_extent[moved]
        return by_group

    def direct(self) -> NDArray[np.bool_]:
        """Say which groups are one extent at a multiple of 16, and go to one."""
        found: NDArray[np.bool_] = self._counts == 1
        found[found] = (self._table[self._first[found], :2] % _UNIT == 0).all(axis=1)
        return found

    def lines(self) -> Numbers:
        """Return the first extent's address and target of each group; zeros for a group without any."""
        found = np.zeros((len(self._counts), 2), dtype=np.int64)
        some = self._counts > 0
        found[some] = self._table[self._first[some], :2]
        return found

    def pieces(self, which: NDArray[np.bool_], begins: Numbers) -> tuple[Numbers, Numbers, Numbers, Numbers]:
        """Return sources, places, targets and lengths of the extents of some groups, laid in a row from ``begins``."""
        ends = np.cumsum(self._table[:, 2])
        before = np.concatenate(([0], ends))[:-1]
        inside = before - before[self._first[self._group]] if len(ends) else before
        mine = which[self._group]
        sources, targets, lengths = self._table[mine].T
        return sources, begins[self._group[mine]] + inside[mine], targets, lengths
