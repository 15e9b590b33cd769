"""A player's tab: it presses numbered keys, checks what it is shown, and comes back when its connection ends."""

import asyncio
import hashlib
import json
from collections import deque
from typing import Any

from tests.simulation.engine import KEYS
from tests.simulation.loop import SimLoop
from tests.simulation.server import Server
from tests.simulation.sockets import SimSocket
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from tests.simulation.weather import Weather
from worldmove.serve.frames import unpack
from worldmove.serve.play_socket import play
from worldmove.serve.player import CloseCode

COME_BACK_S = (0.05, 1.5)


class Tab:
    """One player of one session."""

    def __init__(
        self,
        session: str,
        *,
        server: Server,
        loop: SimLoop,
        weather: Weather,
        watch: Watch,
        trace: Trace,
    ) -> None:
        self.session = session
        self.ended = False
        """Whether the server has said that the session is over."""
        self.newest = -1
        """The newest block that was received."""
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
        self._life = 0
        """The server that it has talked to last."""
        self._serving: list[asyncio.Task[Any]] = []
        server.on_death.append(self._server_died)
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
            if self._connect():
                await self._read()
            await asyncio.sleep(self._weather.dice("come back").between(*COME_BACK_S))

    def _connect(self) -> bool:
        """Open a connection. False where there is no server."""
        house = self._server.house
        if house is None:
            return False
        socket = SimSocket(self._loop, self._weather, client=self._client, server=house.context)
        self._socket, self._greeted = socket, False
        serving = play(
            socket,  # type: ignore[arg-type]
            house.desk,
            self.session,
            controls=True,
            received=self.newest if self.newest >= 0 else None,
            on_closed=lambda code: None,
        )
        task = self._loop.run_in(house.context, serving, f"serve {self.session}")
        task.add_done_callback(self._served)
        self._serving = [task for task in self._serving if not task.done()]
        self._serving.append(task)
        return True

    def _server_died(self) -> None:
        """Nobody is at the other end any more."""
        self._serving.clear()
        if self._socket is not None:
            self._socket.hang_up()
            self._socket.inbox.put_nowait(int(CloseCode.SERVER_ENDS))

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
                self._number = max(self._number, message["next_number"] - 1)
                self._tell(list(self._said))
                if self._life and self._life != message["server_life"]:
                    self._press_again()
                self._life = message["server_life"]
            case "keys":
                self._forget(message["number"])

    def _press_again(self) -> None:
        """Another server does not know what is down."""
        for key in self._held:
            self.press(key, down=True)

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
        self._watch.received(self.session, block, header.index, pixels)
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
            self._socket.say(type="received", block=block, server_life=self._life)
