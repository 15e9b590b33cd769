"""A clock of the time in which this server ran: one that was stopped, or slept, gave nobody a chance meanwhile."""

import asyncio


class Attendance:
    """Seconds, as the event loop's clock has them, less this process's own absences."""

    def __init__(self) -> None:
        self._away_s = 0.0
        self._looked_at: float | None = None
        self._every_s = 0.0

    def look(self, every_s: float) -> float:
        """Return the time; it is looked again and again, so many seconds apart."""
        self._every_s = every_s
        return self.now()

    def now(self) -> float:
        """Return the time. More than a look and another since the last one was an absence."""
        now = asyncio.get_running_loop().time()
        if self._looked_at is not None and self._every_s:
            self._away_s += max(0.0, now - self._looked_at - 2 * self._every_s)
        self._looked_at = now
        return now - self._away_s
