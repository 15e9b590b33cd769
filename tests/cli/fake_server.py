"""A server without workers, for the command line's tests, in a process of its own.

A move to a worker named after an outcome ends with that outcome.
"""

import asyncio
from pathlib import Path

from tests.serve.fakes import RECEIPTS, SPEC, FakeFleet, FakeIds
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.move.strategy import Strategy
from worldmove.serve.app import Parts, build_app
from worldmove.serve.desk import Desk
from worldmove.serve.gateway import Gateway
from worldmove.serve.gateway_config import GatewayConfig
from worldmove.serve.listen import answering, bound, url_of
from worldmove.serve.live_config import LiveConfig
from worldmove.serve.metrics import Metrics
from worldmove.serve.origin import OwnOnly
from worldmove.serve.wording import engine_info


class EndingFleet(FakeFleet):
    """A fleet in which the destination's name says how a move ends."""

    async def move(
        self,
        session: str,
        to: str,
        *,
        damage: bool = False,
        strategy: Strategy | None = None,
        link: str | None = None,
    ) -> MoveReport:
        self.outcome = Outcome(to) if to in [outcome.value for outcome in Outcome] else Outcome.COMMITTED
        return await super().move(session, to, damage=damage, strategy=strategy, link=link)


async def serve(port_file: Path) -> None:
    """Answer until the process is ended."""
    fleet, metrics = EndingFleet(workers=("a", "b", "refused", "aborted", "in_doubt", "lost")), Metrics()
    fleet.gone.add("lost")
    gateway = Gateway(
        fleet=fleet, config=GatewayConfig(live=LiveConfig(spec=SPEC, server_life=5, receipts=RECEIPTS)), metrics=metrics
    )
    fleet.attach(gateway)
    desk = Desk(gateway, engine=engine_info(SPEC, None), ids=FakeIds())
    app = OwnOnly(build_app(Parts(desk=desk, gateway=gateway, metrics=metrics, page={})))
    with bound("127.0.0.1", 0) as listening:
        async with answering(app, listening, farewell=gateway.end):
            port_file.write_text(url_of(listening), encoding="utf-8")
            await asyncio.Event().wait()


def begin(port_file: Path) -> None:
    """Serve, and write where into a file."""
    asyncio.run(serve(port_file))
