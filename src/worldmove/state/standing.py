"""What stands behind words on one device, and what would wait with it: calls that wait for all work of a device.

Memory that is given back or unmapped, taken, mapped or pinned waits until nothing is left to do there. If that is
behind a word which somebody is to write who waits, by whatever way, for this very call, nothing would ever go on. So
whoever makes such a call gives up waiting first: what stood behind a word runs then, and counts for nothing.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from worldmove.state.memory import Behind


class Standing:
    """One kit's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._behind: list[Behind] = []
        self._num_calls = 0

    def add(self, behind: Behind) -> None:
        """Note what is about to stand behind a word; given up at once while such a call is under way."""
        with self._lock:
            self._behind = [*(other for other in self._behind if not other.is_open()), behind]
            if self._num_calls:
                behind.give_up()

    @contextmanager
    def none(self) -> Iterator[None]:
        """Let nothing stand behind a word inside."""
        with self._lock:
            self._num_calls += 1
            for behind in self._behind:
                behind.give_up()
            self._behind = []
        try:
            yield
        finally:
            with self._lock:
                self._num_calls -= 1
