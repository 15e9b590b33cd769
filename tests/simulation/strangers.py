"""Strangers: they say that they have whatever comes to their minds, look on for a moment, and vanish.

They have a receipt of nothing, so they make one up.
"""

import asyncio

from tests.simulation.door import Door
from tests.simulation.loop import SimLoop
from tests.simulation.server import Server
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from tests.simulation.weather import Dice, Weather
from worldmove.serve.receipts import RECEIPT_BYTES, claim_of

TICK_S = 0.25
STAY_S = (0.02, 0.8)
FAR = 1 << 50


class Strangers:
    """Those of one session. Each visit is a fault of its own."""

    def __init__(
        self, session: str, *, server: Server, loop: SimLoop, weather: Weather, watch: Watch, trace: Trace
    ) -> None:
        self._played = watch.played[session]
        self._session = session
        self._loop = loop
        self._weather = weather
        self._trace = trace
        client = loop.context(f"strangers {session}")
        self._door = Door(session, "stranger", server=server, loop=loop, weather=weather, trace=trace, client=client)
        self._visits: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Return once the weather is clear, and the last of them has gone."""
        while not self._weather.clear:
            if dice := self._weather.strikes("stranger"):
                self._visits.append(self._loop.create_task(self._visit(dice)))
            await asyncio.sleep(TICK_S)
        await asyncio.gather(*self._visits)
        await self._door.closed()

    async def _visit(self, dice: Dice) -> None:
        received = self._claim(dice)
        claim = None if received is None else claim_of(received, dice.below(1 << 62).to_bytes(RECEIPT_BYTES, "big"))
        socket = self._door.enter(controls=False, received=claim)
        if socket is None:
            return
        self._trace.add("stranger", session=self._session, received=received)
        self._trace.count("visits of strangers")
        await asyncio.sleep(dice.between(*STAY_S))
        socket.hang_up()

    def _claim(self, dice: Dice) -> int | None:
        """Return the newest block that it says it has: mostly one about the next that is to be shown."""
        match dice.below(16):
            case 0:
                return None
            case 1:
                return FAR
            case _:
                return max(0, self._played.next_block + dice.below(10) - 5)
