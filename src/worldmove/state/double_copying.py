"""Copies by the double: at once, each."""

from collections.abc import Sequence

import numpy as np

from worldmove.state.array import raw_memory
from worldmove.state.double_memory import WORD_BYTES, writable
from worldmove.state.memory import WALK_STEP_BYTES, HostBytes, Part, Piece, Pieces, Word


class Done:
    """A copy that is over."""

    def is_done(self) -> bool:
        return True

    def wait(self) -> None:
        return


class DoubleCopying:
    """What a double copies."""

    def start_copy(self, pieces: Pieces) -> Done:
        """Copy, at once."""
        for source, destination, length in np.asarray(pieces, dtype=np.int64).reshape(-1, 3).tolist():
            np.copyto(writable(Part(destination, length)), raw_memory(source, length, []))
        return Done()

    def start_pull(self, pieces: Pieces) -> Done:
        """Copy, at once."""
        return self.start_copy(pieces)

    def start_walk(self, part: Part) -> Done:
        """Read a few bytes, for what they are worth."""
        raw_memory(part.address, part.length, [])[::WALK_STEP_BYTES].max()
        return Done()

    def write_after_pulls(self, word: Word) -> Done:
        """Write it, at once: so are pulls."""
        writable(Part(word.address, WORD_BYTES)).view("<u4")[0] = word.value
        return Done()

    def start_copy_out(self, pieces: Sequence[Piece]) -> Done:
        """Copy, at once."""
        return self.start_copy(pieces)

    def start_copy_in(self, pieces: Sequence[Piece]) -> Done:
        """Copy, at once."""
        return self.start_copy(pieces)

    def read(self, part: Part) -> HostBytes:
        """Copy to host memory."""
        return raw_memory(part.address, part.length, []).copy()

    def write(self, address: int, data: HostBytes) -> None:
        """Copy from host memory."""
        np.copyto(writable(Part(address, len(data))), data)

    def read_all(self, parts: Sequence[Part]) -> list[HostBytes]:
        """Copy to host memory."""
        return [self.read(part) for part in parts]

    def write_all(self, runs: Sequence[tuple[int, HostBytes]]) -> None:
        """Copy from host memory."""
        for address, data in runs:
            self.write(address, data)
