"""The groups of a layout, dealt to the warps of a device."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from worldmove.state.kernels.copies import Copies, CopyPlan
from worldmove.state.kernels.load import Call
from worldmove.state.kernels.memory import Mirror, Stream, new_event
from worldmove.state.kernels.shares import Numbers, deal
from worldmove.state.wmf1 import ROW_BYTES

Extents = Sequence[tuple[int, int]]
"""Address and bytes of each extent of a group, in order."""

Targets = Sequence[int]
"""Where a launch that copies takes each extent."""

_SHARE = 5
_FEW = 64


class Plan:
    """Made by ``Fingerprints.plan``; may be launched any number of times, at one boundary after the other.

    A group that is one extent at a multiple of 16 is read where it lies; any other is first gathered into scratch
    memory, which the plan has for as long as it lives.
    """

    def __init__(
        self, groups: Sequence[Extents], numbers: Numbers, targets: Sequence[Targets] | None, copies: Copies
    ) -> None:
        """``numbers``: the number of each group's first row."""
        device, tuning = copies.device, copies.tuning
        self._copies = copies
        self._groups = [tuple(extents) for extents in groups]
        self._targets = None if targets is None else [tuple(addresses) for addresses in targets]
        self._num_bytes = np.array([sum(n for _, n in extents) for extents in self._groups], dtype=np.int64)
        rows = -(-self._num_bytes // ROW_BYTES)
        self.num_blocks = copies.launcher.num_processors * tuning.blocks
        self._work = deal(rows, self.num_blocks * tuning.warps)
        self._first = np.searchsorted(self._work.line, np.arange(len(rows) + 1))
        self._sums = torch.zeros(3 * max(len(rows), 1), dtype=torch.int64, device=device)
        self.digests = torch.zeros(2 * max(len(rows), 1), dtype=torch.int64, pin_memory=device.type == "cuda")
        self.empty = np.flatnonzero(rows == 0)
        self.done = new_event(device)
        self.launches = 0
        self._stream: Stream = None
        self._calls: dict[int, Call] = {}
        self._write_table(rows, numbers)
        self._lay_out()

    @property
    def num_groups(self) -> int:
        """How many digests a launch gives."""
        return len(self._groups)

    @property
    def num_bytes(self) -> int:
        """How many bytes a launch reads."""
        return int(self._num_bytes.sum())

    def point(self, changed: Mapping[int, Extents], targets: Mapping[int, Targets] | None = None) -> None:
        """Give some groups, by their place in the plan, other addresses; their numbers of bytes stay.

        Allocates nothing while the groups that are gathered stay the same ones and stay where they are.
        """
        for place, extents in changed.items():
            if sum(length for _, length in extents) != self._num_bytes[place]:
                raise ValueError(f"group {place} has {self._num_bytes[place]} bytes")
            self._groups[place] = tuple(extents)
        if targets and self._targets is None:
            raise ValueError("this plan does not copy")
        for place, addresses in (targets or {}).items():
            self._target_list()[place] = tuple(addresses)
        places = {**changed, **(targets or {})}
        if len(places) > _FEW or not all(self._direct[place] and self._is_direct(place) for place in places):
            self._lay_out()
        else:
            self._point_direct(list(places))

    def call(self, table: int) -> Call:
        """Return the program that reads the groups, with a table of coefficients at an address."""
        found = self._calls.get(table)
        if found is None:
            tuning = self._copies.tuning
            base = self.table.address
            found = self._calls[table] = self._copies.launcher.call(
                "fingerprint" if self._targets is None else "fingerprint_and_copy",
                blocks=self.num_blocks,
                threads=32 * tuning.warps,
                shared_bytes=tuning.shared_bytes,
                arguments=(
                    base + 8 * self._shares_at,
                    base,
                    base + 8 * self._groups_at,
                    table,
                    self._sums.data_ptr(),
                    self.digests.data_ptr(),
                ),
            )
        return found

    def follow(self, stream: Stream) -> None:
        """Let what comes on ``stream`` wait for the last launch, which uses the same sums."""
        if stream is not None and self.done is not None and self.launches and self._stream != stream:
            stream.wait_event(self.done)

    def launched(self, stream: Stream) -> None:
        """Note a launch on ``stream``: whatever was read from it before is no longer good."""
        if self.done is not None:
            self.done.record(stream)
        self.table.used(self.done)
        self._stream = stream
        self.launches += 1

    def _target_list(self) -> list[tuple[int, ...]]:
        return [] if self._targets is None else self._targets

    def _write_table(self, rows: Numbers, numbers: Numbers) -> None:
        """Lay bounds, groups and shares out in one table, all but the addresses."""
        work = self._work
        self._groups_at = len(work.bounds)
        self._shares_at = self._groups_at + 2 * len(rows)
        self.table = Mirror(self._shares_at + _SHARE * len(work.line), self._copies.device)
        table = self.table.numbers()
        table[: self._groups_at] = work.bounds
        table[self._groups_at : self._shares_at] = np.stack((rows, self._num_bytes), axis=1).reshape(-1)
        shares = self._shares(table)
        shares[:, 2] = work.line
        shares[:, 3] = numbers[work.line] + work.tile
        most = work.num_tiles * ROW_BYTES
        shares[:, 4] = np.minimum(self._num_bytes[work.line] - work.tile * ROW_BYTES, most)

    def _shares(self, table: Numbers) -> Numbers:
        """[source, target, group, number of the first row, bytes] of each share, to be written."""
        end = self._shares_at + _SHARE * len(self._work.line)
        return table[self._shares_at : end].reshape(-1, _SHARE)

    def _lay_out(self) -> None:
        """Decide for every group where it is read, and write all addresses."""
        places = range(len(self._groups))
        self._direct = np.array([self._is_direct(place) for place in places], dtype=bool)
        others = np.flatnonzero(~self._direct)
        rows = -(-self._num_bytes[others] // ROW_BYTES)
        self._scratch = torch.empty(max(int(rows.sum()) * ROW_BYTES, 1), dtype=torch.uint8, device=self._copies.device)
        begins = self._scratch.data_ptr() + (np.cumsum(rows) - rows) * ROW_BYTES
        lines = np.zeros((len(self._groups), 2), dtype=np.int64)
        lines[others] = begins[:, None]  # where a launch copies, these are copied onto themselves
        for place in np.flatnonzero(self._direct).tolist():
            lines[place] = self._direct_line(place)
        self.before = self._gathered(others, begins)
        self.after = None if self._targets is None else self._scattered(others, begins)
        shares = self._shares(self.table.numbers())
        shares[:, :2] = lines[self._work.line] + (self._work.tile * ROW_BYTES)[:, None]

    def _point_direct(self, places: Sequence[int]) -> None:
        shares = self._shares(self.table.numbers())
        for place in places:
            mine = slice(self._first[place], self._first[place + 1])
            done = self._work.tile[mine] * ROW_BYTES
            for column, address in enumerate(self._direct_line(place)):
                shares[mine, column] = address + done

    def _is_direct(self, place: int) -> bool:
        """Say whether a group is one extent at a multiple of 16 (and goes to such a place)."""
        extents = self._groups[place]
        return len(extents) == 1 and extents[0][0] % 16 == 0 and all(to % 16 == 0 for to in self._targets_of(place))

    def _direct_line(self, place: int) -> tuple[int, int]:
        return self._groups[place][0][0], self._targets_of(place)[0]

    def _targets_of(self, place: int) -> tuple[int, ...]:
        """Return the group's targets; zeros where this plan does not copy."""
        return (0,) * len(self._groups[place]) if self._targets is None else self._targets[place]

    def _gathered(self, others: Numbers, begins: Numbers) -> CopyPlan | None:
        pieces = []
        for place, begin in zip(others.tolist(), begins.tolist(), strict=True):
            for address, length in self._groups[place]:
                pieces.append((address, begin, length))
                begin += length
        return self._copies.plan(pieces) if pieces else None

    def _scattered(self, others: Numbers, begins: Numbers) -> CopyPlan | None:
        """Take to their targets the very bytes that are digested."""
        pieces = []
        for place, begin in zip(others.tolist(), begins.tolist(), strict=True):
            for (_, length), target in zip(self._groups[place], self._targets_of(place), strict=True):
                pieces.append((begin, target, length))
                begin += length
        return self._copies.plan(pieces) if pieces else None
