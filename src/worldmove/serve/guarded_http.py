"""One HTTP connection: uvicorn's protocol, with limits that it lacks. What they are for: ``serve.guard``."""

import asyncio
from functools import partial
from typing import Any

import h11
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from worldmove.serve.allowance import Allowance
from worldmove.serve.guard import LAST_WORD_S, Guard, ReadInTime, cancel, cut_off
from worldmove.serve.http_errors import told_of_the_end
from worldmove.serve.loop_share import MEASURED, Measured, Party

READ_BYTES = 4 << 10
"""Read at once, for a request may come as thousands of chunks of a byte, which are parsed in one piece."""
LONG_READ_BYTES = 256 << 10
"""Where a body of so and so many bytes is on its way, which costs the same in larger pieces."""
_SLOW = (
    b'{"error":{"code":"too_slow","message":"The request did not come in time.",'
    b'"fault":"local","session_runs":null,"retry_after_s":null}}'
)
_TOO_SLOW = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_SLOW), _SLOW)
)


def http_of(guard: Guard) -> type[H11Protocol]:
    """Return the class of a server's HTTP connections."""
    return type("GuardedHttp", (_GuardedHttp,), {"guard": guard})


class _GuardedHttp(ReadInTime, H11Protocol):
    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self._timer: asyncio.TimerHandle | None = None
        self._requests = Allowance(self.guard.limits.requests)
        self._party = Party()
        self._measured = partial(self.guard.requests.measured, self._party)
        self._asked = self.app
        self.app = told_of_the_end(self._in_turn)
        self._turned_away = False
        self._is_gone = False
        self._unread = b""
        """What has come and waits for its turn: at most what is read at once, and reading stops with it."""
        self._num_came = 0
        """Bytes since the timer was set."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        guard, now = self.guard, self.loop.time()
        if guard.may_come(len(self.connections), now):
            super().connection_made(transport)
            _read_at_once(transport, READ_BYTES)
            guard.come(transport, now)
            self._await_request()
            return
        guard.refused("connections")
        self._turned_away = True
        transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        cancel(self._timer, self._stalled)
        self._is_gone = True
        if not self._turned_away:
            self.guard.forget(self.transport)
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.guard.hear(self.transport, self.loop.time())
        self._num_came += len(data)
        has_asked, self._unread = bool(self._unread), self._unread + data
        if not has_asked and self.guard.requests.ask(self._party, self._read):
            self._read()
        elif not self.transport.is_closing():
            self._unset_keepalive_if_required()  # it is no more this client that is waited for
            self.transport.pause_reading()

    def _read(self) -> None:
        """Understand what has come."""
        data, self._unread = self._unread, b""
        if self.transport.is_closing():
            return
        if not self.flow.read_paused:
            self.transport.resume_reading()
        with self._measured():
            super().data_received(data)
        _read_at_once(self.transport, LONG_READ_BYTES if self._awaits_so_many() else READ_BYTES)
        self._look()

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request once it may take the loop; each piece of a long answer, too."""
        self.guard.asked(self.transport)
        await self.guard.requests.turn(self._party)
        if self._is_gone:
            return

        async def sent(message: Message) -> None:
            await send(message)
            if not self._is_gone:
                self.guard.hear(self.transport, self.loop.time())
            if message.get("more_body"):
                await self.guard.requests.turn(self._party)

        scope["extensions"] = {**scope.get("extensions", {}), MEASURED: self._measured}
        await Measured(self._asked(scope, receive, sent), self._measured)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        cancel(self._timer)
        self.guard.asked(self.transport)
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
            cancel(self._timer)
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

    def _awaits_so_many(self) -> bool:
        """Whether a body is on its way that has said its size, and so comes in no pieces of its own."""
        if self.conn.their_state is not h11.SEND_BODY or self.transport.get_protocol() is not self:
            return False
        names = [name for name, _ in self.headers]
        return b"content-length" in names and b"transfer-encoding" not in names

    def _end_slow(self) -> None:
        limits = self.guard.limits
        if self._unread or self._num_came >= limits.request_s * limits.least_bytes_per_s:  # it waits, or is long
            self._await_request()
            return
        self._timer = None
        self.guard.refused("slow")
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            self.transport.write(_TOO_SLOW)
        self.transport.close()
        self.loop.call_later(LAST_WORD_S, cut_off, self.transport)


def _read_at_once(transport: asyncio.BaseTransport, num_bytes: int) -> None:
    """Have a connection read so much at once, where it can be told: asyncio's own over a socket."""
    if hasattr(transport, "max_size"):
        transport.max_size = num_bytes
