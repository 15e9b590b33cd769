"""A tab: it presses numbered keys, or only watches; it checks what it is shown, and comes back when it was cut off."""

import asyncio
import hashlib
from collections import deque
from dataclasses import dataclass
from typing import Any

import msgspec

from tests.simulation.door import Door
from tests.simulation.engine import KEYS
from tests.simulation.frames import read
from tests.simulation.loop import SimLoop
from tests.simulation.server import Server
from tests.simulation.sockets import SimSocket
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from tests.simulation.weather import Weather
from worldmove.serve.player import CloseCode
from worldmove.serve.receipts import claim_of

COME_BACK_S = (0.05, 1.5)
AWAY_S = (6.0, 14.0)
"""How long somebody is away who has other things to do: sometimes longer than a server waits for clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What a tab is to its session."""

    name: str = "tab"
    controls: bool = True
    """Whether it asks for the controls, and presses keys."""
    wanders: bool = False
    """Whether it is sometimes long away, and sometimes loaded anew, with nothing of what it had."""


PLAYER = Role()
WATCHER = Role(name="watcher", controls=False, wanders=True)
RIVAL = Role(name="rival", wanders=True)
GRABBER = (Role(name="grabber"), Role(name="other grabber"))
"""Tabs of one who wants the same controls twice."""


class Tab:
    """One of those who look at a session."""

    def __init__(
        self,
        session: str,
        *,
        role: Role = PLAYER,
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
        self._receipt = b""
        """Its receipt."""
        self.greeted = False
        """Whether the server has said hello on this connection: which changes it lacks is not known before."""
        self._role = role
        self._weather = weather
        self._watch = watch
        self._trace = trace
        self._name = f"{role.name} {session}"
        client = loop.context(self._name)
        self._door = Door(session, role.name, server=server, loop=loop, weather=weather, trace=trace, client=client)
        self._socket: SimSocket | None = None
        self._said: deque[tuple[int, str, bool]] = deque()
        """Changes that the server has not said to have taken."""
        self._number = 0
        self._held: dict[str, None] = {}
        self._stays_away_s = 0.0
        self._life = 0
        """The server that it has talked to last."""
        self._wants_back = False
        """Whether another has the controls, and it is not content with that."""
        server.on_death.append(self._server_died)
        self.tasks = [loop.run_in(client, self._watch_world(), f"watch {self._name}")]
        if role.controls:
            self.tasks.append(loop.run_in(client, self._press_keys(), f"press {self._name}"))

    def press(self, key: str, *, down: bool) -> None:
        """Press a key, or let go of it. Who only watches has none."""
        if not self._role.controls:
            return
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
        await self._door.closed()

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
        if self._socket is None or not self.greeted or not changes:
            return
        self._socket.say(type="keys", changes=changes[:64])
        if self._weather.strikes("press_twice"):
            self._socket.say(type="keys", changes=changes[:64])

    # watching

    async def _watch_world(self) -> None:
        while not self.ended:
            claim = claim_of(self.newest, self._receipt) if self.newest >= 0 else None
            self._socket = self._door.enter(controls=self._role.controls, received=claim)
            if self._socket is not None:
                await self._read(self._socket)
            await asyncio.sleep(self._away_s())

    def go_away(self, seconds: float) -> None:
        """Watch no more for a while."""
        self._stays_away_s = seconds
        if self._socket is not None:
            self._socket.hang_up()
            self._socket.inbox.put_nowait(int(CloseCode.SERVER_ENDS))

    def _away_s(self) -> float:
        """Return how long it is away. Who wanders may come back with nothing."""
        away_s, self._stays_away_s = self._stays_away_s, 0.0
        if away_s:
            return away_s
        if not self._role.wanders:
            return self._weather.dice("come back").between(*COME_BACK_S)
        dice = self._weather.dice(f"come back {self._role.name}")
        if not self._weather.clear and not dice.below(6):
            self.newest = -1
            self._watch.reloaded(self.session, self._name)
        return dice.between(*COME_BACK_S) if self._weather.clear or dice.below(5) else dice.between(*AWAY_S)

    def _server_died(self) -> None:
        """Nobody is at the other end any more."""
        if self._socket is not None:
            self._socket.hang_up()
            self._socket.inbox.put_nowait(int(CloseCode.SERVER_ENDS))

    async def _read(self, socket: SimSocket) -> None:
        self.greeted, self._wants_back, first = False, False, True
        while True:
            message = await socket.inbox.get()
            if isinstance(message, int):
                self.ended = message in (CloseCode.SESSION_ENDED, CloseCode.NO_SESSION)
                if message == CloseCode.TOO_MANY:
                    self._watch.turned_away(self.session, self._role.name)
                break
            if isinstance(message, bytes):
                first = self._see(message, first=first)
            else:
                self._hear(msgspec.json.decode(message))
            if self._wants_back or self._weather.strikes("hang_up"):
                self._trace.add("hang_up", session=self.session)
                break
        self._socket, self.greeted = None, False
        socket.hang_up()

    def _hear(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "hello":
                self.greeted = True
                self._forget(message["next_number"] - 1)
                self._number = max(self._number, message["next_number"] - 1)
                self._tell(list(self._said))
                if self._life and self._life != message["server_life"]:
                    self._press_again()
                self._life = message["server_life"]
            case "keys":
                self._watch.taken(self.session, [said for said in self._said if said[0] <= message["number"]])
                self._forget(message["number"])
            case "taken_over":
                self._watch.taken_over(self.session)
                self._wants_back = bool(self._weather.dice("taken over").below(2))

    def _press_again(self) -> None:
        """Another server does not know what is down."""
        for key in self._held:
            self.press(key, down=True)

    def _forget(self, number: int) -> None:
        while self._said and self._said[0][0] <= number:
            self._said.popleft()

    def _see(self, message: bytes, *, first: bool) -> bool:
        """Check one frame; say whether the next one may still be a repeat."""
        header, pixels = read(message)
        if header.kind:
            return first
        if hashlib.sha256(pixels).digest() != header.sha256:
            self._trace.fail(f"{self.session}: a frame of block {header.block} has another digest than its header says")
        block = header.block
        self._watch.received(self.session, self._name, block, header.index, pixels)
        wanted = range(self.newest, block + 1) if first else (self.newest, self.newest + 1)
        if block not in wanted:
            self._trace.fail(f"{self.session}: block {block} came to the {self._role.name} after block {self.newest}")
        if header.index == 1:
            self._receipt = header.receipt
            self._repeated_or_new(block, first=first)
            return False
        return first

    def _repeated_or_new(self, block: int, *, first: bool) -> None:
        if block == self.newest and not first:
            self._trace.fail(f"{self.session}: block {block} came to the {self._role.name} twice")
        self.newest = block
        if self._socket is not None:
            self._socket.say(type="received", block=block, server_life=self._life)
