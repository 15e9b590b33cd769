"""One play connection: uvicorn's WebSocket protocol, with limits that it lacks. What they are for: ``serve.guard``."""

from functools import partial
from typing import Any

from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from worldmove.serve.allowance import Allowance
from worldmove.serve.guard import LAST_WORD_S, Guard, ReadInTime, cancel, cut_off
from worldmove.serve.http_errors import told_of_the_end
from worldmove.serve.loop_share import MEASURED, Measured, Party
from worldmove.serve.player import CloseCode

_NO_HANDSHAKE = b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def play_of(guard: Guard) -> type[WebSocketsSansIOProtocol]:
    """Return the class of a server's play connections."""
    return type("GuardedPlay", (_GuardedPlay,), {"guard": guard})


class _GuardedPlay(ReadInTime, WebSocketsSansIOProtocol):
    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self._control = Allowance(self.guard.limits.control_frames)
        self._party = Party()
        self._asked = self.app
        self.app = told_of_the_end(self._in_turn)
        self._unread = b""
        """What has come and waits for its turn, and reading stops with it."""

    def connection_lost(self, exc: Exception | None) -> None:
        cancel(self._stalled)
        self.guard.forget(self.transport)
        super().connection_lost(exc)

    async def run_asgi(self) -> None:
        try:
            await super().run_asgi()
        finally:
            # What a client never reads would keep a closed connection open for ever.
            self.loop.call_later(LAST_WORD_S, cut_off, self.transport)

    async def _in_turn(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a player in as a request is answered, in its turn; then each of its messages is heard in its turn."""
        guard, door = self.guard, Party()
        await guard.requests.turn(door)
        if self.disconnected:
            return

        async def heard() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive":
                await guard.messages.turn(self._party)
            return message

        scope["extensions"][MEASURED] = partial(guard.messages.measured, self._party)
        await Measured(self._asked(scope, heard, send), partial(guard.requests.measured, door))

    def handle_ping(self) -> None:
        """Take it; the answer is written once the client reads again, so that none waits in the connection's memory.

        What nobody reads for too long is cut anyway (``ReadInTime``), and the pace bounds what was asked until then.
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
        has_asked, self._unread = bool(self._unread), self._unread + data
        if not self.handshake_initiated:
            self._read()  # it has had its turn as a request
        elif not has_asked and self.guard.messages.ask(self._party, self._read_on):
            self._read_on()
        elif not self.transport.is_closing():
            self.transport.pause_reading()

    def _read_on(self) -> None:
        if self.transport.is_closing():
            return
        if not self.read_paused:
            self.transport.resume_reading()
        with self.guard.messages.measured(self._party):
            self._read()

    def _read(self) -> None:
        """Understand what has come."""
        data, self._unread = self._unread, b""
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
        self.loop.call_later(LAST_WORD_S, cut_off, self.transport)
        return False
