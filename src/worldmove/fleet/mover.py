"""Moves as somebody asked for them: one at a time for a session, of one or more tries, each with one report."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from worldmove.errors import LedgerError, UserError
from worldmove.fleet.attempts import Attempt
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.counters import Counters
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.history import History
from worldmove.fleet.moving import CORRUPTING, path_rate, report, require, verdict_of
from worldmove.fleet.ports import Gateway
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.fleet.tries import CancelAsked, Died, Ending, LinkedAgain, Plan, by_row
from worldmove.fleet.workers import WorkerRecord, WorkerTable
from worldmove.move.ledger_row import Row
from worldmove.move.ledger_rules import next_attempt
from worldmove.move.messages import AnyMoveMessage, Prepared
from worldmove.move.strategy import pick

LOOK_S = 0.05
"""Between two looks at a row whose owner is gone."""


class MoverPorts(Protocol):
    """What a move needs of the world outside."""

    @property
    def wall_clock(self) -> Callable[[], float]: ...

    @property
    def salt(self) -> Callable[[], str]: ...

    @property
    def nonce(self) -> Callable[[], bytes]: ...

    @property
    def counters(self) -> Counters: ...

    @property
    def log(self) -> Callable[[str, dict[str, object]], None]: ...


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
    ) -> None:
        self._config = config
        self._ports = ports
        self._workers = workers
        self._sessions = sessions
        self._desk = desk
        self._gateway = gateway
        self._history = history

    async def move(self, session: str, to: str, *, damage: bool) -> MoveReport:
        """Move a session and return how it ended."""
        record, destination, row = self._check(session, to)
        conducted = record.conducted = asyncio.get_running_loop().create_future()
        record.cancelled, record.move_number = False, None
        try:
            made = await self._tries(record, destination, row, damage=damage)
        except BaseException:
            conducted.set_result(None)
            raise
        finally:
            record.conducted = None
        conducted.set_result(made)
        self._history.end(made, record.move_number)
        self._ports.counters.moved(made)
        self._log("move_ended", made)
        self._gateway().moving(session, "result", {"report": made})
        return made

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

    def _tell_tries(self, worker: str, event: Died | LinkedAgain) -> None:
        for record in self._sessions.all():
            if record.attempt is None:
                continue
            plan = record.attempt.plan
            if worker in (plan.source.name, plan.destination.name):
                record.attempt.take(event)

    def _check(self, session: str, to: str) -> tuple[SessionRecord, WorkerRecord, Row]:
        """Raise UserError for a move that makes no sense."""
        record = self._sessions.get(session)
        destination = self._workers.get(to)
        row = self._desk.row(session)
        if record.throwaway or row is None:
            raise UserError(
                f"{session} is a throw-away copy and is not moved; move the session that it was made of.",
                code="throwaway",
                status=409,
            )
        if row.lost:
            raise UserError(f"The session {session} is lost; open a new one.", code="lost", status=410)
        if record.closing:
            raise UserError(f"The session {session} is being closed; open a new one.", code="closing", status=409)
        if record.resuming:
            why = f"The server was started again, and not every holder of {session} has reported; try again soon."
            raise UserError(why, code="resuming", status=409)
        if record.moving or row.attempt is not None:
            raise UserError(
                f"Another move of {session} is under way; try again when it has ended.", code="moving", status=409
            )
        if row.owner == to:
            raise UserError(
                f"The session {session} is on {to} already; name another worker.", code="already_there", status=409
            )
        return record, destination, row

    async def _tries(self, record: SessionRecord, destination: WorkerRecord, row: Row, *, damage: bool) -> MoveReport:
        loop = asyncio.get_running_loop()
        begun, started_at = loop.time(), self._ports.wall_clock()
        num_tries = self._config.damaged_tries if damage else self._config.tries
        transport = (CORRUPTING if damage else "") + self._config.transport
        source = self._workers.get(row.owner)
        await self._until_no_copy(destination, record.name)
        await self._desk.check()
        tries = 0
        while True:
            tries += 1
            latest = self._desk.row(record.name) or row
            record.tried = next_attempt(latest, self._ports.salt(), tried=record.tried)
            plan = Plan(
                session=record.name,
                epoch=row.epoch,
                attempt=record.tried,
                nonce=self._ports.nonce(),
                transport=transport,
                strategy=pick(),
                source=source,
                destination=destination,
            )
            ending = await self._noted_try(record, plan, started_at)
            self._note_damage(plan, ending)
            given_up = ending.outcome is not Outcome.ABORTED or ending.reason in ("cancelled", "worker_gone")
            if given_up or tries == num_tries:
                break
        lives_at = await self._living_owner(record.name)
        after = self._desk.row(record.name)
        ending = by_row(plan, ending, after, missing=self._missing(after))
        took_s = loop.time() - begun
        made = report(plan, ending, epoch=(after or row).epoch, tries=tries, started_at=started_at, took_s=took_s)
        return replace(made, runs_at=lives_at)

    async def _living_owner(self, session: str) -> str | None:
        """Return who owns a session by the row, waiting a while where that worker is missing; None if it still is."""
        try:
            async with asyncio.timeout(self._config.owner_s):
                while (row := self._desk.row(session)) is not None and not row.lost:
                    if not self._desk.owner_is_missing(row):
                        return row.owner
                    await self._workers.changed(LOOK_S)
        except TimeoutError:
            return None
        return None

    def _missing(self, row: Row | None) -> str:
        """Say in a word why a session's owner does not play it, where that is so."""
        if row is None or not self._desk.owner_is_missing(row):
            return ""
        return "worker_gone" if self._desk.owner_is_gone(row) else "silent"

    async def _until_no_copy(self, worker: WorkerRecord, session: str) -> None:
        """Wait a while for a worker that still holds an older copy: its check ends with the next blocks."""
        try:
            async with asyncio.timeout(self._config.copy_s):
                while any(copy.session == session for copy in worker.copies):
                    await self._workers.changed(self._config.copy_s)
        except TimeoutError:
            return  # the worker itself will say what it holds

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
            on_phase=self._phase,
        )
        record.attempt = attempt
        if record.cancelled:  # between two tries, or before the first
            attempt.take(CancelAsked())
        try:
            return await attempt.run()
        finally:
            record.attempt = None

    def _admit(self, plan: Plan, prepared: Prepared) -> None:
        healthy = self._desk.failure is None
        horizon_s = self._gateway().horizon_s(plan.session)
        carried = path_rate(plan, self._history.reports(), self._ports.wall_clock())
        verdict = verdict_of(plan, prepared, horizon_s, carried, ledger_healthy=healthy)
        self._ports.counters.admitted(verdict)
        fields: dict[str, object] = {"session": plan.session, "attempt": plan.attempt, "epoch": plan.epoch}
        fields |= {"reason": verdict.reason, "pause_s": verdict.expected_s, "horizon_s": verdict.horizon_s}
        self._ports.log("move_expected", fields)
        if self._config.enforce_horizon or not healthy:
            require(verdict)

    def _phase(self, plan: Plan, phase: str) -> None:
        fields: dict[str, object] = {
            "attempt": plan.attempt,
            "phase": phase,
            "source": plan.source.name,
            "destination": plan.destination.name,
        }
        self._ports.log("move_phase", {"session": plan.session, "epoch": plan.epoch, **fields})
        self._gateway().moving(plan.session, "phase", fields)

    def _note_damage(self, plan: Plan, ending: Ending) -> None:
        """Say of a path that brought other bytes than were sent which it was, and what it damaged."""
        if ending.reason == "mismatch":
            fields = {"session": plan.session, "attempt": plan.attempt, "epoch": plan.epoch, "detail": ending.detail}
            ends = {"source": plan.source.name, "destination": plan.destination.name, "path": plan.transport}
            self._ports.log("state_arrived_damaged", fields | ends)

    def _log(self, event: str, made: MoveReport) -> None:
        fields: dict[str, object] = {"session": made.session, "attempt": made.attempt, "epoch": made.epoch}
        fields |= {"outcome": made.outcome.value, "reason": made.reason, "pause_s": made.pause_s, "tries": made.tries}
        self._ports.log(event, fields)
