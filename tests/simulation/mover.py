"""Who moves sessions about: one for each session, who moves it again and again, and sometimes thinks better of it."""

import asyncio

from tests.simulation.loop import SimLoop
from tests.simulation.server import Server, ServerGoneError
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from tests.simulation.weather import Weather
from worldmove.errors import WorldMoveError
from worldmove.move.strategy import Strategy

GAP_S = (0.2, 1.5)
SHARES = ((Strategy.REPLAY, 0.3), (Strategy.PRE_COPY, 0.15), (Strategy.STREAMING, 0.15))
"""Of moves that are made while the session plays; the rest are boundary copies."""
FOLLOWED_SHARES = ((Strategy.STREAMING, 0.75), (Strategy.REPLAY, 0.1), (Strategy.PRE_COPY, 0.05))
"""The same where worlds have a decoder: streaming alone follows it."""
FOLLOWED_GAP_S = (0.1, 0.8)


def drawn(unit: float, *, decodes: bool = False) -> Strategy:
    """Return the strategy of a move, by a number from 0 to 1."""
    for strategy, share in FOLLOWED_SHARES if decodes else SHARES:
        if unit < share:
            return strategy
        unit -= share
    return Strategy.BOUNDARY_COPY


class Mover:
    """Moves one session until the weather clears."""

    def __init__(
        self,
        session: str,
        *,
        decodes: bool,
        server: Server,
        loop: SimLoop,
        weather: Weather,
        watch: Watch,
        trace: Trace,
    ) -> None:
        """``decodes``: whether its world has a decoder."""
        self.session = session
        self._decodes = decodes
        self._server = server
        self._loop = loop
        self._weather = weather
        self._watch = watch
        self._trace = trace
        self._cancelling: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Return once the weather is clear, and the last move has ended."""
        while True:
            dice = self._weather.dice("operator")
            await asyncio.sleep(dice.between(*(FOLLOWED_GAP_S if self._decodes else GAP_S)))
            if self._weather.clear:
                break
            if cancel := self._weather.strikes("cancel"):
                self._cancelling.append(self._loop.create_task(self._cancel(cancel.between(0.0, 1.0))))
            strategy = drawn(self._weather.dice("strategy").unit(), decodes=self._decodes)
            await self._move(strategy, damage=self._weather.strikes("damage") is not None)
        await asyncio.gather(*self._cancelling)

    async def _move(self, strategy: Strategy, *, damage: bool) -> None:
        try:
            report = await self._server.ask(
                lambda house: house.desk.move(self.session, None, damage=damage, strategy=strategy.value)
            )
        except WorldMoveError as error:
            self._trace.add("not_moved", session=self.session, code=error.code)
            self._trace.count(f"moves not begun: {error.code}")
            return
        except ServerGoneError:
            self._trace.count("moves of a server that died")
            return
        self._trace.count(f"{strategy.value} {report.outcome.value}: {report.reason}")
        self._watch.reported(report)

    async def _cancel(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        try:
            await self._server.ask(lambda house: house.desk.cancel(self.session))
        except WorldMoveError as error:
            self._trace.add("not_cancelled", session=self.session, code=error.code)
        except ServerGoneError:
            self._trace.add("not_cancelled", session=self.session, code="server_gone")
