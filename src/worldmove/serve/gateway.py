"""The gateway: one ``Live`` for each session, between the players and the workers' blocks.

To the controller it is a ``fleet.ports.Gateway``. What HTTP asks of it stands in ``serve.desk``.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import structlog

from worldmove.errors import LedgerError, UserError
from worldmove.fleet.ports import Fleet, Owner, Played
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.views import WorkerState
from worldmove.serve.live import Live
from worldmove.serve.live_config import LiveConfig, Start
from worldmove.serve.metrics import Metrics
from worldmove.serve.play_messages import Error, MovePhase, Workers
from worldmove.serve.player import CloseCode
from worldmove.serve.recover import Recovery
from worldmove.serve.results import MOVED, result_of, visitor_phase
from worldmove.serve.resuming import Resuming
from worldmove.serve.resumption import ResumptionConfig
from worldmove.serve.wording import owner_now, record_header, workers_now
from worldmove.worker.messages import BlockDone, Change, CheckDone, Failed, Left, Opened, StateDone

WITH_GAP = (Outcome.COMMITTED, Outcome.ABORTED)
"""Outcomes of moves in which the world stood still."""
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
        self._told: dict[str, Workers] = {}
        self._unwatched_since: dict[str, float] = {}

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
        except Exception:
            live.end("The gateway failed at this world; its log says more.")
            raise

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

    async def make_room(self) -> bool:
        """Close the session that nobody has watched for longest, if that is long. Says whether it did."""
        now = asyncio.get_running_loop().time()
        spare = [name for name, since in self._unwatched_since.items() if now - since >= self.config.spare_s]
        if not spare:
            return False
        session = min(spare, key=lambda name: self._unwatched_since[name])
        await self.fleet.close(session)
        log.info("closed: its room is needed, and nobody watched", session=session)
        self.forget(session, "Nobody watched this world, and another one needed its room.")
        return True

    def forget(self, session: str, why: str) -> None:
        """A session has ended: close its connections and play it no more. Does nothing for one not here."""
        if live := self.lives.pop(session, None):
            live.end(why)
            self._playing.pop(session).cancel()
            self._told.pop(session, None)
            self._unwatched_since.pop(session, None)

    async def settled(self, session: str, report: MoveReport) -> MoveReport:
        """Wait until a move's gap is over; return its report with the gap, and with where the session is by then."""
        live = self.lives.get(session)
        gap = None if live is None else live.standstill.gap
        if live is not None and gap is not None and gap.attempt == report.attempt and report.outcome in WITH_GAP:
            await live.standstill.over(gap, self.config.gap_within_s)
            report = replace(report, gap_s=gap.late_s)
        told = replace(report, runs_at=self._runs_at(session))
        self.fleet.amend(told)
        return told

    async def run(self) -> None:
        """Look after the sessions until cancelled: who works where, and which are kept for nobody."""
        while True:
            await asyncio.sleep(self.config.look_every_s)
            workers = self.fleet.workers()
            for session, live in tuple(self.lives.items()):
                message = workers_now(workers, self.fleet.owner(session))
                if self._told.get(session) != message:
                    self._told[session] = message
                    live.audience.say(message)
                live.controls.release_if_silent(self.config.silent_s)
                await self._expire(session, live)

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
        match message:
            case Left(session=name, block=block):
                self._recall(name, block)
            case BlockDone(session=name) if (recovery := self._recovery(name)) is not None:
                recovery.take(message)
            case BlockDone(session=name) | StateDone(session=name) | CheckDone(session=name) if name in self.lives:
                self.lives[name].take(worker, message)
            case Opened(session=name) if name in self.lives:
                self._opened(self.lives[name], worker, message)
            case Failed(session=name, code=code, message=why):
                log.warning("failed", session=name, worker=worker, code=code, why=why)
                if live := self.lives.get(name):
                    live.audience.say(Error(code=code, message=why))

    def owned(self, session: str, owner: Owner) -> None:
        if live := self.lives.get(session):
            live.owned(owner)
            live.audience.say(owner_now(owner, self.fleet.workers()))

    def holders(self, session: str, workers: Sequence[str]) -> None:
        if live := self.lives.get(session):
            live.hold(workers)

    def close_epoch(self, session: str, epoch: int) -> None:
        if live := self.lives.get(session):
            live.screen.close_epoch(epoch)

    def resume(self, session: str, opened: Opened) -> None:
        self._begin(session, resuming=Resuming(self.config.resumption)).take("", opened)

    def held(self, session: str, block: int, changes: Sequence[Change]) -> None:
        if resuming := self._resuming(session):
            resuming.held(block, changes)

    def left(self, session: str, before: int, computed: int) -> None:
        if resuming := self._resuming(session):
            resuming.reports.left(before, computed)

    def may_show(self, session: str, *, owner_lives: bool) -> None:
        if resuming := self._resuming(session):
            resuming.owner_known(lives=owner_lives)

    def may_close(self, session: str) -> None:
        if resuming := self._resuming(session):
            resuming.log_known()

    def open_epoch(self, session: str, epoch: int) -> None:
        if live := self.lives.get(session):
            live.screen.open_epoch(epoch)

    def next_block(self, session: str) -> int | None:
        live = self.lives.get(session)
        return None if live is None else live.next_block

    def log_reaches(self, session: str, first: int = 0) -> int | None:
        live = self.lives.get(session)
        if live is None:
            return first
        return live.sequencer.reach_from(first) if live.resuming is None else None

    def horizon_s(self, session: str) -> float | None:
        live = self.lives.get(session)
        return None if live is None else live.horizon_s()

    def linked_again(self, session: str, worker: str, block: int) -> None:
        if live := self.lives.get(session):
            live.feed.send_again(worker, block)

    def moving(self, session: str, event: str, fields: dict[str, object]) -> None:
        live = self.lives.get(session)
        if live is None:
            return
        if event == "phase" and fields["phase"] == "prepare" and (owner := self.fleet.owner(session)):
            live.standstill.begin(str(fields["attempt"]), owner.epoch)
        if event == "phase" and (phase := visitor_phase(str(fields["phase"]))):
            live.audience.say(MovePhase(attempt=str(fields["attempt"]), phase=phase, to=str(fields["destination"])))
        report = fields.get("report")
        if event == "result" and isinstance(report, MoveReport):
            live.standstill.ended(report.outcome)
            self.spawn(self._tell_result(live, report))

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

    def _runs_at(self, session: str) -> str | None:
        """Return who owns a session by the ledger's row, if that worker lives."""
        owner = self.fleet.owner(session)
        for view in self.fleet.workers():
            if owner is not None and (view.name, view.incarnation) == (owner.worker, owner.incarnation):
                return None if view.state in (WorkerState.GONE, WorkerState.SUSPECTED) else view.name
        return None

    async def _tell_result(self, live: Live, report: MoveReport) -> None:
        settled = await self.settled(live.name, report)
        if settled.gap_s is not None and settled.outcome is Outcome.COMMITTED:
            self._metrics.moved_with_gap(settled.gap_s)
        live.tally.moved(settled.outcome)
        live.journal.move(live.screen.next_block, settled)
        if settled.outcome is Outcome.COMMITTED:
            live.audience.say(MovePhase(attempt=settled.attempt, phase=MOVED, to=settled.destination))
        live.audience.say(result_of(settled, 1 / live.spec.frames_per_s))

    def _resuming(self, session: str) -> Resuming | None:
        live = self.lives.get(session)
        return None if live is None else live.resuming

    def _recall(self, session: str, block: BlockDone) -> None:
        """A block that an earlier server has shown: who comes back may lack it."""
        live = self.lives.get(session)
        if live is not None and live.resuming is not None:
            live.screen.recall(block)
            live.resuming.number(max((note.number for note in block.notes), default=0))

    def _recovery(self, name: str) -> Recovery | None:
        return next((recovery for recovery in self.recoveries.values() if recovery.name == name), None)

    async def _expire(self, session: str, live: Live) -> None:
        now = asyncio.get_running_loop().time()
        if live.watched:
            self._unwatched_since.pop(session, None)
        elif now - self._unwatched_since.setdefault(session, now) >= self.config.keep_s:
            with suppress(UserError, LedgerError):  # a move is under way, or nothing can be noted: at the next look
                await self.fleet.close(session)
                log.info("closed: nobody watched", session=session, seconds=self.config.keep_s)
                self.forget(session, "Nobody watched this world for a while.")

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the gateway failed", exc_info=error)
