"""WMF1 of device memory: what ``state.wmf1`` defines, for all groups of a state at once."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from worldmove.state.kernels.copies import Copies, CopyPlan
from worldmove.state.kernels.load import num_programs, programs
from worldmove.state.kernels.memory import Mirror, new_event, on_stream
from worldmove.state.kernels.shares import Deal, Numbers, deal
from worldmove.state.kernels.tables import Tables
from worldmove.state.wmf1 import GROUP_ROWS, ROW_BYTES, ROW_WORDS, Table

Extents = Sequence[tuple[int, int]]
"""Address and bytes of each extent of a group, in order."""

PER_PROCESSOR = 4
ROWS = 4
WARPS = 4
STAGES = 1
JOINT = False


class Plan:
    """The groups of a layout, dealt to programs. Made by ``Fingerprints.plan``."""

    def __init__(
        self,
        groups: Sequence[Extents],
        numbers: Numbers,
        targets: Sequence[Sequence[int]] | None,
        owner: "Fingerprints",
    ) -> None:
        self._owner = owner
        self._groups = [tuple(extents) for extents in groups]
        self._targets = None if targets is None else [tuple(addresses) for addresses in targets]
        self._num_bytes = np.array([sum(n for _, n in extents) for extents in self._groups], dtype=np.int64)
        rows = -(-self._num_bytes // ROW_BYTES)
        self._first_rows = np.cumsum(rows) - rows
        self._words = -(-self._num_bytes // 4)
        device, count = owner.device, len(self._groups)
        self.work: Deal = deal(-(-rows // owner.rows), owner.num_programs)
        self.shares = Mirror(4 * (count + owner.num_programs), torch.int64, device)
        self.bounds = Mirror(owner.num_programs + 1, torch.int32, device)
        self.groups = Mirror(4 * count, torch.int64, device)
        self.sums = torch.zeros(2 * max(int(rows.sum()), 1), dtype=torch.uint64, device=device)
        self.digests = torch.zeros(2 * max(count, 1), dtype=torch.uint64, pin_memory=device.type == "cuda")
        self.groups.write(np.stack((self._first_rows, rows, self._num_bytes, numbers), axis=1))
        self.bounds.write(self.work.bounds)
        self.done = new_event(device)
        self.launches = 0
        self._lay_out()

    @property
    def num_groups(self) -> int:
        """How many digests a launch gives."""
        return len(self._groups)

    @property
    def num_bytes(self) -> int:
        """How many bytes a launch reads."""
        return int(self._num_bytes.sum())

    @property
    def copies_too(self) -> bool:
        """Say whether a launch also copies."""
        return self._targets is not None

    def point(self, changed: Mapping[int, Extents], targets: Mapping[int, Sequence[int]] | None = None) -> None:
        """Give some groups, by their place in the plan, other addresses; their numbers of bytes stay."""
        for place, extents in changed.items():
            if sum(length for _, length in extents) != self._num_bytes[place]:
                raise ValueError(f"group {place} has {self._num_bytes[place]} bytes")
            self._groups[place] = tuple(extents)
        for place, addresses in (targets or {}).items():
            if self._targets is None:
                raise ValueError("this plan does not copy")
            self._targets[place] = tuple(addresses)
        places = [*changed, *(targets or {})]
        if all(place in self._direct and self._is_direct(place) for place in places):
            for place in places:
                self._lines[place, :2] = self._direct_line(place)
            self._write_shares()
        else:
            self._lay_out()

    def _lay_out(self) -> None:
        """Decide which groups are read where they lie; the others are first gathered into rows of scratch memory."""
        places = range(len(self._groups))
        self._direct = {place for place in places if self._is_direct(place)}
        others = [place for place in places if place not in self._direct]
        rows = -(-self._num_bytes[others] // ROW_BYTES)
        self._scratch = torch.zeros(max(int(rows.sum()) * ROW_BYTES, 1), dtype=torch.uint8, device=self._owner.device)
        begins = self._scratch.data_ptr() + (np.cumsum(rows) - rows) * ROW_BYTES
        self._lines = np.zeros((len(self._groups), 2), dtype=np.int64)
        self._lines[others] = begins[:, None]  # where a launch copies, these are copied onto themselves
        for place in self._direct:
            self._lines[place] = self._direct_line(place)
        self.before = self._gathered(others, begins)
        self.after = self._scattered(others, begins)
        self._write_shares()

    def _is_direct(self, place: int) -> bool:
        """Say whether a group is one extent of whole 16-byte units (and goes to such a place)."""
        extents = self._groups[place]
        return len(extents) == 1 and all(n % 16 == 0 for n in (*extents[0], *self._targets_of(place)))

    def _direct_line(self, place: int) -> tuple[int, int]:
        return self._groups[place][0][0], self._targets_of(place)[0]

    def _gathered(self, others: Sequence[int], begins: Numbers) -> CopyPlan | None:
        pieces = []
        for place, begin in zip(others, begins.tolist(), strict=True):
            for address, length in self._groups[place]:
                pieces.append((address, begin, length))
                begin += length
        return self._owner.copies.plan(pieces) if pieces else None

    def _scattered(self, others: Sequence[int], begins: Numbers) -> CopyPlan | None:
        """Take to their targets the very bytes that are digested."""
        pieces = []
        for place, begin in zip(others, begins.tolist(), strict=True):
            for (_, length), target in zip(self._groups[place], self._targets_of(place), strict=True):
                pieces.append((begin, target, length))
                begin += length
        return self._owner.copies.plan(pieces) if pieces and self.copies_too else None

    def _targets_of(self, place: int) -> tuple[int, ...]:
        """Return the group's targets; zeros where this plan does not copy."""
        return (0,) * len(self._groups[place]) if self._targets is None else self._targets[place]

    def _write_shares(self) -> None:
        line, rows = self.work.line, self.work.tile * self._owner.rows
        addresses = self._lines[line] + (rows * ROW_BYTES)[:, None]
        most = self.work.num_tiles * self._owner.rows * ROW_WORDS
        words = np.minimum(self._words[line] - rows * ROW_WORDS, most)
        words += -words % 4  # rows of scratch memory end in zeros
        self.shares.write(np.concatenate((addresses, np.stack((self._first_rows[line] + rows, words), axis=1)), axis=1))


class Pending:
    """Digests on their way. Good until the plan is launched again."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._launch = plan.launches

    def ready(self) -> bool:
        """Say whether the result is there."""
        return self._plan.done is None or self._plan.done.query()

    def joined(self) -> bytes:
        """Wait, and return the digests of all groups, one after the other."""
        if self._launch != self._plan.launches:
            raise RuntimeError("the plan was launched again")
        if self._plan.done is not None:
            self._plan.done.synchronize()
        return self._plan.digests.numpy()[: 2 * self._plan.num_groups].tobytes()

    def result(self) -> tuple[bytes, ...]:
        """Wait, and return the digest of each group."""
        joined = self.joined()
        return tuple(joined[begin : begin + 16] for begin in range(0, len(joined), 16))


class Fingerprints:
    """Launches WMF1 on one device."""

    def __init__(
        self,
        device: torch.device,
        *,
        per_processor: int = PER_PROCESSOR,
        rows: int = ROWS,
        warps: int = WARPS,
        stages: int = STAGES,
        joint: bool = JOINT,
        copies: Copies | None = None,
    ) -> None:
        self.device = device
        self.rows = rows
        self.num_programs = num_programs(device, per_processor)
        self.copies = copies or Copies(device)
        self._options: dict[str, Any] = {"ROWS": rows, "STAGES": stages, "JOINT": joint, "num_warps": warps}
        self._programs = programs()
        self._tables = Tables(device)
        self._compile()

    def plan(
        self, groups: Sequence[Extents], first_index: int = 0, *, targets: Sequence[Sequence[int]] | None = None
    ) -> Plan:
        """Prepare launches over groups that are numbered from ``first_index``.

        With ``targets``, one address for each extent, a launch copies every extent there as well.
        """
        most = max((sum(length for _, length in extents) for extents in groups), default=0)
        if most > GROUP_ROWS * ROW_BYTES:
            raise ValueError(f"a group has at most {GROUP_ROWS * ROW_BYTES} bytes, not {most}")
        numbers = (first_index + np.arange(len(groups), dtype=np.int64)) * GROUP_ROWS
        return Plan(groups, numbers, targets, self)

    def plan_leaves(self, leaves: Sequence[tuple[int, int]]) -> Plan:
        """Prepare launches over whole leaves, each the address and number of its row-major bytes; rows count from 0.

        ``leaves.leaf_bytes`` makes such bytes of any view.
        """
        return Plan([[leaf] for leaf in leaves], np.zeros(len(leaves), dtype=np.int64), None, self)

    def launch(self, plan: Plan, table: Table, *, stream: torch.cuda.Stream | None = None) -> Pending:
        """Start, in the stream's order, and return at once."""
        coefficients = self._tables.place(table)
        mirrors = (coefficients, plan.shares, plan.bounds, plan.groups)
        with on_stream(self.device, stream) as chosen:
            if chosen is not None and plan.launches:
                chosen.wait_event(plan.done)
            for mirror in mirrors:
                mirror.upload(chosen)
            self._start(plan, coefficients.device, chosen)
            if plan.done is not None:
                plan.done.record(chosen)
        for mirror in mirrors:
            mirror.used(plan.done)
        plan.launches += 1
        return Pending(plan)

    def _start(self, plan: Plan, table: torch.Tensor, stream: torch.cuda.Stream | None) -> None:
        if plan.before is not None:
            self.copies.launch(plan.before, stream=stream)
        self._programs.row_sums[(self.num_programs,)](
            plan.shares.device, plan.bounds.device, table, plan.sums, COPY=plan.copies_too, **self._options
        )
        if plan.num_groups:
            self._programs.group_digests[(plan.num_groups,)](plan.groups.device, table, plan.sums, plan.digests)
        if plan.after is not None:
            self.copies.launch(plan.after, stream=stream)

    def _compile(self) -> None:
        """Compile every program, so that no launch does."""
        room = torch.zeros(2 * ROW_BYTES, dtype=torch.uint8, device=self.device)
        groups = [[(room.data_ptr(), ROW_BYTES)]]
        for targets in (None, [[room.data_ptr() + ROW_BYTES]]):
            self.launch(self.plan(groups, targets=targets), Table.of(bytes(32))).result()
