"""The gateway: one ``Live`` for each session, between the players and the workers' blocks.

To the controller it is a ``fleet.ports.Gateway``. What HTTP asks of it stands in ``serve.desk``.
"""

import asyncio
from collections.abc import Container, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import structlog

from worldmove.errors import UserError
from worldmove.fleet.failover_report import FailoverReport
from worldmove.fleet.ports import Fleet, Owner, Played
from worldmove.fleet.reports import MoveReport
from worldmove.serve.containment import contained
from worldmove.serve.live import Live
from worldmove.serve.live_config import LiveConfig, Start
from worldmove.serve.metrics import Metrics
from worldmove.serve.play_messages import Error
from worldmove.serve.player import CloseCode
from worldmove.serve.recover import Recovery
from worldmove.serve.results import failover_of
from worldmove.serve.resuming import Resuming
from worldmove.serve.resumption import ResumptionConfig
from worldmove.serve.stalls import Stalls
from worldmove.serve.tellings import Tellings
from worldmove.serve.upkeep import Upkeep
from worldmove.serve.wording import owner_now, record_header
from worldmove.worker.messages import BlockDone, Change, CheckDone, Failed, Followed, Left, Opened, Replayed, StateDone

FAREWELL_S = 1.0
"""How long players may take to close their connections when the server ends."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """Seconds. ``keep_s``: how long a session that nobody watches is kept."""

    live: LiveConfig
    resumption: ResumptionConfig = field(default_factory=ResumptionConfig)
    keep_s: float = 600.0
    spare_s: float = 30.0
    """How long nobody must have watched a session before another may have its room."""
    silent_s: float = 10.0
    """After so long without a word from who controls, its keys are released: its connection may be dead."""
    gap_within_s: float = 2.0
    """How long the result of a move waits for the block that ends its gap."""
    look_every_s: float = 0.5
    """How often workers and unwatched sessions are looked at."""


class Gateway:
    """All sessions of one server."""

    def __init__(self, *, fleet: Fleet, config: GatewayConfig, metrics: Metrics) -> None:
        self.fleet = fleet
        self.config = config
        self.lives: dict[str, Live] = {}
        self.recoveries: dict[str, Recovery] = {}
        """By session: its throw-away copy."""
        self._metrics = metrics
        self._playing: dict[str, asyncio.Task[None]] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}
        self.stalls = Stalls(self)
        self._upkeep = Upkeep(self, keep_s=config.keep_s, spare_s=config.spare_s, silent_s=config.silent_s)
        self._tellings = Tellings(
            lives=self.lives,
            fleet=fleet,
            metrics=metrics,
            gap_within_s=config.gap_within_s,
            spawn=self.spawn,
        )

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

    async def settled(self, session: str, report: MoveReport) -> MoveReport:
        """Wait until a move's gap is over; return its report with the gap, and with where the session is by then."""
        return await self._tellings.settled(session, report)

    async def run(self) -> None:
        """Look after the sessions until cancelled."""
        while True:
            await asyncio.sleep(self.config.look_every_s)
            self.stalls.look(self.config.look_every_s)
            self._upkeep.look()

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

    # For the controller: ``fleet.ports.Gateway``.

    def take(self, worker: str, message: Played) -> None:
        self._take(message.session, worker, message)

    @contained
    def _take(self, _session: str, worker: str, message: Played) -> None:
        match message:
            case Left(session=name, block=block) if name in self.lives:
                self.lives[name].recall(block)
            case BlockDone(session=name) if (recovery := self._recovery(name)) is not None:
                recovery.take(message)
            case BlockDone(session=name) | StateDone(session=name) if name in self.lives:
                self.lives[name].take(worker, message)
            case CheckDone(session=name) | Followed(session=name) if name in self.lives:
                self.lives[name].take(worker, message)
            case Replayed(session=name) if name in self.lives:
                self.lives[name].take(worker, message)
            case Opened(session=name) if name in self.lives:
                self._opened(self.lives[name], worker, message)
            case Failed(session=name, code=code, message=why):
                log.warning("failed", session=name, worker=worker, code=code, why=why)
                if live := self.lives.get(name):
                    live.audience.say(Error(code=code, message=why))

    @contained
    def owned(self, session: str, owner: Owner) -> None:
        if live := self.lives.get(session):
            live.owned(owner)
            live.audience.say(owner_now(owner, self.fleet.workers()))

    @contained
    def holders(self, session: str, workers: Sequence[str]) -> None:
        if live := self.lives.get(session):
            live.hold(workers)

    @contained
    def close_epoch(self, session: str, epoch: int) -> None:
        if live := self.lives.get(session):
            live.screen.close_epoch(epoch)

    @contained
    def resume(self, session: str, opened: Opened, forks: tuple[int, ...] = ()) -> None:
        live = self._begin(session, resuming=Resuming(self.config.resumption))
        live.screen.forks = forks
        live.take("", opened)

    @contained
    def held(self, session: str, block: int, changes: Sequence[Change]) -> None:
        if resuming := self._resuming(session):
            resuming.held(block, changes)

    @contained
    def left(self, session: str, before: int, computed: int, *, sends: bool) -> None:
        if resuming := self._resuming(session):
            resuming.reports.left(before, computed, sends=sends)

    @contained
    def may_show(self, session: str, *, owner_lives: bool) -> None:
        if resuming := self._resuming(session):
            resuming.owner_known(lives=owner_lives)

    @contained
    def may_close(self, session: str) -> None:
        if resuming := self._resuming(session):
            resuming.log_known()

    @contained
    def open_epoch(self, session: str, epoch: int) -> None:
        if live := self.lives.get(session):
            live.screen.open_epoch(epoch)

    @contained
    def next_block(self, session: str) -> int | None:
        live = self.lives.get(session)
        return None if live is None else live.next_block

    @contained
    def log_reaches(self, session: str, first: int = 0) -> int | None:
        live = self.lives.get(session)
        if live is None:
            return first
        return live.sequencer.reach_from(first) if live.resuming is None else None

    @contained
    def horizon_s(self, session: str) -> float | None:
        live = self.lives.get(session)
        return None if live is None else live.horizon_s()

    @contained
    def is_stalled(self, session: str) -> bool | None:
        return self.stalls.stalled_s(session) is not None

    @contained
    def linked_again(self, session: str, worker: str, block: int) -> None:
        if live := self.lives.get(session):
            live.feed.send_again(worker, block)

    @contained
    def first_difference(self, session: str, attempt: str) -> int | None:
        live = self.lives.get(session)
        return None if live is None else live.tally.first_difference(attempt)

    @contained
    def moving(self, session: str, event: str, fields: dict[str, object]) -> None:
        live, report = self.lives.get(session), fields.get("report")
        if live is not None and event == "phase":
            self._tellings.phase(live, fields)
        elif live is not None and event == "result" and isinstance(report, MoveReport):
            self._tellings.result(live, report)

    @contained
    def failed_over(self, session: str, report: FailoverReport) -> None:
        if live := self.lives.get(session):
            live.audience.say(failover_of(report))

    @contained
    def lost(self, session: str, why: str) -> None:
        if recovery := self._recovery(session):
            recovery.lose()
        if live := self.lives.get(session):
            live.lose(why)

    # Behind these.

    def _opened(self, live: Live, worker: str, opened: Opened) -> None:
        live.take(worker, opened)
        environment = next((view.environment for view in self.fleet.workers() if view.name == worker), {})
        live.journal.begin(record_header(live, opened, environment))

    def _resuming(self, session: str) -> Resuming | None:
        live = self.lives.get(session)
        return None if live is None else live.resuming

    def _recovery(self, name: str) -> Recovery | None:
        return next((recovery for recovery in self.recoveries.values() if recovery.name == name), None)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the gateway failed", exc_info=error)
            self._metrics.failed("beside")
