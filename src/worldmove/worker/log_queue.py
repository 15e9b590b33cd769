"""The edge by which a log leaves a process: what is said waits here, and one thread writes it.

Rules of this file. ``put`` returns at once and raises nothing, whatever lies behind the descriptor: a reader that is
gone, a pipe that nobody reads, a full disk. What finds no room is dropped and counted; how much that was is said when
half of the room is free again. Where the descriptor was closed nobody wants to hear it, and nothing is counted.
"""

import errno
import os
import select
import threading
from collections import deque
from collections.abc import Callable

ROOM_BYTES = 1 << 20
"""What may wait: a burst of some thousand lines, or a hundred tracebacks."""
PIECE_OVERHEAD_BYTES = 64
"""What a piece costs beside its bytes, so that empty ones are bounded too."""
RETRY_MS = 1000
"""How long a descriptor that does not block is waited for at a time."""


class LogQueue:
    """What is on its way to one descriptor."""

    def __init__(self, descriptor: int, *, lost: Callable[[int], bytes], room_bytes: int = ROOM_BYTES) -> None:
        """``lost``: the line that says how many were dropped."""
        self._descriptor = descriptor
        self._lost = lost
        self._room_bytes = room_bytes
        self._waiting: deque[bytes] = deque()
        self._num_bytes = 0
        # Reentrant: a collection may end an object that logs its end while this very thread is in here.
        self._changed = threading.Condition(threading.RLock())
        self._num_dropped = 0
        self._num_unsaid = 0
        self._works = True
        self._ends = False
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    @property
    def num_dropped(self) -> int:
        """How many lines were said in vain so far."""
        return self._num_dropped

    def put(self, piece: bytes) -> None:
        """Have it written, or drop it where there is no room."""
        with self._changed:
            if self._num_bytes + _cost(piece) > self._room_bytes:
                self._drop(piece)
                return
            self._waiting.append(piece)
            self._num_bytes += _cost(piece)
            self._changed.notify()

    def close(self, within_s: float) -> None:
        """Wait until what was put has been written, for so long at most."""
        with self._changed:
            self._ends = True
            self._changed.notify()
        self._thread.join(within_s)

    def _write(self) -> None:
        while (piece := self._next()) is not None:
            try:
                write_all(self._descriptor, piece)
            except OSError as error:
                self._failed(piece, error)
            else:
                self._works = True

    def _next(self) -> bytes | None:
        """Wait for what is to be written next; None: nothing more comes."""
        with self._changed:
            while True:
                if self._num_unsaid and self._works and self._num_bytes <= self._room_bytes // 2:
                    num, self._num_unsaid = self._num_unsaid, 0
                    return self._lost(num)
                if self._waiting:
                    piece = self._waiting.popleft()
                    self._num_bytes -= _cost(piece)
                    return piece
                if self._ends:
                    return None
                self._changed.wait()

    def _failed(self, piece: bytes, error: OSError) -> None:
        """Go on without it. That something was dropped is said once something can be written again."""
        with self._changed:
            self._works = False
            if error.errno != errno.EBADF:
                self._drop(piece)

    def _drop(self, piece: bytes) -> None:
        num_lines = max(piece.count(b"\n"), 1)
        self._num_dropped += num_lines
        self._num_unsaid += num_lines


def write_all(descriptor: int, content: bytes) -> None:
    """Write it to its end, also where the descriptor does not block. Raises OSError."""
    left = memoryview(content)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(descriptor, select.POLLOUT)
            poll.poll(RETRY_MS)


def _cost(piece: bytes) -> int:
    return len(piece) + PIECE_OVERHEAD_BYTES
