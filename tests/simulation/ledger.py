"""The ledger as a server has it on a bad day: slow, refusing, or silent after it has done what it was asked."""

import asyncio
from collections.abc import Sequence

from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from tests.simulation.weather import Weather
from worldmove.errors import LedgerError
from worldmove.move.ledger_messages import Operation
from worldmove.move.ledger_row import Facts, Row
from worldmove.move.ledger_rules import Ledger, Ruling

SLOW_S = 1.0


class FaultyLedger:
    """A ``Ledger`` over a real one. The one below is the disk: it outlives every server."""

    def __init__(self, inner: Ledger, *, weather: Weather, watch: Watch, trace: Trace) -> None:
        self._inner = inner
        self._weather = weather
        self._watch = watch
        self._trace = trace

    async def create(self, row: Row) -> bool:
        await self._before()
        created = await self._inner.create(row)
        if created:
            self._watch.row_written(None, row)
        return created

    async def ask(self, operation: Operation, facts: Facts) -> Ruling:
        await self._before()
        old = await self._inner.row(operation.session)
        new, answer = await self._inner.ask(operation, facts)
        if new is not None and new != old:
            self._trace.add("row", session=new.session, owner=new.owner, e=new.epoch, by=new.granted_by, lost=new.lost)
            self._watch.row_written(old, new)
        if self._weather.strikes("ledger_mute"):
            raise LedgerError("its answer did not come, after all was done")
        if dice := self._weather.strikes("ledger_slow"):
            await asyncio.sleep(dice.between(0.0, SLOW_S))
        return new, answer

    async def row(self, session: str) -> Row | None:
        return await self._inner.row(session)

    async def rows(self) -> tuple[Row, ...]:
        return await self._inner.rows()

    async def forget(self, session: str) -> None:
        await self._inner.forget(session)
        self._watch.row_forgotten(session)

    async def put_back(self, rows: Sequence[Row]) -> None:
        """Somebody puts an older file in the place of the newest, while no server runs."""
        for row in await self._inner.rows():
            await self._inner.forget(row.session)
        for row in rows:
            await self._inner.create(row)

    async def _before(self) -> None:
        if dice := self._weather.strikes("ledger_slow"):
            await asyncio.sleep(dice.between(0.0, SLOW_S))
        if self._weather.strikes("ledger_refuses"):
            raise LedgerError("it is locked by another process")
