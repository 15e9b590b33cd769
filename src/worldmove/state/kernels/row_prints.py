"""Digests of rows of device memory: what ``state.row_digests`` defines, by one launch for all of them."""

from functools import lru_cache

import numpy as np
import torch

from worldmove.state.by_id import ById
from worldmove.state.kernels.copies import Copies
from worldmove.state.kernels.load import Call
from worldmove.state.kernels.memory import Mirror, Stream, chosen, handle, new_event
from worldmove.state.kernels.shares import Numbers
from worldmove.state.kernels.strides import strided
from worldmove.state.row_digests import A, B
from worldmove.state.rows import MAX_ROW_BYTES

SHARE_BYTES = 16 << 10
"""What a warp takes at a time."""
BLOCKS = 4
"""Of so many warps on each multiprocessor."""
PLANS = 4
_LINE = 8


class RowPrints:
    """Launches them on one device; the last few tables stay there."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._factors = Mirror(len(_factors()), copies.device)
        self._factors.numbers()[:] = _factors()
        self._plan = lru_cache(maxsize=PLANS)(self._planned)

    def launch(self, base: int, offsets: Numbers, lengths: Numbers, *, stream: Stream = None) -> torch.Tensor:
        """Return the digest of each row from the address ``base`` on, int64[rows], once what is before it in the stream
        is done. No row is longer than MAX_ROW_BYTES. The arrays are not written to any more."""
        on = chosen(self._copies.device, stream)
        plan = self._plan(base, ById(offsets), ById(lengths))
        found = torch.empty(len(offsets), dtype=torch.int64, device=self._copies.device)
        self._factors.upload(on)
        plan.start(found, self._factors.address, on)
        self._factors.used(plan.done)
        return found

    def _planned(self, base: int, offsets: ById[Numbers], lengths: ById[Numbers]) -> "_RowPlan":
        return _RowPlan(base + offsets.value, lengths.value, self._copies)


class _RowPlan:
    """Rows in lines, and lines in shares."""

    def __init__(self, addresses: Numbers, lengths: Numbers, copies: Copies) -> None:
        if len(lengths) and int(lengths.max()) > MAX_ROW_BYTES:
            raise ValueError(f"a row has at most {MAX_ROW_BYTES} bytes, not {int(lengths.max())}")
        self._copies = copies
        lines = strided(addresses, addresses, lengths)
        per_share = np.maximum(1, SHARE_BYTES // np.maximum(lines.lengths, 1))
        firsts = np.concatenate(([0], np.cumsum(-(-lines.counts // per_share))))
        self._num_lines = len(lines.counts)
        self._firsts_at = _LINE * self._num_lines
        self._table = Mirror(self._firsts_at + len(firsts), copies.device)
        table = np.zeros((self._num_lines, _LINE), dtype=np.int64)
        for place, numbers in enumerate(
            (lines.sources, lines.lengths, lines.counts, lines.source_steps, lines.first, per_share)
        ):
            table[:, place] = numbers
        self._table.numbers()[: self._firsts_at] = table.reshape(-1)
        self._table.numbers()[self._firsts_at : self._firsts_at + len(firsts)] = firsts
        self.done = new_event(copies.device)

    def start(self, into: torch.Tensor, factors: int, stream: Stream) -> None:
        """Launch; a launch of no rows is none."""
        if not self._num_lines:
            return
        self._table.upload(stream)
        self._call(into.data_ptr(), factors).start(handle(stream))
        if self.done is not None:
            self.done.record(stream)
        self._table.used(self.done)

    def _call(self, into: int, factors: int) -> Call:
        tuning = self._copies.tuning
        blocks = self._copies.launcher.num_processors * BLOCKS
        lines = self._table.address
        return self._copies.launcher.call(
            "digest_rows",
            blocks=blocks,
            threads=32 * tuning.warps,
            shared_bytes=0,
            arguments=(lines, lines + 8 * self._firsts_at, factors, into, self._num_lines, blocks * tuning.warps),
        )


@lru_cache(maxsize=1)
def _factors() -> Numbers:
    """Return a, b, and for each 16 bytes of a row the b of the odd word that begins before them; 0 for the first."""
    before = np.concatenate((np.zeros(1, dtype=np.uint64), B[1:-1:2]))
    return np.concatenate((A, B, before)).view(np.int64)
