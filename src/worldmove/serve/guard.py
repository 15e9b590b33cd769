"""What all connections of one server share: their places, what they may take of its loop, and who is told of a limit.

    a client that                    is held up or ended by
    opens too many, too fast         ``Guard.may_come``: closed unread
    stays and says nothing           ``Guard.may_come``: cut where its place is needed, first who has never asked
    never finishes a request         a timer from the first moment that it is awaited, and again while much comes: 408
    never reads                      a timer once no more can be written, and again while something is taken: aborted
    asks too often                   ``on_response_complete``: its next request waits
    asks for much, alone or as many  ``Guard.requests``: what it says is read, and answered, in its turn
    floods with messages             ``Guard.messages``: they are read, and heard, in their turn
    floods with control frames       ``_allows_control``: closed, with a code that says so

The connections themselves: ``guarded_http``, ``guarded_play``. Messages of the play wire are counted where they are
understood: ``serve.desk``.
"""

import asyncio
import fcntl
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from worldmove.serve.allowance import Allowance
from worldmove.serve.limits import HttpLimits
from worldmove.serve.loop_share import LoopShare

LAST_WORD_S = 2.0
"""How long the end of a connection may take to reach a client before it is cut."""


class Guard:
    """The limits of one server, and what is counted against all of its clients together."""

    def __init__(self, limits: HttpLimits, on_refused: Callable[[str], None]) -> None:
        self.limits = limits
        self.refused = on_refused
        self.requests = LoopShare(limits.loop, partial(on_refused, "loop"))
        self.messages = LoopShare(limits.play_loop, partial(on_refused, "play_loop"))
        self._new_connections = Allowance(limits.new_connections)
        self._heard: dict[asyncio.BaseTransport, float] = {}
        """When each connection last said something, or was sent something, the quietest first."""
        self._strangers: dict[asyncio.BaseTransport, None] = {}
        """Those that have not asked for anything yet, in the order in which they came."""

    def may_come(self, num_open: int, now: float) -> bool:
        """Whether one more connection may come."""
        return self._new_connections.take(now) and self._has_room(num_open, now)

    def _has_room(self, num_open: int, now: float) -> bool:
        """Whether there is a place; where every one is taken, that of the first who has not asked for anything yet.

        Else that of whoever has been quiet for longest, and long enough. So a flood of those who only come takes the
        places of one another, and nobody's who waits for an answer.
        """
        if num_open < self.limits.max_connections:
            return True
        gives_way: asyncio.BaseTransport | None = next(iter(self._strangers), None)
        if gives_way is None:
            quietest, heard_at = next(iter(self._heard.items()), (None, now))
            gives_way = quietest if now - heard_at >= self.limits.quiet_s else None
        if not isinstance(gives_way, asyncio.Transport):
            return False
        self.forget(gives_way)
        self.refused("quiet")
        gives_way.abort()
        return True

    def come(self, transport: asyncio.BaseTransport, now: float) -> None:
        """A connection has come."""
        self._strangers[transport] = None
        self.hear(transport, now)

    def asked(self, transport: asyncio.BaseTransport) -> None:
        """It has asked for something, and so is no stranger any more."""
        self._strangers.pop(transport, None)

    def hear(self, transport: asyncio.BaseTransport, now: float) -> None:
        """It says something, or has taken a piece of an answer."""
        self._heard.pop(transport, None)
        self._heard[transport] = now

    def forget(self, transport: asyncio.BaseTransport) -> None:
        """A connection is gone."""
        self._heard.pop(transport, None)
        self._strangers.pop(transport, None)


class ReadInTime(asyncio.Protocol):
    """A connection that is cut where its client reads nothing of what is sent for too long."""

    guard: Guard
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _stalled: asyncio.TimerHandle | None = None
    _num_unread = 0
    """Bytes that the client had not taken yet when that was looked at."""

    def pause_writing(self) -> None:
        self._await_reader()
        super().pause_writing()

    def resume_writing(self) -> None:
        cancel(self._stalled)
        super().resume_writing()

    def _await_reader(self) -> None:
        self._num_unread = unread_bytes(self.transport)
        self._stalled = self.loop.call_later(self.guard.limits.request_s, self._end_unread)

    def _end_unread(self) -> None:
        if unread_bytes(self.transport) < self._num_unread:  # slowly, over a slow link say
            self._await_reader()
            return
        self.guard.refused("unread")
        self.transport.abort()


def unread_bytes(transport: asyncio.Transport) -> int:
    """Return how much of what was written the other end has not taken: it waits here, or in the system's queue."""
    queued = bytes(4)
    with suppress(OSError):  # it is no socket that knows, or gone
        queued = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, queued)
    return transport.get_write_buffer_size() + int.from_bytes(queued, sys.byteorder)


def cut_off(transport: asyncio.BaseTransport) -> None:
    """End a connection, if it has not ended: a transport that was lost knows no loop any more, and would fail."""
    if isinstance(transport, asyncio.Transport) and transport.get_extra_info("socket").fileno() >= 0:
        transport.abort()


def cancel(*timers: asyncio.TimerHandle | None) -> None:
    """Cancel those timers that there are."""
    for timer in timers:
        if timer is not None:
            timer.cancel()
