"""A player's tab: it presses numbered keys, checks what it is shown, and comes back when its connection ends."""

import asyncio
import hashlib
import json
from collections import deque
from contextvars import Context
from typing import Any

from tests.simulation.engine import KEYS
from tests.simulation.loop import SimLoop
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from tests.simulation.weather import Weather
from worldmove.serve.desk import Desk
from worldmove.serve.frames import unpack
from worldmove.serve.play_socket import play
from worldmove.serve.player import CloseCode

LATENCY_S = (0.001, 0.03)
COME_BACK_S = (0.05, 1.5)
SLOW_S = 3.0


class SimSocket:
    """A framework's WebSocket as ``serve.play_socket`` uses it, with the client at its other end."""

    def __init__(self, loop: SimLoop, weather: Weather, *, client: Context, server: Context) -> None:
        self.inbox: asyncio.Queue[Any] = asyncio.Queue()
        """At the client: text, bytes, or a close code."""
        self._outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._loop = loop
        self._weather = weather
        self._client = client
        self._server = server
        self._dice = weather.dice("socket")
        self._free_at = [0.0, 0.0]
        self._gone = False

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
        self._later(0, self.inbox, int(code))

    async def _to_client(self, message: str | bytes) -> None:
        if dice := self._weather.strikes("slow_reader"):
            await asyncio.sleep(dice.between(0.0, SLOW_S))
        if self._gone:
            raise RuntimeError("the connection is gone")
        self._later(0, self.inbox, message)

    # the client's end

    def say(self, **message: Any) -> None:
        self._later(1, self._outbox, {"type": "websocket.receive", "text": json.dumps(message)})

    def hang_up(self) -> None:
        self._gone = True
        self._later(1, self._outbox, {"type": "websocket.disconnect"})

    def _later(self, way: int, queue: "asyncio.Queue[Any]", message: Any) -> None:
        self._free_at[way] = max(self._free_at[way] + 1e-6, self._loop.time() + self._dice.between(*LATENCY_S))
        context = self._server if way else self._client
        self._loop.call_at(self._free_at[way], queue.put_nowait, message, context=context)


class Tab:
    """One player of one session."""

    def __init__(
        self,
        session: str,
        *,
        desk: Desk,
        loop: SimLoop,
        weather: Weather,
        watch: Watch,
        trace: Trace,
        server: Context,
    ) -> None:
        self.session = session
        self.ended = False
        """Whether the server has said that the session is over."""
        self.newest = -1
        """The newest block that was received."""
        self.desk = desk
        self._loop = loop
        self._weather = weather
        self._watch = watch
        self._trace = trace
        self._server = server
        self._client = loop.context(f"tab {session}")
        self._socket: SimSocket | None = None
        self._greeted = False
        """Whether the server has said hello on this connection: which changes it lacks is not known before."""
        self._said: deque[tuple[int, str, bool]] = deque()
        """Changes that the server has not said to have taken."""
        self._number = 0
        self._held: dict[str, None] = {}
        self._serving: list[asyncio.Task[Any]] = []
        self.tasks = (
            loop.run_in(self._client, self._watch_world(), f"watch {session}"),
            loop.run_in(self._client, self._press_keys(), f"press {session}"),
        )

    def press(self, key: str, *, down: bool) -> None:
        """Press a key, or let go of it."""
        self._number += 1
        change = (self._number, key, down)
        self._said.append(change)
        self._watch.pressed(self.session, self._number, key, down=down)
        self._tell([change])

    async def end(self) -> None:
        """Close the tab."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        if self._socket is not None:
            self._socket.hang_up()
        await asyncio.gather(*self._serving)

    # pressing

    async def _press_keys(self) -> None:
        while True:
            dice = self._weather.dice("keys")
            await asyncio.sleep(dice.between(0.05, 2.0) if dice.below(8) else dice.between(2.0, 5.0))
            key = KEYS[dice.below(len(KEYS))]
            if key in self._held:
                del self._held[key]
                self.press(key, down=False)
            else:
                self._held[key] = None
                self.press(key, down=True)

    def _tell(self, changes: list[tuple[int, str, bool]]) -> None:
        if self._socket is None or not self._greeted or not changes:
            return
        self._socket.say(type="keys", changes=changes[:64])
        if self._weather.strikes("press_twice"):
            self._socket.say(type="keys", changes=changes[:64])

    # watching

    async def _watch_world(self) -> None:
        while not self.ended:
            self._connect()
            await self._read()
            await asyncio.sleep(self._weather.dice("come back").between(*COME_BACK_S))

    def _connect(self) -> None:
        socket = SimSocket(self._loop, self._weather, client=self._client, server=self._server)
        self._socket, self._greeted = socket, False
        name = f"serve {self.session}"
        serving = play(socket, self.desk, self.session, controls=True, on_closed=lambda code: None)  # type: ignore[arg-type]
        task = self._loop.run_in(self._server, serving, name)
        task.add_done_callback(self._served)
        self._serving = [task for task in self._serving if not task.done()]
        self._serving.append(task)

    def _served(self, task: "asyncio.Task[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._trace.fail(f"serving {self.session} failed: {error!r}")

    async def _read(self) -> None:
        socket, first = self._socket, True
        assert socket is not None
        while True:
            message = await socket.inbox.get()
            if isinstance(message, int):
                self.ended = message in (CloseCode.SESSION_ENDED, CloseCode.NO_SESSION)
                self._socket = None
                socket.hang_up()
                return
            if isinstance(message, bytes):
                first = self._see(message, first=first)
            else:
                self._hear(json.loads(message))
            if self._weather.strikes("hang_up"):
                self._trace.add("hang_up", session=self.session)
                self._socket = None
                socket.hang_up()
                return

    def _hear(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "hello":
                self._greeted = True
                self._forget(message["next_number"] - 1)
                self._tell(list(self._said))
            case "keys":
                self._forget(message["number"])

    def _forget(self, number: int) -> None:
        while self._said and self._said[0][0] <= number:
            self._said.popleft()

    def _see(self, message: bytes, *, first: bool) -> bool:
        """Check one frame; say whether the next one may still be a repeat."""
        header, pixels = unpack(message)
        if header.kind:
            return first
        if hashlib.sha256(pixels).digest() != header.sha256:
            self._trace.fail(f"{self.session}: a frame of block {header.block} has another digest than its header says")
        block = header.block
        wanted = range(self.newest, block + 1) if first else (self.newest, self.newest + 1)
        if block not in wanted:
            self._trace.fail(f"{self.session}: block {block} came to the tab after block {self.newest}")
        if header.index == 1:
            self._repeated_or_new(block, first=first)
            return False
        return first

    def _repeated_or_new(self, block: int, *, first: bool) -> None:
        if block == self.newest and not first:
            self._trace.fail(f"{self.session}: block {block} came to the tab twice")
        self.newest = block
        if self._socket is not None:
            self._socket.say(type="received", block=block, server_life=1)
