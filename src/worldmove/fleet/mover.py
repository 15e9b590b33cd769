"""Moves as somebody asked for them: one at a time for a session, of one or more tries, each with one report."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from worldmove.errors import LedgerError, ManifestError, MoveRefused, UserError
from worldmove.fleet.attempts import Attempt
from worldmove.fleet.closing import closing
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.containment import Containment
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.forecast import Forecast
from worldmove.fleet.grants import is_granted
from worldmove.fleet.history import History
from worldmove.fleet.movable import require_movable
from worldmove.fleet.move_notices import MoveNotices, NoticePorts
from worldmove.fleet.moving import expectation, report, require, said_of_frames
from worldmove.fleet.planner import Planner
from worldmove.fleet.ports import Gateway
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.routes import Routes
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.fleet.tries import CancelAsked, Died, Ending, LinkedAgain, Plan, by_row, taken_back
from worldmove.fleet.whereabouts import Whereabouts
from worldmove.fleet.wish import Wish
from worldmove.fleet.worker_table import WorkerTable
from worldmove.fleet.workers import WorkerRecord, may_hold_shadow
from worldmove.move.admission import admit
from worldmove.move.affordable import Affordable, affordable
from worldmove.move.ledger_row import OpenedFor, Row
from worldmove.move.ledger_rules import next_attempt
from worldmove.move.messages import AnyMoveMessage, Prepared
from worldmove.move.strategy import Strategy
from worldmove.state.layout import Layout

NO_FURTHER = ("cancelled", "worker_gone", "reclaimed", "never_caught_up", "diverged", "internal")
"""Why a try was aborted after which no other is made."""


class MoverPorts(NoticePorts, Protocol):
    """What a move needs of the world outside."""

    @property
    def wall_clock(self) -> Callable[[], float]: ...

    @property
    def salt(self) -> Callable[[], str]: ...

    @property
    def nonce(self) -> Callable[[], bytes]: ...


class Mover:
    """Conducts moves and keeps their reports."""

    def __init__(
        self,
        *,
        config: FleetConfig,
        ports: MoverPorts,
        workers: WorkerTable,
        sessions: SessionTable,
        desk: LedgerDesk,
        gateway: Callable[[], Gateway],
        history: History,
        containment: Containment,
    ) -> None:
        self._config = config
        self._ports = ports
        self._workers = workers
        self._sessions = sessions
        self._desk = desk
        self._gateway = gateway
        self._history = history
        self._containment = containment
        self._notices = MoveNotices(ports, gateway)
        self._routes = Routes(transport=config.transport, quarantine_s=config.quarantine_s)
        self._planner = Planner(
            config=config,
            workers=workers,
            sessions=sessions,
            desk=desk,
            gateway=gateway,
            history=history,
            routes=self._routes,
            wall_clock=ports.wall_clock,
        )
        self._whereabouts = Whereabouts(desk=desk, workers=workers, owner_s=config.owner_s, copy_s=config.copy_s)

    async def move(
        self,
        session: str,
        to: str,
        *,
        damage: bool = False,
        strategy: Strategy | None = None,
        link: str | None = None,
    ) -> MoveReport:
        """Move a session and return how it ended."""
        wish = Wish(damage=damage, strategy=strategy, link=link)
        record = self._sessions.get(session)
        destination = self._workers.get(to) if record.urgent else self._workers.to_fill(to)
        row = require_movable(record, self._desk.row(session), to)
        conducted = record.conducted = asyncio.get_running_loop().create_future()
        record.cancelled, record.move_number, record.wish, record.expected = False, None, wish, None
        try:
            made = await self._tries(record, destination, row)
        except BaseException:
            conducted.set_result(None)
            raise
        finally:
            record.conducted = None
        conducted.set_result(made)
        record.moved(made)
        self._history.end(made, record.move_number)
        self._notices.ended(made)
        return made

    def plan(self, session: str, to: str, wish: Wish) -> Forecast:
        """Say what a move would be, and make none. Raises UserError as a move would."""
        return self._planner.plan(session, to, wish)

    async def cancel(self, session: str) -> MoveReport:
        """Give a session's move up, if that is still possible, and return how it ended. Raises UserError if none is."""
        record = self._sessions.get(session)
        made = None
        if record.conducted is not None:
            record.cancelled = True
            if record.attempt is not None:
                record.attempt.take(CancelAsked())
            made = await asyncio.shield(record.conducted)
        if made is None:
            raise UserError(f"No move of {session} is under way.", code="not_moving", status=409)
        return made

    def heard(self, message: AnyMoveMessage) -> None:
        """Hand a message to the try that it belongs to."""
        record = self._sessions.find(message.session)
        if record is not None and record.attempt is not None and record.attempt.plan.attempt == message.attempt:
            record.attempt.take(message)

    def got_on(self, attempts: tuple[str, ...]) -> None:
        """An end has said which tries it has got on with since it said so last."""
        for record in self._sessions.all() if attempts else ():
            if record.attempt is not None and record.attempt.plan.attempt in attempts:
                record.attempt.num_steps += 1

    def num_steps(self, session: str) -> int:
        """Return how far a session's try under way has got, in no unit; 0 where there is none."""
        record = self._sessions.find(session)
        return 0 if record is None or record.attempt is None else record.attempt.num_steps

    def row_changed(self, row: Row) -> None:
        """Tell the try under way of its session's row."""
        record = self._sessions.find(row.session)
        if record is not None and record.attempt is not None:
            record.attempt.row_changed(row)

    def died(self, worker: str) -> None:
        """Tell every try that concerns it of a worker's death."""
        self._tell_tries(worker, Died(worker=worker))

    def linked_again(self, worker: str) -> None:
        """Tell every try that concerns it that a worker has made a new link."""
        self._tell_tries(worker, LinkedAgain(worker=worker))

    async def close_forgotten(self) -> None:
        """Close every attempt that nobody conducts and whose destination holds nothing to commit.

        Both ends had given it up, and asked once, while the ledger was silent: no move could begin after it.
        """
        for record in self._sessions.all():
            row = self._desk.row(record.name)
            opened = None if row is None or record.attempt is not None else row.attempt
            if row is not None and opened is not None and not self._may_commit(record.name, opened):
                await self._desk.ask(closing(record.name, opened.attempt, row.epoch))

    def _may_commit(self, session: str, opened: OpenedFor) -> bool:
        """Whether an attempt's destination may hold a shadow, and so asks the ledger itself."""
        worker = self._workers.find(opened.destination)
        if worker is None or worker.incarnation != opened.incarnation:
            return False
        return may_hold_shadow(worker, session)

    def _tell_tries(self, worker: str, event: Died | LinkedAgain) -> None:
        for record in self._sessions.all():
            if record.attempt is None:
                continue
            plan = record.attempt.plan
            if worker in (plan.source.name, plan.destination.name):
                record.attempt.take(event)

    async def _tries(self, record: SessionRecord, destination: WorkerRecord, row: Row) -> MoveReport:
        """Try until it is moved, or no further try would help, or there were enough of them."""
        loop = asyncio.get_running_loop()
        begun, started_at = loop.time(), self._ports.wall_clock()
        source = self._workers.get(row.owner)
        await self._desk.check()
        num_tries = self._config.damaged_tries if record.wish.damage else self._config.tries
        tries, again = 0, True
        while again:
            tries += 1
            await self._whereabouts.until_free(destination, record)  # also that of the try before
            plan = self._plan(record, source, destination, row)
            ending = await self._noted_try(record, plan, started_at)
            self._ended_try(plan, ending)
            again = tries < num_tries and ending.outcome is Outcome.ABORTED and ending.reason not in NO_FURTHER
        lives_at = await self._whereabouts.living_owner(record.name)
        after = self._desk.row(record.name)
        granted = self._is_granted(record, after)
        missing = self._whereabouts.missing(after)
        ending = by_row(plan, ending, after, granted=granted, missing=missing, raised=record.raised)
        took_s = loop.time() - begun
        made = report(plan, ending, epoch=(after or row).epoch, tries=tries, started_at=started_at, took_s=took_s)
        return replace(made, runs_at=lives_at, expected=expectation(record.expected))

    def _is_granted(self, record: SessionRecord, row: Row | None) -> bool:
        """Whether the last try's grant stands. Rows are noted also once no try listens to them any more."""
        note = None if record.move_number is None else self._history.unfinished(record.move_number)
        return note is not None and row is not None and is_granted(note, row, before=note.granted)

    def _plan(self, record: SessionRecord, source: WorkerRecord, destination: WorkerRecord, row: Row) -> Plan:
        """Return the next try: its id is newer than that of any before, also of one that the row knows nothing of."""
        latest = self._desk.row(record.name) or row
        record.tried = next_attempt(latest, self._ports.salt(), tried=record.tried)
        forecast = self._planner.forecast(record, source, destination, record.wish)
        return Plan(
            session=record.name,
            epoch=row.epoch,
            attempt=record.tried,
            nonce=self._ports.nonce(),
            transport=forecast.transport,
            strategy=forecast.choice.strategy,
            source=source,
            destination=destination,
            is_protected=record.protect_every > 0,
        )

    def _ended_try(self, plan: Plan, ending: Ending) -> None:
        """Tell of a try's end. A path that lied by itself, and not for a trial, is not taken for a while."""
        self._notices.ended_try(plan, ending)
        if self._routes.ended(plan, ending, asyncio.get_running_loop().time()):
            self._notices.quarantined(plan, self._config.quarantine_s)

    async def _noted_try(self, record: SessionRecord, plan: Plan, started_at: float) -> Ending:
        """Note a try, so that a later server knows of it, and conduct it."""
        try:
            record.move_number = self._history.begin(plan, started_at, record.move_number)
        except LedgerError as error:
            return Ending(outcome=Outcome.REFUSED, reason="ledger", detail=str(error))
        return await self._one_try(record, plan)

    async def _one_try(self, record: SessionRecord, plan: Plan) -> Ending:
        attempt = Attempt(
            plan,
            config=self._config,
            desk=self._desk,
            send=self._workers.send,
            admit=self._admit,
            on_phase=self._notices.phase,
        )
        record.attempt, record.raised = attempt, None
        if record.cancelled:  # between two tries, or before the first
            attempt.take(CancelAsked())
        try:
            with self._containment.of("move", plan.session):
                return self._explained(record, plan, await attempt.run())
            return await attempt.break_off()  # its conduct has failed
        finally:
            record.attempt = None

    def _explained(self, record: SessionRecord, plan: Plan, ending: Ending) -> Ending:
        """Where a follower came out otherwise, say of which block it showed first; where an engine raised, what."""
        row = self._desk.row(plan.session)
        if ending.reason == "reclaimed" and row is not None:
            return replace(ending, detail=taken_back(plan, row, record.raised))
        if ending.reason != "diverged":
            return ending
        block = self._gateway().first_difference(plan.session, plan.attempt)
        return replace(ending, detail=f"{ending.detail}; {said_of_frames(block)}")

    def _admit(self, plan: Plan, prepared: Prepared) -> Affordable | None:
        """Return what it may leave for the end (``move.affordable``). Raise MoveRefused if it is not to be made."""
        record = self._sessions.get(plan.session)
        try:
            num_bytes = sum(Layout.from_bytes(prepared.layout).storages)
        except ManifestError as error:
            why = f"{plan.source.name} has answered what is no answer: it describes no state ({error})"
            raise MoveRefused("bad_answer", why) from error
        found = self._planner.measured(record, plan.source, plan.destination, plan.transport, num_bytes)
        verdict = record.expected = admit(found[plan.strategy], plan.strategy)
        self._notices.expected(plan, verdict)
        asked_for = plan.strategy.begins_early and record.wish.strategy is not None and verdict.reason == "not_measured"
        is_bound = self._config.enforce_horizon and not (asked_for or record.urgent)
        if is_bound or self._desk.failure is not None:
            require(verdict, found[plan.strategy])
        return affordable(verdict, found[plan.strategy]) if is_bound else None
