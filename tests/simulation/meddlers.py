"""Clients that meddle with a session which others play: what they say, take and ask for may do them no harm.

They have no right to its controls, and press keys all the same; they say what is no message, flood, come as a crowd,
hop in and out, vanish with no goodbye; they ask for moves while it moves, for its protection and for none.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from tests.simulation.asker import Asker
from tests.simulation.door import Door
from tests.simulation.engine import KEYS
from tests.simulation.house import LIMITS
from tests.simulation.sockets import SimSocket
from tests.simulation.weather import Dice
from worldmove.move.strategy import Strategy

TICK_S = 0.25
STAY_S = (0.0, 0.8)
FAR = 1 << 50
UNNOTICED_S = 20.0
"""How long a connection whose other end has vanished is taken for one that is silent."""
ENDED_WITHIN_S = 10.0
NONSENSE = ("", "{", "[]", '{"type":"keys"}', '{"type":"keys","changes":[[1,"up"]]}', '{"type":"kill"}', "\u0000" * 99)
CLAIMS = ("", "-", "7", "x-y", "9" * 400, "-1-00", "0-")
PLACES = (None, "worker-1", "worker-2", "worker-3", "worker-9")
LINKS = (None, None, None, "25gbit", "a hair")
STRATEGIES = (None, "teleport", *(strategy.value for strategy in Strategy))


class Meddlers:
    """Those of one session. Each visit is a fault of its own."""

    def __init__(self, asker: Asker, *, protect_every: int) -> None:
        """``protect_every``: what is asked for again once the weather is clear."""
        self._asker = asker
        self._protect_every = protect_every
        self._played = asker.watch.played[asker.session]
        self._weather = asker.weather
        self._trace = asker.trace
        client = asker.loop.context(f"meddlers {asker.session}")
        self._door = Door(
            asker.session,
            "meddler",
            server=asker.server,
            loop=asker.loop,
            weather=asker.weather,
            trace=asker.trace,
            client=client,
        )
        self._acts: tuple[Callable[[Dice], Coroutine[Any, Any, None]], ...] = (
            self._speaks,
            self._speaks,
            self._floods,
            self._crowds,
            self._hops,
            self._vanishes,
            self._moves,
            self._moves,
            self._protects,
            self._recovers,
        )
        self._visits: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Return once the weather is clear, and the last of them has gone."""
        while not self._weather.clear:
            if dice := self._weather.strikes("meddler"):
                act = self._acts[dice.below(len(self._acts))]
                self._trace.count(f"meddlers: {act.__name__.strip('_')}")
                self._visits.append(self._asker.loop.create_task(act(dice)))
            await asyncio.sleep(TICK_S)
        await asyncio.gather(*self._visits)
        await self._door.closed()
        await self._asker.protected(self._protect_every)

    # at the door

    async def _speaks(self, dice: Dice) -> None:
        """Say what only who plays may say, and what nobody may."""
        if (socket := self._entered()) is None:
            return
        for _ in range(1 + dice.below(6)):
            self._says(socket, dice)
            await asyncio.sleep(dice.between(0.0, 0.1))
        await asyncio.sleep(dice.between(*STAY_S))
        socket.hang_up()

    def _says(self, socket: SimSocket, dice: Dice) -> None:
        life, number = self._played.live.server_life, self._played.live.sequencer.next_number
        match dice.below(6):
            case 0:
                near = (1, number - 1, number, number + 1, number + 900_000, FAR)[dice.below(6)]
                keys = ((near, KEYS[dice.below(len(KEYS))], bool(dice.below(2))), (near, "fly", True))
                socket.say(type="keys", changes=keys)
            case 1:
                socket.say(type="keep", keep=True)
            case 2:
                socket.say(type="received", block=FAR, server_life=life)
            case 3:
                socket.say(type="ping", t=0.0)
            case 4:
                socket.say_text(NONSENSE[dice.below(len(NONSENSE))])
            case _:
                socket.say_bytes(b"\x00")

    async def _floods(self, _dice: Dice) -> None:
        """Say more than anybody may: that connection is ended, and nothing else."""
        if (socket := self._entered()) is None:
            return
        house = self._asker.server.house
        for number in range(round(LIMITS.messages.burst) + 16):
            socket.say(type="ping", t=float(number))
        await self._until(lambda: socket.is_closed or self._asker.server.house is not house, ENDED_WITHIN_S)
        if not socket.is_closed and self._asker.server.house is house:
            self._trace.fail(f"{self._asker.session}: who says more than anybody may was not turned away")
        socket.hang_up()

    async def _crowds(self, dice: Dice) -> None:
        """Come as more than may look on."""
        entered = [self._entered() for _ in range(LIMITS.max_watchers + 1)]
        await asyncio.sleep(dice.between(*STAY_S))
        for socket in entered:
            if socket is not None:
                socket.hang_up()

    async def _hops(self, dice: Dice) -> None:
        """Come with what proves nothing, and go at once."""
        for _ in range(4):
            socket = self._door.enter(controls=False, received=CLAIMS[dice.below(len(CLAIMS))])
            await asyncio.sleep(dice.between(0.0, 0.04))
            if socket is not None:
                socket.hang_up()

    async def _vanishes(self, dice: Dice) -> None:
        """Read nothing any more at some moment, and say no goodbye."""
        if (socket := self._entered()) is None:
            return
        await asyncio.sleep(dice.between(*STAY_S))
        socket.vanish()
        await self._until(lambda: self._weather.clear, UNNOTICED_S)
        socket.hang_up()

    def _entered(self) -> SimSocket | None:
        return self._door.enter(controls=False, received=None)

    async def _until(self, holds: Callable[[], bool], within_s: float) -> None:
        for _ in range(round(within_s / TICK_S)):
            if holds():
                return
            await asyncio.sleep(TICK_S)

    # as operators

    async def _moves(self, dice: Dice) -> None:
        """Ask for a move, whatever goes on; or for what is none."""
        await self._asker.move(
            PLACES[dice.below(len(PLACES))],
            damage=not dice.below(4),
            strategy=STRATEGIES[dice.below(len(STRATEGIES))],
            link=LINKS[dice.below(len(LINKS))],
        )

    async def _protects(self, dice: Dice) -> None:
        await self._asker.protect((0, 1, 2, 5, -1, 1 << 20)[dice.below(6)])

    async def _recovers(self, _dice: Dice) -> None:
        """Have a throw-away copy shown beside it."""
        await self._asker.ask("recover", lambda house: house.desk.recover(self._asker.session))
