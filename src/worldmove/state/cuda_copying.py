"""Copies by a GPU: within it, from another process's memory, out to pinned host memory and back.

Large runs of bytes go by the copy engine; many small ones by one launch (``ways_to_copy``).
"""

from collections.abc import Sequence

import torch

from worldmove.state import cuda_driver
from worldmove.state.cuda_device import CudaDevice
from worldmove.state.cuda_pending import CudaCopy, finished
from worldmove.state.kernels import Copies, CopyPlan
from worldmove.state.memory import PendingCopy, Piece, Pieces, Word
from worldmove.state.ways_to_copy import ways_to_copy, written


class CudaCopying(CudaDevice):
    """What one GPU copies."""

    def __init__(self, device: str) -> None:
        """Raises UserError where there is no such device."""
        super().__init__(device)
        self._copies = Copies(self.device)
        self._scattered: CopyPlan | None = None
        """Of the last copy of scattered pieces, to be pointed at the next one's: planning anew takes milliseconds."""
        self._out, self._in = torch.cuda.Stream(self.device), torch.cuda.Stream(self.device)
        """For copies out of the device and into it: the link carries both at once, beside all other work."""
        self._pulls = torch.cuda.Stream(self.device)
        self._pulling: list[tuple[CudaCopy, tuple[int, int]]] = []
        """Those under way, and from where to where each writes."""
        self._pulled: CopyPlan | None = None

    def start_copy(self, pieces: Pieces) -> PendingCopy:
        """Begin to copy, on the kit's stream."""
        with self._lock:
            pending, self._scattered = self._started(pieces, self._stream, self._scattered)
            return pending

    def start_pull(self, pieces: Pieces) -> PendingCopy:
        """Begin to copy, on a stream that has nothing else: another session's passes do not wait for it."""
        with self._lock:
            self._pulling = [(other, at) for other, at in self._pulling if not other.is_done()]
            pending, self._pulled = self._started(pieces, self._pulls, self._pulled)
            self._pulling.append((pending, written(pieces)))
            return pending

    def write_after_pulls(self, word: Word) -> PendingCopy:
        """Write it in the order of the pulls' stream."""
        with self._lock:
            cuda_driver.write_word(self._index, word.address, word.value, self._pulls.cuda_stream)
            return finished(self._pulls)

    def start_copy_out(self, pieces: Sequence[Piece]) -> PendingCopy:
        """Begin to copy, on a stream for this alone."""
        cuda_driver.copy_all(self._index, pieces, self._out.cuda_stream)
        return finished(self._out)

    def start_copy_in(self, pieces: Sequence[Piece]) -> PendingCopy:
        """Begin to copy, on a stream for this alone."""
        cuda_driver.copy_all(self._index, pieces, self._in.cuda_stream)
        return finished(self._in)

    def _after_pulls(self, stream: torch.cuda.Stream, begin: int, end: int) -> None:
        """Let what comes on a stream wait for pulls into a part of memory."""
        for pending, (first, last) in self._pulling:
            if first < end and begin < last:
                pending.precedes(stream)

    def _started(
        self, pieces: Pieces, stream: torch.cuda.Stream, plan: CopyPlan | None
    ) -> tuple[CudaCopy, CopyPlan | None]:
        """Begin with what is large: it is under way while the rest is planned. Return the plan of the rest, too."""
        ways = ways_to_copy(pieces)
        cuda_driver.copy_all(self._index, ways.by_engine.tolist(), stream.cuda_stream)
        if not len(ways.by_launch):
            return finished(stream), plan
        with torch.cuda.device(self.device), torch.cuda.stream(stream):
            plan = self._copies.pointed(plan, ways.by_launch)
            self._copies.launch(plan, stream=stream)
        return finished(stream, plan), plan
