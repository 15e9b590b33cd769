"""The sessions of one gateway, a ``Live`` each: begun, played, looked after, ended."""

import asyncio
from collections.abc import Container, Coroutine
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

import structlog

from worldmove.errors import UserError
from worldmove.fleet.ports import Fleet
from worldmove.serve.gateway_config import GatewayConfig
from worldmove.serve.live import Live
from worldmove.serve.live_config import Start
from worldmove.serve.metrics import Metrics
from worldmove.serve.player import CloseCode
from worldmove.serve.resuming import Resuming
from worldmove.serve.stalls import Stalls
from worldmove.serve.upkeep import Upkeep

FAREWELL_S = 1.0
"""How long players may take to close their connections when the server ends."""

log = structlog.get_logger()


class Lives:
    """All of them, by name."""

    def __init__(self, *, fleet: Fleet, config: GatewayConfig, metrics: Metrics) -> None:
        self.fleet = fleet
        self.config = config
        self.lives: dict[str, Live] = {}
        self.stalls = Stalls(self)
        self._metrics = metrics
        self._playing: dict[str, asyncio.Task[None]] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._upkeep = Upkeep(self, keep_s=config.keep_s, spare_s=config.spare_s, silent_s=config.silent_s)

    def begin(self, session: str, start: Start | None = None) -> Live:
        """Make room for a session, before the controller names its owner."""
        return self._begin(session, start=start)

    def _begin(self, session: str, *, start: Start | None = None, resuming: Resuming | None = None) -> Live:
        live = Live(
            session, config=self.config.live, fleet=self.fleet, metrics=self._metrics, start=start, resuming=resuming
        )
        self.lives[session] = live
        self._playing[session] = self.spawn(self._play(live))
        return live

    async def _play(self, live: Live) -> None:
        try:
            await live.run()
        except Exception as error:  # noqa: BLE001  (whatever it is, no other session has a part in it)
            self.failed("play", live.name, error)

    def failed(self, task: str, session: str, error: BaseException) -> None:
        """The gateway has failed at a session: log and count it, and end this world for its players."""
        log.error("the gateway failed at a session", session=session, task=task, exc_info=error)
        self._metrics.failed(task)
        if live := self.lives.get(session):
            live.fail("The gateway failed at this world; its log says more.")

    def live(self, session: str) -> Live:
        """Return a session. Raises UserError, naming the nearest, for one that is not here."""
        if session in self.lives:
            return self.lives[session]
        near = get_close_matches(session, self.lives, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else "`worldmove sessions` lists those that are open."
        raise UserError(f"There is no session {session}; {hint}", code="unknown_session", status=404)

    @property
    def num_players(self) -> int:
        """How many play connections are open."""
        return sum(live.audience.num_watchers for live in self.lives.values())

    async def make_room(self, among: Container[str]) -> bool:
        """Close that session of these workers which nobody has watched for longest, if that is long.

        Says whether it did.
        """
        return await self._upkeep.make_room(among)

    def forget(self, session: str, why: str) -> None:
        """A session has ended: close its connections and play it no more. Does nothing for one not here."""
        if live := self.lives.pop(session, None):
            live.end(why)
            self._playing.pop(session).cancel()
            self._upkeep.forget(session)

    async def run(self) -> None:
        """Look after the sessions until cancelled."""
        while True:
            await asyncio.sleep(self.config.look_every_s)
            self.stalls.look(self.config.look_every_s)
            self._upkeep.look(self.config.look_every_s)

    async def end(self) -> None:
        """The server ends: close every connection, and stop. Idempotent."""
        lives = tuple(self.lives.items())
        for _, live in lives:
            live.dismiss(CloseCode.SERVER_ENDS, "the server ends")
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await asyncio.gather(*(live.audience.emptied() for _, live in lives))
        for session, _ in lives:
            self.forget(session, "the server ends")
        for task in tuple(self._tasks):
            task.cancel()

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run something beside the rest; what it fails with is logged."""
        task = asyncio.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the gateway failed", exc_info=error)
            self._metrics.failed("beside")
