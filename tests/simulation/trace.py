"""What happened in a run, line by line: for its hash, and for whoever has to understand it."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PARTS = {"session", "worker"}


class BrokenError(AssertionError):
    """An invariant does not hold."""


class Trace:
    """The lines of one run, and how often each kind of thing happened."""

    def __init__(self, time: Callable[[], float]) -> None:
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()
        self.broken: str = ""
        """The first invariant that did not hold, in one sentence."""
        self.on_broken: Callable[[], None] = lambda: None
        self.on_event: Callable[[str, dict[str, object]], None] = lambda event, fields: None
        self._time = time
        self._is_closed = False

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Note nothing meanwhile: what is buried is made to do what its process never did."""
        self._is_closed = True
        try:
            yield
        finally:
            self._is_closed = False

    def add(self, event: str, **fields: object) -> None:
        """Note an event."""
        if self._is_closed:
            return
        said = " ".join([f"{name}={value}" for name, value in fields.items() if value != ""])
        self.lines.append(f"{self._time():.6f} {event} {said}")
        self.on_event(event, fields)

    def count(self, what: str, number: int = 1) -> None:
        if not self._is_closed:
            self.counts[what] += number

    def fail(self, sentence: str) -> None:
        """An invariant is broken: note it, and end the run."""
        if not self.broken and not self._is_closed:
            self.broken = sentence
            self.add("BROKEN", why=sentence)
            self.on_broken()

    def hash(self) -> str:
        """Return one number for the whole run."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16]

    def last(self, number: int, about: tuple[str, ...] = ()) -> list[str]:
        """Return the last lines, of some sessions where they are named."""
        wanted = [line for line in self.lines if not about or any(name in line for name in about)]
        return wanted[-number:]


def now() -> float:
    """Return the running loop's time."""
    return asyncio.get_running_loop().time()
