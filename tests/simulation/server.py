"""The server of a run: one life after another, over one ledger, one set of notes, and workers that outlive it."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.simulation.hosts import SimHosts
from tests.simulation.house import House, open_house
from tests.simulation.ledger import FaultyLedger
from tests.simulation.loop import SimLoop
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.notes import NoteStore

T = TypeVar("T")
BEGAN_MS = 1_700_000_000_000
"""The wall clock at the beginning of a run: a server's life number goes by it."""


class ServerGoneError(ConnectionError):
    """There is no server, or it died before it answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What outlives a server."""

    config: FleetConfig
    hosts: SimHosts
    ledger: FaultyLedger
    notes: NoteStore
    loop: SimLoop
    trace: Trace
    watch: Watch


class Server:
    """Whoever is the server now. ``house`` is None from a death until the next life serves."""

    def __init__(self, ground: Ground) -> None:
        self.house: House | None = None
        self.life = 0
        self._life_number = 0
        self.on_death: list[Callable[[], None]] = []
        self._ground = ground
        self._waiting: dict[asyncio.Event, None] = {}
        self._is_dead = False
        self._serves = asyncio.Event()

    @property
    def ledger(self) -> FaultyLedger:
        return self._ground.ledger

    @property
    def node(self) -> str:
        return f"server#{self.life}"

    async def start(self) -> None:
        """Begin a life, and return once it serves."""
        self.life += 1
        self._life_number = max(self._life_number + 1, BEGAN_MS + round(1000 * self._ground.loop.time()))
        self._is_dead = False
        self._ground.hosts.begin(self.node)
        house = await self._inside(self._open())
        self.house = house
        self._serves.set()

    async def _open(self) -> House:
        ground = self._ground
        house = open_house(
            life=self.life,
            life_number=self._life_number,
            config=ground.config,
            hosts=ground.hosts,
            ledger=ground.ledger,
            notes=ground.notes,
            loop=ground.loop,
            trace=ground.trace,
            watch=ground.watch,
        )
        await house.controller.start()
        return house

    async def serving(self) -> House:
        """Return the house once there is one."""
        await self._serves.wait()
        assert self.house is not None
        return self.house

    async def ask(self, work: Callable[[House], Coroutine[Any, Any, T]]) -> T:
        """Have the server do something, and return what it says. Raises ServerGoneError, and what ``work`` raises."""
        if self.house is None:
            raise ServerGoneError(self.node)
        return await self._inside(work(self.house))

    async def _inside(self, work: Coroutine[Any, Any, T]) -> T:
        loop, ended = self._ground.loop, asyncio.Event()
        task = loop.run_in(loop.context(self.node), work, "asked")
        task.add_done_callback(lambda _: ended.set())
        self._waiting[ended] = None
        await ended.wait()
        del self._waiting[ended]
        if not task.done():
            raise ServerGoneError(self.node)
        result: T = task.result()
        return result

    def kill(self) -> None:
        """Cut its power. The workers live on; every link and connection ends."""
        if self._is_dead:
            return
        self._is_dead = True
        self._ground.trace.add("power_off", node=self.node)
        self._ground.trace.count("servers killed")
        self._ground.loop.power_off(self.node)
        self.house = None
        self._serves.clear()
        self._ground.hosts.server_died()
        for died in self.on_death:
            died()
        for ended in self._waiting:
            ended.set()

    async def start_again(self, after_s: float) -> None:
        """Begin the next life some time from now."""
        await asyncio.sleep(after_s)
        await self.start()
