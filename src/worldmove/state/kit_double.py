"""A device that is none: host memory stands in for a device's, so that all but the calls to a GPU is tried without one.

Tensors over storages of ``least_bytes`` count as the device's, and so do generators, if that is asked for. Its arenas
are memory files, which another process of the same user opens by this one's descriptor.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from worldmove.state import wmf1
from worldmove.state.array import raw_memory
from worldmove.state.double_copying import DoubleCopying
from worldmove.state.double_digests import Awaited, Digested, PlanOfDouble
from worldmove.state.double_memory import DoubleMemory
from worldmove.state.memory import Behind, Numbers, Part, Shifts
from worldmove.state.row_digests import row_digests
from worldmove.state.rows import Rows

NAME = "double"


class DoubleKit(DoubleMemory, DoubleCopying):
    """A kit (``memory.MemoryKit``) over host memory."""

    name = NAME

    def __init__(self, *, least_bytes: int = 1024, generators: bool = False, capacity: int = 1 << 34) -> None:
        """``capacity``: how many bytes of arenas there may be at one time."""
        super().__init__(capacity)
        self.device_id = f"double-{os.geteuid()}"
        self._least_bytes = least_bytes
        self._generators = generators

    @property
    def fields(self) -> Mapping[str, str]:
        """It has one, that it is the double."""
        return {"device.name": NAME}

    def holds(self, value: torch.Tensor | torch.Generator) -> bool:
        """Whether a tensor's storage is large enough to count as device memory."""
        if isinstance(value, torch.Generator):
            return self._generators
        return value.is_cpu and value.untyped_storage().nbytes() >= self._least_bytes

    def plan(self, groups: Sequence[Sequence[Part]], early: Sequence[int] | Numbers = ()) -> object:
        """Keep the groups."""
        return PlanOfDouble(tuple(tuple(group) for group in groups), frozenset(map(int, early)))

    def replan(self, plan: object, shifts: Shifts) -> object:
        """Exchange some of the groups."""
        assert isinstance(plan, PlanOfDouble)
        groups = list(plan.groups)
        for first, end, by in shifts.tolist():
            groups[first:end] = [tuple(Part(at + by, length) for at, length in group) for group in groups[first:end]]
        return plan._replace(groups=tuple(groups))

    def fingerprints(self, plan: object, key: bytes) -> tuple[bytes, ...]:
        """Return what the numpy twin says."""
        assert isinstance(plan, PlanOfDouble)
        return tuple(plan.digests(key, range(len(plan.groups))).values())

    def begin_fingerprints(self, plan: object, key: bytes, behind: Behind | None = None) -> Digested | Awaited:
        """Take them: at once, or when somebody waits for them and the word says its number."""
        if behind is None:
            return Digested(b"".join(self.fingerprints(plan, key)))
        self._wait_behind(behind)
        assert isinstance(plan, PlanOfDouble)
        early = sorted(plan.early)
        return Awaited(behind, lambda: plan.digests(key, early), lambda: self.fingerprints(plan, key))

    def row_digests(self, base: int, offsets: Numbers, lengths: Numbers) -> torch.Tensor:
        """Return what the numpy twin says."""
        memory = raw_memory(base, int((offsets + lengths).max(initial=0)), [])
        digests = row_digests(memory, Rows(offsets=offsets, lengths=lengths))
        return torch.from_numpy(digests.view(np.int64))

    @contextmanager
    def apart(self) -> Iterator[torch.device]:
        """There is one order alone."""
        yield torch.device("cpu")

    def prepare_key(self, key: bytes) -> None:
        """Draw a key's coefficients; the last few stay ready."""
        wmf1.Table.of(key)

    def save_generator(self, generator: torch.Generator) -> bytes:
        """Return the whole state."""
        return generator.get_state().numpy().tobytes()

    def load_generator(self, state: bytes) -> torch.Generator:
        """Return a new generator in a saved state."""
        generator = torch.Generator(device="cpu")
        generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))
        return generator
