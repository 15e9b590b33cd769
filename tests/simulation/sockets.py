"""A play connection in the simulation: ordered both ways, late, and cut by whoever leaves."""

import asyncio
from contextvars import Context
from typing import Any

import msgspec

from tests.simulation.loop import SimLoop
from tests.simulation.weather import Dice, Weather

LATENCY_S = (0.001, 0.03)
SLOW_S = 3.0


class SimSocket:
    """A framework's WebSocket as ``serve.play_socket`` uses it, with the client at its other end."""

    def __init__(self, loop: SimLoop, weather: Weather, dice: Dice, *, client: Context, server: Context) -> None:
        self.scope: dict[str, Any] = {}
        """A real one's says by what its client's work is measured; here nothing is, for no time passes in it."""
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        """At the client: text, bytes, or a close code."""
        self._outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._loop = loop
        self._weather = weather
        self._client = client
        self._server = server
        self._dice = dice
        self._free_at = [0.0, 0.0]
        self._gone = False
        self._vanished: asyncio.Event | None = None
        """Set once the network has noticed that the client is gone."""
        self.is_closed = False
        """Whether this connection was closed from the server's end."""

    # the server's end

    async def accept(self) -> None: ...

    async def send_text(self, text: str) -> None:
        await self._to_client(text)

    async def send_bytes(self, data: bytes) -> None:
        await self._to_client(data)

    async def receive(self) -> dict[str, Any]:
        return await self._outbox.get()

    async def close(self, code: int, reason: str = "") -> None:
        if self._gone:
            raise RuntimeError("the connection is gone")
        if self._vanished is not None:
            await self._noticed(self._vanished)
        self.is_closed = True
        self._later(0, self.inbox, int(code))

    async def _to_client(self, message: str | bytes) -> None:
        if dice := self._weather.strikes("slow_reader"):
            await asyncio.sleep(dice.between(0.0, SLOW_S))
        if self._gone:
            raise RuntimeError("the connection is gone")
        if self._vanished is not None:
            await self._noticed(self._vanished)
        self._later(0, self.inbox, message)

    async def _noticed(self, vanished: asyncio.Event) -> None:
        """What is written to who has vanished waits until that is noticed."""
        await vanished.wait()
        raise RuntimeError("the connection is gone")

    # the client's end

    def say(self, **message: Any) -> None:
        self.say_text(msgspec.json.encode(message).decode())

    def say_text(self, text: str) -> None:
        self._later(1, self._outbox, {"type": "websocket.receive", "text": text})

    def say_bytes(self, data: bytes) -> None:
        self._later(1, self._outbox, {"type": "websocket.receive", "bytes": data})

    def vanish(self) -> None:
        """Read nothing any more, and say nothing: nobody notices before ``hang_up``."""
        self._vanished = asyncio.Event()

    def hang_up(self) -> None:
        self._gone = True
        if self._vanished is not None:
            self._vanished.set()
        self._later(1, self._outbox, {"type": "websocket.disconnect"})

    def _later(self, way: int, queue: "asyncio.Queue[Any]", message: Any) -> None:
        self._free_at[way] = max(self._free_at[way] + 1e-6, self._loop.time() + self._dice.between(*LATENCY_S))
        context = self._server if way else self._client
        self._loop.call_at(self._free_at[way], queue.put_nowait, message, context=context)
