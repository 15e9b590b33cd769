"""When the server's newest beats came: the measure of how old another word of it may be.

A word names a beat that the server had the answer to when it was sent. So it is no older than that beat's arrival here,
however long it has waited in a socket, or this process has slept.
"""

import asyncio
from collections import deque

from worldmove.worker.messages import InTime

NUM_BEATS = 32


class Beats:
    """Those of one link, by the event loop's clock."""

    def __init__(self) -> None:
        self._came: deque[tuple[int, float]] = deque(maxlen=NUM_BEATS)

    def begin_anew(self) -> None:
        """There is a new link, perhaps of another server, which counts anew."""
        self._came.clear()

    def came(self, number: int) -> None:
        self._came.append((number, asyncio.get_running_loop().time()))

    def is_in_time(self, only: InTime | None) -> bool:
        """Whether what holds only for so long may be done now; always where it holds for ever."""
        if only is None:
            return True
        came = dict(self._came).get(only.beat)
        return came is not None and asyncio.get_running_loop().time() - came <= only.within_s
