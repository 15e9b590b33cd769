"""WMF1 of device memory: what ``state.wmf1`` defines, for all groups of a state at once."""

from collections.abc import Sequence

import numpy as np
import torch

from worldmove.state.kernels.copies import Copies
from worldmove.state.kernels.load import Launcher
from worldmove.state.kernels.memory import Stream, chosen, handle
from worldmove.state.kernels.plan import Extents, Outcome, Plan, Targets
from worldmove.state.kernels.shares import Numbers
from worldmove.state.kernels.tables import Tables
from worldmove.state.kernels.tuning import Tuning
from worldmove.state.wmf1 import GROUP_ROWS, ROW_BYTES, Table, Words, finalised


class Pending:
    """Digests on their way. Good until the plan is launched again for the second time."""

    def __init__(self, plan: Plan, outcome: Outcome, table: Table) -> None:
        self._plan = plan
        self._outcome = outcome
        self._table = table
        self._launch = plan.launches

    def ready(self) -> bool:
        """Say whether the result is there. Never waits."""
        return self._outcome.done is None or self._outcome.done.query()

    def numbers(self) -> Words:
        """Wait, and return both sums of each group, [groups, 2]."""
        plan, outcome = self._plan, self._outcome
        if plan.launches > self._launch + 1:
            raise RuntimeError("the plan was launched again, twice")
        if outcome.done is not None:
            outcome.done.synchronize()
        found: Words = outcome.digests.numpy().view(np.uint64)[: 2 * plan.num_groups].reshape(-1, 2).copy()
        if len(plan.empty):
            found[plan.empty] = finalised(self._table, np.zeros((1, 2), np.uint64), np.zeros(1, np.uint64))
        return found

    def joined(self) -> bytes:
        """Wait, and return the digests of all groups, 16 bytes each, one after the other."""
        return self.numbers().astype("<u8").tobytes()

    def result(self) -> tuple[bytes, ...]:
        """Wait, and return the digest of each group."""
        return tuple(np.frombuffer(self.joined(), dtype="V16").tolist())


class Fingerprints:
    """Launches WMF1 on one device."""

    def __init__(
        self,
        device: torch.device,
        *,
        copies: Copies | None = None,
        tuning: Tuning | None = None,
        launcher_: Launcher | None = None,
    ) -> None:
        """``copies``: what there is already for the device, programs and tuning included."""
        self.device = device
        self.copies = copies or Copies(device, tuning=tuning, launcher_=launcher_)
        self._tables = Tables(device)

    def plan(
        self,
        groups: Sequence[Extents],
        indices: Numbers | None = None,
        *,
        targets: Sequence[Targets] | None = None,
    ) -> Plan:
        """Prepare launches over groups: ``indices`` has the number of each in its state, counted from 0 without it.

        With ``targets``, one address for each extent, a launch also copies every extent there.
        """
        most = max((sum(length for _, length in extents) for extents in groups), default=0)
        if most > GROUP_ROWS * ROW_BYTES:
            raise ValueError(f"a group has at most {GROUP_ROWS * ROW_BYTES} bytes, not {most}")
        found = np.arange(len(groups), dtype=np.int64) if indices is None else indices
        return Plan(groups, found * GROUP_ROWS, targets, self.copies)

    def plan_leaves(self, leaves: Sequence[tuple[int, int]]) -> Plan:
        """Prepare launches over whole leaves, each the address and number of its row-major bytes; rows count from 0.

        ``leaves.leaf_bytes`` makes such bytes of any view.
        """
        return Plan([[leaf] for leaf in leaves], np.zeros(len(leaves), dtype=np.int64), None, self.copies)

    def prepare(self, table: Table, *, stream: Stream = None) -> None:
        """Bring a table to the device, so that no launch has to."""
        self._tables.place(table).upload(chosen(self.device, stream))

    def launch(self, plan: Plan, table: Table, *, stream: Stream = None) -> Pending:
        """Start, in the stream's order, and return at once. Allocates nothing."""
        on = chosen(self.device, stream)
        coefficients = self._tables.place(table)
        coefficients.upload(on)
        plan.table.upload(on)
        plan.follow(on)
        if plan.before is not None:
            self.copies.launch(plan.before, stream=on)
        plan.call(coefficients.address).start(handle(on))
        if plan.after is not None:
            self.copies.launch(plan.after, stream=on)
        outcome = plan.launched(on)
        coefficients.used(outcome.done)
        return Pending(plan, outcome, table)
