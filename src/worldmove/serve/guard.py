"""What a connection may take of the server: uvicorn's two protocols, with limits that they lack.

    a client that                    is held up or ended by
    opens too many, too fast         ``connection_made``: closed unread
    stays and says nothing           ``Guard.has_room``: cut where its place is needed
    never finishes a request         a timer from the first moment that it is awaited, and again while much comes: 408
    never reads                      a timer from the moment that nothing more can be written: aborted
    asks too often                   ``on_response_complete``: its next request waits
    floods with control frames       ``_allows_control``: closed, with a code that says so

Messages of the play wire are counted where they are understood: ``serve.desk``.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from worldmove.serve.allowance import Allowance
from worldmove.serve.limits import HttpLimits
from worldmove.serve.player import CloseCode

LAST_WORD_S = 2.0
"""How long the end of a connection may take to reach a client before it is cut."""
_SLOW = (
    b'{"error":{"code":"too_slow","message":"The request did not come in time.",'
    b'"fault":"local","session_runs":null,"retry_after_s":null}}'
)
_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_SLOW), _SLOW)
)
_NO_HANDSHAKE = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class Guard:
    """The limits of one server, and what is counted against all of its clients together."""

    def __init__(self, limits: HttpLimits, on_refused: Callable[[str], None]) -> None:
        self.limits = limits
        self.refused = on_refused
        self.new_connections = Allowance(limits.new_connections)
        self._heard: dict[asyncio.BaseTransport, float] = {}
        """When each connection last said something, the quietest first."""

    def has_room(self, num_open: int, now: float) -> bool:
        """Whether one more may come; where every place is taken, in that of whoever has been quiet for longest."""
        if num_open < self.limits.max_connections:
            return True
        quietest, heard_at = next(iter(self._heard.items()), (None, now))
        if not isinstance(quietest, asyncio.Transport) or now - heard_at < self.limits.quiet_s:
            return False
        self.forget(quietest)
        self.refused("quiet")
        quietest.abort()
        return True

    def hear(self, transport: asyncio.BaseTransport, now: float) -> None:
        """A connection has come, or says something."""
        self.forget(transport)
        self._heard[transport] = now

    def forget(self, transport: asyncio.BaseTransport) -> None:
        """A connection is gone."""
        self._heard.pop(transport, None)

    def http(self) -> type[H11Protocol]:
        """Return the class of this server's HTTP connections."""
        return type("GuardedHttp", (_GuardedHttp,), {"guard": self})

    def websocket(self) -> type[WebSocketsSansIOProtocol]:
        """Return the class of this server's play connections."""
        return type("GuardedWebSocket", (_GuardedWebSocket,), {"guard": self})


class _ReadInTime(asyncio.Protocol):
    """A connection that is cut where its client reads nothing of what is sent for too long."""

    guard: Guard
    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    _stalled: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        self._stalled = self.loop.call_later(self.guard.limits.request_s, self._cut)
        super().pause_writing()

    def resume_writing(self) -> None:
        _cancel(self._stalled)
        super().resume_writing()

    def _cut(self) -> None:
        self.guard.refused("unread")
        self.transport.abort()


class _GuardedHttp(_ReadInTime, H11Protocol):
    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self._timer: asyncio.TimerHandle | None = None
        self._requests = Allowance(self.guard.limits.requests)
        self._turned_away = False
        self._num_came = 0
        """Bytes since the timer was set."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        guard, now = self.guard, self.loop.time()
        if guard.new_connections.take(now) and guard.has_room(len(self.connections), now):
            super().connection_made(transport)
            guard.hear(transport, now)
            self._await_request()
            return
        guard.refused("connections")
        self._turned_away = True
        transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._timer, self._stalled)
        if not self._turned_away:
            self.guard.forget(self.transport)
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.guard.hear(self.transport, self.loop.time())
        self._num_came += len(data)
        super().data_received(data)
        self._look()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        _cancel(self._timer)
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        wait_s = self._requests.owe(self.loop.time())
        if wait_s > 0 and not self.transport.is_closing():
            self.guard.refused("requests")
            self.loop.call_later(wait_s, self._next_request)
        else:
            self._next_request()

    def _next_request(self) -> None:
        super().on_response_complete()
        self._look()

    def _look(self) -> None:
        """Set the timer while a request is unfinished, and only then."""
        if not self._is_unfinished():
            _cancel(self._timer)
            self._timer = None
        elif self._timer is None:
            self._await_request()

    def _await_request(self) -> None:
        self._num_came = 0
        self._timer = self.loop.call_later(self.guard.limits.request_s, self._end_slow)

    def _is_unfinished(self) -> bool:
        """Whether a request has begun whose end is not here."""
        if self.transport.is_closing() or isinstance(self.transport.get_protocol(), WebSocketsSansIOProtocol):
            return False
        state = self.conn.their_state
        return state is h11.SEND_BODY or (state is h11.IDLE and bool(self.conn.trailing_data[0]))

    def _end_slow(self) -> None:
        limits = self.guard.limits
        if self._num_came >= limits.request_s * limits.least_bytes_per_s:  # it is long
            self._await_request()
            return
        self._timer = None
        self.guard.refused("slow")
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(_TOO_SLOW)
        self.transport.close()
        self.loop.call_later(LAST_WORD_S, _cut_off, self.transport)


class _GuardedWebSocket(_ReadInTime, WebSocketsSansIOProtocol):
    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self._control = Allowance(self.guard.limits.control_frames)

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._stalled)
        self.guard.forget(self.transport)
        super().connection_lost(exc)

    async def run_asgi(self) -> None:
        try:
            await super().run_asgi()
        finally:
            # What a client never reads would keep a closed connection open for ever.
            self.loop.call_later(LAST_WORD_S, _cut_off, self.transport)

    def handle_ping(self) -> None:
        """Take it; the answer is written once the client reads again, so that none waits in the connection's memory.

        What nobody reads for too long is cut anyway (``_ReadInTime``), and the pace bounds what was asked until then.
        """
        if self._allows_control() and self.writable.is_set():
            super().handle_ping()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self.transport.write(b"".join(self.conn.data_to_send()))

    def handle_pong(self, event: Any) -> None:
        if self._allows_control():
            super().handle_pong(event)

    def handle_cont(self, event: Any) -> None:
        if self._allows_control():
            super().handle_cont(event)

    def data_received(self, data: bytes) -> None:
        self.guard.hear(self.transport, self.loop.time())
        super().data_received(data)
        if not self.handshake_initiated and not self.transport.is_closing():
            # Headers that HTTP takes and a handshake does not: nobody would ever answer.
            self.close_sent = True
            self.transport.write(_NO_HANDSHAKE)
            self.transport.close()

    def _allows_control(self) -> bool:
        """Whether a frame that is no message of its own is taken; else the connection is ended here."""
        if self.transport.is_closing():
            return False
        if self._control.take(self.loop.time()):
            return True
        self.guard.refused("control_frames")
        self.queue.put_nowait({"type": "websocket.disconnect", "code": CloseCode.TOO_MANY})
        self.conn.fail(CloseCode.TOO_MANY, "too many control frames")
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.transport.close()
        self.loop.call_later(LAST_WORD_S, _cut_off, self.transport)
        return False


def _cut_off(transport: asyncio.Transport) -> None:
    """End a connection, if it has not ended: a transport that was lost knows no loop any more, and would fail."""
    if transport.get_extra_info("socket").fileno() >= 0:
        transport.abort()


def _cancel(*timers: asyncio.TimerHandle | None) -> None:
    for timer in timers:
        if timer is not None:
            timer.cancel()
