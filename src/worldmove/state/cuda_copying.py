"""Copies by a GPU: within it, from another process's memory, out to pinned host memory and back.

Large runs of bytes go by the copy engine; many small ones by one launch (``ways_to_copy``).
"""

from collections.abc import Sequence

import torch

from worldmove.state import cuda_driver
from worldmove.state.cuda_device import CudaDevice
from worldmove.state.cuda_pending import CudaCopy, finished
from worldmove.state.kernels import Copies, CopyPlan, Plan
from worldmove.state.memory import (
    WALK_BYTES,
    WALK_STEP_BYTES,
    Numbers,
    Part,
    PendingCopy,
    Piece,
    Pieces,
    Word,
)
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
        self._pulling: list[tuple[CudaCopy, Numbers]] = []
        """Those under way, and from where to where each writes: lines of begin and end."""
        self._pulled: CopyPlan | None = None
        self._walked = torch.empty(0, dtype=torch.uint8, device=self.device)
        """What walks have read: nobody wants it."""

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

    def start_walk(self, part: Part) -> PendingCopy:
        """Begin to read, by the engine that brings what is large: each has tables of pages of its own."""
        num_lines = max(0, part.length - WALK_BYTES) // WALK_STEP_BYTES + 1
        with self._lock:
            if len(self._walked) < WALK_BYTES * num_lines:
                self._walked = torch.empty(WALK_BYTES * num_lines, dtype=torch.uint8, device=self.device)
            lines = cuda_driver.Lines(part.address, WALK_STEP_BYTES, min(part.length, WALK_BYTES), num_lines)
            cuda_driver.copy_lines(self._index, lines, self._walked.data_ptr(), self._pulls.cuda_stream)
            return finished(self._pulls, self._walked)

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

    def _after_pulls(self, stream: torch.cuda.Stream, plan: Plan) -> None:
        """Let what comes on a stream wait for pulls into what a plan reads."""
        for pending, lines in self._pulling:
            if plan.reads(lines):
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
