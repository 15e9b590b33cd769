"""What somebody asks of one session's server, and an answer that is no: counted, and told in the trace."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.simulation.house import House
from tests.simulation.loop import SimLoop
from tests.simulation.server import Server, ServerGoneError
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from tests.simulation.weather import Weather
from worldmove.errors import WorldMoveError

T = TypeVar("T")
AGAIN_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """One session's."""

    session: str
    server: Server
    loop: SimLoop
    weather: Weather
    watch: Watch
    trace: Trace

    async def ask(self, what: str, work: Callable[[House], Coroutine[Any, Any, T]]) -> T | None:
        """Return what comes of it; None where it was refused, or the server has died."""
        try:
            return await self.server.ask(work)
        except WorldMoveError as error:
            self.trace.add("refused", what=what, session=self.session, code=error.code)
            self.trace.count(f"refused to meddlers: {what}: {error.code}")
        except ServerGoneError:
            self.trace.add("refused", what=what, session=self.session, code="server_gone")
        return None

    async def move(
        self, to: str | None, *, damage: bool = False, strategy: str | None = None, link: str | None = None
    ) -> None:
        """Ask for a move."""
        asked = {"damage": damage, "strategy": strategy, "link": link}
        report = await self.ask("move", lambda house: house.desk.move(self.session, to, **asked))  # type: ignore[arg-type]
        if report is not None:
            self.watch.reported(report)

    async def cancel(self) -> None:
        """Ask for the move under way to be given up."""
        await self.ask("cancel", lambda house: house.desk.cancel(self.session))

    async def protect(self, every: int) -> bool:
        """Ask for its protection, or for none. Says whether that was granted."""

        async def protect(house: House) -> bool:
            house.desk.protect(self.session, every)
            self.watch.protection_asked(self.session, every)
            return True

        return await self.ask("protect", protect) is not None

    async def protected(self, every: int) -> None:
        """Have it protected so, however often that has to be asked for; or it is no more."""
        while not self.watch.played[self.session].is_over and not await self.protect(every):
            await asyncio.sleep(AGAIN_S)
            await self.server.serving()

    async def close(self) -> None:
        """Have it closed, however often that has to be asked for."""
        played = self.watch.played[self.session]
        while not played.is_closed:
            await self.server.serving()
            await self.ask("close", self._close)
            await asyncio.sleep(AGAIN_S)

    async def close_once(self) -> None:
        """Ask for its end; not again where that is refused. Who dies of it may have begun it."""
        await self.ask("close", self._close)
        played = self.watch.played[self.session]
        if played.is_closing and not played.is_closed:
            await self.close()

    async def open_another(self, on: str | None, every: int) -> None:
        """Open another session."""

        async def opened(house: House) -> str:
            return (await house.desk.open(seed=house.ids.next_seed(), on=on, protect=every)).name

        await self.ask("open", opened)

    async def _close(self, house: House) -> None:
        """Close it, if it is there: an earlier server may have done so without an answer."""
        played = self.watch.played[self.session]
        if self.session in house.gateway.lives:
            played.is_closing = True
            try:
                await house.desk.close(self.session)
            except WorldMoveError:
                played.is_closing = False
                raise
        played.is_closing = played.is_closed = True
