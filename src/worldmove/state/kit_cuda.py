"""The kit of a GPU (``memory.MemoryKit``): torch's context and streams, the driver's allocations, our kernels.

All work is on streams of the kit's own, and whoever needs its end waits for an event, not for the device: the
residents' streams go on. What the engine wrote before must be complete (``Engine.quiesce``).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from worldmove.errors import TransportError
from worldmove.state import cuda_driver
from worldmove.state.cuda_copying import CudaCopying
from worldmove.state.cuda_memory import CudaMemory
from worldmove.state.cuda_pending import CudaDigests, finished
from worldmove.state.cuda_plan import PartedPlan
from worldmove.state.kernels import Fingerprints, Pending, Plan, RowPrints
from worldmove.state.memory import Behind, Numbers, Part, Shifts, Word
from worldmove.state.wmf1 import Table

DIGEST_BYTES = 16
AHEAD = -1
"""The priority of a stream that waits behind a word: that others wait behind it in a queue was not seen
(docs/design/0006)."""


class CudaKit(CudaMemory, CudaCopying):
    """All byte work on one GPU."""

    def __init__(self, device: str) -> None:
        """Make a context on ``cuda`` or ``cuda:NUMBER``. Raises UserError where there is no such device."""
        super().__init__(device)
        self._fingerprints = Fingerprints(self.device, copies=self._copies)
        self._under_way: list[Pending] = []
        """What the device may still read and write the plans of: nobody may want its digests any more."""
        self._waiting: list[tuple[torch.cuda.Stream, Pending | None]] = [(self._ahead(), None)]
        """The streams for what comes behind a word, one each, with what each was asked for last. The first is made now:
        torch makes a pool of them with it."""
        self._rows = RowPrints(self._copies)

    def plan(self, groups: Sequence[Sequence[Part]], early: Sequence[int] | Numbers = ()) -> object:
        """Lay the groups out for launches."""
        with self._lock, torch.cuda.device(self.device), torch.cuda.stream(self._stream):
            parted = PartedPlan.of(groups, early, self._fingerprints)
            for plan in parted.plans:
                plan.table.upload(self._stream)  # now, and not at the first launch
            return parted

    def replan(self, plan: object, shifts: Shifts) -> object:
        """Give some groups other addresses."""
        assert isinstance(plan, PartedPlan)
        if len(shifts):
            with self._lock, torch.cuda.device(self.device), torch.cuda.stream(self._stream):
                plan.shift(shifts)
        return plan

    def fingerprints(self, plan: object, key: bytes) -> tuple[bytes, ...]:
        """Launch each part once, and wait for the digests."""
        joined = self.begin_fingerprints(plan, key).joined()
        return tuple([joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES)])

    def begin_fingerprints(self, plan: object, key: bytes, behind: Behind | None = None) -> CudaDigests:
        """Launch each part once: in the stream's order, after pulls into any of it, or each behind its word."""
        assert isinstance(plan, PartedPlan)
        try:
            with self._lock, torch.cuda.device(self.device):
                parts = self._in_order(plan, key) if behind is None else self._behind(behind, plan, key)
                self._under_way = [*(other for other in self._under_way if not other.ready()), *parts]
            return CudaDigests(plan, parts)
        except torch.AcceleratorError as error:
            raise TransportError(f"the device has failed: {error}") from error

    def row_digests(self, base: int, offsets: Numbers, lengths: Numbers) -> torch.Tensor:
        """Launch once, on the kit's stream."""
        with self._lock, torch.cuda.device(self.device), torch.cuda.stream(self._stream):
            return self._rows.launch(base, offsets, lengths, stream=self._stream)

    @contextmanager
    def apart(self) -> Iterator[torch.device]:
        """Work on the kit's stream; others may put their own between."""
        try:
            with torch.cuda.device(self.device), torch.cuda.stream(self._stream):
                yield self.device
        except torch.AcceleratorError as error:
            raise TransportError(f"the device has failed: {error}") from error
        finished(self._stream).wait()

    def prepare_key(self, key: bytes) -> None:
        """Bring a key's coefficients to the GPU."""
        with self._lock, torch.cuda.device(self.device):
            self._fingerprints.prepare(Table.of(key), stream=self._stream)

    def _in_order(self, parted: PartedPlan, key: bytes) -> list[Pending]:
        """Launch all parts once all of it is there: what a later pull wrote into an earlier part would be seen."""
        for plan in parted.plans:
            self._after_pulls(self._stream, plan)
        return [self._fingerprints.launch(plan, Table.of(key), stream=self._stream) for plan in parted.plans]

    def _behind(self, behind: Behind, parted: PartedPlan, key: bytes) -> list[Pending]:
        """Launch each part once its word says its number."""
        self.standing.add(behind)
        words = (behind.word,) if len(parted.parts) == 1 else (behind.early_word, behind.word)
        return [self._once(word, plan, key) for word, plan in zip(words, parted.plans, strict=True)]

    def _once(self, word: Word, plan: Plan, key: bytes) -> Pending:
        """Launch once a word says its number. What is uploaded goes before: others wait for that."""
        where, stream = self._free_stream()
        plan.follow(stream)
        plan.table.upload(stream)
        self._fingerprints.prepare(Table.of(key), stream=stream)
        cuda_driver.wait_for_word(self._index, *word, stream.cuda_stream)
        self._after_pulls(stream, plan)
        pending = self._fingerprints.launch(plan, Table.of(key), stream=stream)
        self._waiting[where] = stream, pending
        return pending

    def _free_stream(self) -> tuple[int, torch.cuda.Stream]:
        """Return a stream on which nothing waits, and its place."""
        for where, (stream, last) in enumerate(self._waiting):
            if last is None or last.ready():
                return where, stream
        self._waiting.append((self._ahead(), None))
        return len(self._waiting) - 1, self._waiting[-1][0]

    def _ahead(self) -> torch.cuda.Stream:
        return torch.cuda.Stream(self.device, priority=AHEAD)
