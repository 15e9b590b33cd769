"""The groups of a state on a GPU in one part, or in two: a source reads by itself what was brought early."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from worldmove.state.kernels import Fingerprints, Plan
from worldmove.state.memory import Numbers, Part, Shifts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PartedPlan:
    """The numbers of each part's groups, and its plan."""

    parts: tuple[tuple[Numbers, Plan], ...]

    @classmethod
    def of(
        cls, groups: Sequence[Sequence[Part]], early: Sequence[int] | Numbers, fingerprints: Fingerprints
    ) -> "PartedPlan":
        """Lay groups out; ``early``: the numbers of those that are a part by themselves."""
        is_early = np.zeros(len(groups), dtype=bool)
        is_early[np.asarray(early, dtype=np.int64)] = True
        numbers = [np.flatnonzero(is_early), np.flatnonzero(~is_early)]
        some = [each for each in numbers if len(each)] or numbers[:1]
        return cls(parts=tuple((each, fingerprints.plan([groups[i] for i in each.tolist()], each)) for each in some))

    @property
    def plans(self) -> tuple[Plan, ...]:
        """One of each part."""
        return tuple(plan for _, plan in self.parts)

    def shift(self, shifts: Shifts) -> None:
        """Let groups lie elsewhere, as ``Plan.shift`` does."""
        if len(self.parts) == 1:
            self.parts[0][1].shift(shifts)
            return
        first, end, by = shifts.T
        for numbers, plan in self.parts:  # their groups ascend: a run is one among them too
            inside = np.column_stack((np.searchsorted(numbers, first), np.searchsorted(numbers, end), by))
            some = inside[inside[:, 0] < inside[:, 1]]
            if len(some):
                plan.shift(some)

    def joined(self, found: Sequence[bytes]) -> bytes:
        """Return the digests of all groups in order, of those of each part."""
        if len(found) == 1:
            return found[0]
        digests = np.empty(sum(len(numbers) for numbers, _ in self.parts), dtype="V16")
        for (numbers, _), part in zip(self.parts, found, strict=True):
            digests[numbers] = np.frombuffer(part, dtype="V16")
        return digests.tobytes()
