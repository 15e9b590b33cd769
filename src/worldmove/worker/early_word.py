"""What a copy's engine says before its blocks are over: which leaves are final, and what a block hands on.

It is asked to say so only once somebody wants to know. The engine's thread says it; the event loop's takes it.
"""

from collections import deque
from collections.abc import Callable

from worldmove.move.message import MAX_HANDED_BYTES

MOST_HANDED = 64
"""Blocks whose handing on waits to be told; of more the oldest is lost, and with it whoever steps on them."""


class EarlyWord:
    """One copy's."""

    def __init__(self) -> None:
        self._finals: deque[str] | None = None
        """None: nobody wants to know."""
        self._handed: deque[tuple[int, bytes]] | None = None

    @property
    def final(self) -> Callable[[str], None] | None:
        """Who is to be told of a leaf that is final; None where nobody wants to know. What is no path is dropped."""
        finals = self._finals
        if finals is None:
            return None

        def final(path: str) -> None:
            if type(path) is str:
                finals.append(path)

        return final

    def handing(self, block: int) -> Callable[[bytes], None] | None:
        """Return who takes what a block hands on, where somebody wants it. What no message can carry is dropped."""
        handed = self._handed
        if handed is None:
            return None

        def hand(data: bytes) -> None:
            if type(data) is bytes and len(data) <= MAX_HANDED_BYTES:
                handed.append((block, data))

        return hand

    def take_finals(self) -> tuple[str, ...]:
        """Return what was called final since this was asked last; from the first time on it is wanted."""
        if self._finals is None:
            self._finals = deque()
        return tuple(self._finals.popleft() for _ in range(len(self._finals)))

    def take_handed(self) -> tuple[tuple[int, bytes], ...]:
        """Return what was handed on since this was asked last, each with its block, likewise."""
        if self._handed is None:
            self._handed = deque(maxlen=MOST_HANDED)
        return tuple(self._handed.popleft() for _ in range(len(self._handed)))

    def hush_handed(self) -> None:
        """Nobody asks for what is handed on any more: what is kept of it goes, and no more is kept."""
        self._handed = None

    def hush(self) -> None:
        """Nobody wants to know any more."""
        self._finals = self._handed = None
