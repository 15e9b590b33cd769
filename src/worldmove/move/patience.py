"""How long an end goes on with what comes before the boundary: as long as it may take, and while it is heard of."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from worldmove.units import seconds_text

PATIENCE_S = 60.0
"""How long what comes before the boundary may take, unless whoever runs the server says otherwise.

No player pays for it: it keeps a slot at each end taken and uses time that the destination has to spare; the lists
since its snapshot are a few bytes a block. So it bounds how slow a path may be, and nothing else.
"""
STILL_S = 2.0
"""How long a source holds a session still for a move, whoever waits for its next block: then it gives the move up."""


class Patience:
    """One end's, in seconds. ``lease_s``: silence of the controller after which nobody waits for it any more."""

    def __init__(self, *, patience_s: float, lease_s: float) -> None:
        self._patience_s = patience_s
        self._lease_s = lease_s
        self._ends_at = 0.0
        self._limit: asyncio.Timeout | None = None
        self._is_silent = False

    def renew(self) -> None:
        """The controller was heard of."""
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(self._next())

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[None]:
        """Raise TimeoutError inside once the time is over, or nobody was heard of."""
        self._ends_at = asyncio.get_running_loop().time() + self._patience_s
        try:
            async with asyncio.timeout_at(self._next()) as self._limit:
                yield
        finally:
            self._limit = None

    def why(self, what: str) -> tuple[str, str]:
        """Return the word and the sentence for a time that is over. ``what``: how far it was by then."""
        if self._is_silent:
            return "silent", f"nobody was heard of for {seconds_text(self._lease_s)} that conducts the move"
        return "never_caught_up", f"{what} within {seconds_text(self._patience_s)}"

    def _next(self) -> float:
        lease_ends_at = asyncio.get_running_loop().time() + self._lease_s
        self._is_silent = lease_ends_at < self._ends_at
        return min(self._ends_at, lease_ends_at)
