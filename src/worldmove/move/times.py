"""When each phase of one end of a move began and ended."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

PhaseTimes = tuple[tuple[str, float, float], ...]


class Times:
    """The phases of one attempt at one end, in seconds since ``begun``."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.begun = clock()
        self._ended: list[tuple[str, float, float]] = []
        self._running: dict[str, float] = {}

    def begin_at(self, instant: float) -> None:
        """Move the beginning: whatever happened until ``instant`` was no part of the attempt."""
        self.begun = instant

    def start(self, phase: str, *, at: float | None = None) -> None:
        """Begin a phase, now or at an instant of the clock. Begun twice, its first beginning counts."""
        self._running.setdefault(phase, self._clock() if at is None else at)

    def stop(self, phase: str) -> None:
        """End a phase, if it is running."""
        begun = self._running.pop(phase, None)
        if begun is not None:
            self._ended.append((phase, begun, self._clock()))

    @contextmanager
    def phase(self, name: str, *, at: float | None = None) -> Iterator[None]:
        """Time what is done inside, however it ends."""
        self.start(name, at=at)
        try:
            yield
        finally:
            self.stop(name)

    def phases(self) -> PhaseTimes:
        """Return (phase, start, end) of what has ended and, up to now, of what is still running."""
        now = self._clock()
        running = [(name, begun, now) for name, begun in self._running.items()]
        known = sorted([*self._ended, *running], key=lambda phase: (phase[1], phase[2]))
        return tuple((name, start - self.begun, end - self.begun) for name, start, end in known)
