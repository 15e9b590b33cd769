"""The gateway: one ``Live`` for each session, between the players and the workers' blocks.

To the controller it is a ``fleet.ports.Gateway``. What HTTP asks of it stands in ``serve.desk``.
"""

from collections.abc import Sequence

import structlog

from worldmove.fleet.failover_report import FailoverReport
from worldmove.fleet.ports import Fleet, Owner, Played
from worldmove.fleet.reports import MoveReport
from worldmove.serve.containment import contained
from worldmove.serve.gateway_config import GatewayConfig
from worldmove.serve.live import Live
from worldmove.serve.lives import Lives
from worldmove.serve.metrics import Metrics
from worldmove.serve.play_messages import Error
from worldmove.serve.recover import Recovery
from worldmove.serve.results import failover_of
from worldmove.serve.resuming import Resuming
from worldmove.serve.tellings import Tellings
from worldmove.serve.wording import environment_of, owner_now, record_header
from worldmove.worker.messages import BlockDone, Change, CheckDone, Failed, Followed, Left, Opened, Replayed, StateDone

log = structlog.get_logger()


class Gateway(Lives):
    """What is said of one server's sessions, and asked about them, goes to the one that it concerns."""

    def __init__(self, *, fleet: Fleet, config: GatewayConfig, metrics: Metrics) -> None:
        super().__init__(fleet=fleet, config=config, metrics=metrics)
        self.recoveries: dict[str, Recovery] = {}
        """By session: its throw-away copy."""
        self._tellings = Tellings(
            lives=self.lives,
            fleet=fleet,
            metrics=metrics,
            gap_within_s=config.gap_within_s,
            spawn=self.spawn,
        )

    async def settled(self, session: str, report: MoveReport) -> MoveReport:
        """Wait until a move's gap is over; return its report with the gap, and with where the session is by then."""
        return await self._tellings.settled(session, report)

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
        live.journal.begin(record_header(live, opened, environment_of(worker, self.fleet.workers())))

    def _resuming(self, session: str) -> Resuming | None:
        live = self.lives.get(session)
        return None if live is None else live.resuming

    def _recovery(self, name: str) -> Recovery | None:
        return next((recovery for recovery in self.recoveries.values() if recovery.name == name), None)
