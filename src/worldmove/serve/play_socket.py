"""One WebSocket of the play wire: a ``Player`` behind a framework's socket, and the loop that reads from it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from starlette.websockets import WebSocket, WebSocketDisconnect

from worldmove.errors import UserError
from worldmove.serve.desk import Desk
from worldmove.serve.loop_share import measured_of
from worldmove.serve.player import GONE, CloseCode, Player

MAX_REASON_BYTES = 123
"""A close's control frame carries 125 bytes at most, two of them its code (RFC 6455, 5.5)."""


class FrameworkSocket:
    """A ``player.Socket`` over Starlette's. A connection that is gone raises ConnectionError."""

    def __init__(self, websocket: WebSocket) -> None:
        self._websocket = websocket

    async def send(self, message: bytes | str) -> None:
        try:
            if isinstance(message, str):
                await self._websocket.send_text(message)
            else:
                await self._websocket.send_bytes(message)
        except (WebSocketDisconnect, RuntimeError, OSError) as error:
            raise ConnectionError("the connection is gone") from error

    async def close(self, code: int, reason: str) -> None:
        try:
            await self._websocket.close(code, close_reason(reason))
        except (WebSocketDisconnect, RuntimeError, OSError) as error:
            raise ConnectionError("the connection is gone") from error


def close_reason(reason: str) -> str:
    """Return as much of a reason as a close can carry, in whole characters."""
    return reason.encode("utf-8", "backslashreplace")[:MAX_REASON_BYTES].decode("utf-8", "ignore")


async def play(
    websocket: WebSocket,
    desk: Desk,
    session: str,
    *,
    controls: bool,
    received: str | None = None,
    on_closed: Callable[[CloseCode], None],
) -> None:
    """Serve one connection from its handshake to its end. ``on_closed`` hears the code if this end closes it."""
    await websocket.accept()
    socket = FrameworkSocket(websocket)
    player = Player(socket, limits=desk.limits)
    try:
        desk.join(session, player, controls=controls, received=received)
    except UserError as error:
        with suppress(ConnectionError):  # who has gone already is told nothing
            await socket.close(CloseCode.NO_SESSION, str(error))
        return
    reading = asyncio.create_task(_read(websocket, desk, session, player))
    try:
        await player.run()
    finally:
        desk.leave(session, player)
        if player.closed_with is not None:
            on_closed(player.closed_with)
        reading.cancel()
        (ended,) = await asyncio.gather(reading, return_exceptions=True)
    if isinstance(ended, Exception):  # a fault of ours: its player was dropped, and it is told
        raise ended


async def _read(websocket: WebSocket, desk: Desk, session: str, player: Player) -> None:
    """Give what comes to the gateway. The end of what comes is the end of the player."""
    measured = measured_of(websocket.scope)
    try:
        while True:
            message = await websocket.receive()
            if message["type"] == "websocket.disconnect":
                break
            text = message.get("text")
            if text is None:
                player.drop(CloseCode.BAD_MESSAGE, "this wire takes text messages only")
                break
            with measured():
                desk.hear(session, player, text)
            # What has come already is there at once: others have their turn between two messages of a flood.
            await asyncio.sleep(0)
    except UserError as error:
        player.drop(CloseCode.SESSION_ENDED, str(error))
    finally:
        player.drop(CloseCode.SERVER_ENDS, GONE)
