"""Visitors: they open a session of their own beside the others, play it in two tabs at once, ask for too much, and go.

One after the other, each for a moment. What they had is closed in the end, whatever it was just being moved to.
"""

import asyncio
from dataclasses import dataclass, field

from tests.simulation.asker import Asker
from tests.simulation.house import House
from tests.simulation.loop import SimLoop
from tests.simulation.meddlers import PLACES, STRATEGIES
from tests.simulation.server import Server, ServerGoneError
from tests.simulation.tab import GRABBER, Tab
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from tests.simulation.weather import Dice, Weather
from worldmove.errors import WorldMoveError

TICK_S = 0.25
BETWEEN_S = (0.0, 0.6)


@dataclass(slots=True, kw_only=True)
class Visitors:
    """Those of one run."""

    others: tuple[str, ...]
    """Sessions that are none of theirs."""
    server: Server
    loop: SimLoop
    weather: Weather
    watch: Watch
    trace: Trace
    _asking: list[asyncio.Task[None]] = field(default_factory=list)

    async def run(self) -> None:
        """Return once the weather is clear, and the last of them has gone."""
        while not self.weather.clear:
            if dice := self.weather.strikes("visitor"):
                await self._visit(dice)
            await asyncio.sleep(TICK_S)
        await asyncio.gather(*self._asking)

    async def _visit(self, dice: Dice) -> None:
        session = await self._opened(dice)
        if session is None:
            return
        self.trace.count("visits")
        self.watch.played[session].has_rivals = True
        asker = Asker(
            session=session,
            server=self.server,
            loop=self.loop,
            weather=self.weather,
            watch=self.watch,
            trace=self.trace,
        )
        tabs = [self._tab(session, number) for number in range(dice.below(3))]
        for _ in range(1 + dice.below(4)):
            await asyncio.sleep(dice.between(*BETWEEN_S))
            self._asking.append(self.loop.create_task(self._ask(asker, dice)))
        if dice.below(2):
            await self._leave(tabs)
        await asker.close()
        await self._leave(tabs)
        self.watch.check_actions(self.watch.played[session])

    async def _opened(self, dice: Dice) -> str | None:
        """Return the session; None where there is none. One of a server that died is found at the next."""
        on, protect = PLACES[dice.below(4)], (0, 0, 1, 3)[dice.below(4)]

        async def opened(house: House) -> str:
            return (await house.desk.open(seed=house.ids.next_seed(), on=on, protect=protect)).name

        try:
            return await self.server.ask(opened)
        except WorldMoveError as error:
            self.trace.add("not_opened", code=error.code)
            self.trace.count(f"refused to meddlers: open: {error.code}")
            return None
        except ServerGoneError:
            house = await self.server.serving()
            left = [view.name for view in house.controller.sessions() if not view.throwaway]
            return next((name for name in left if name not in self.others), None)

    async def _ask(self, asker: Asker, dice: Dice) -> None:
        """Ask for something at this moment; what the last one asked for may still be going on."""
        match dice.below(6):
            case 0 | 1 | 2:
                await asker.move(PLACES[dice.below(len(PLACES))], strategy=STRATEGIES[dice.below(len(STRATEGIES))])
            case 3:
                await asker.cancel()
            case 4:
                await asker.protect((0, 1, 4)[dice.below(3)])
            case _:
                await asker.ask("recover", lambda house: house.desk.recover(asker.session))

    def _tab(self, session: str, number: int) -> Tab:
        tab = Tab(
            session,
            role=GRABBER[number],
            server=self.server,
            loop=self.loop,
            weather=self.weather,
            watch=self.watch,
            trace=self.trace,
        )
        tab.press("up", down=True)
        return tab

    async def _leave(self, tabs: list[Tab]) -> None:
        while tabs:
            await tabs.pop().end()
