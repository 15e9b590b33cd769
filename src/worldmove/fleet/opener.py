"""Beginning and ending sessions, and throw-away copies beside them."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from worldmove.errors import LedgerError, UserError
from worldmove.fleet.alike import alike
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.getting_on import while_it_gets_on
from worldmove.fleet.notes import Notes
from worldmove.fleet.ports import Beginning, Gateway, Owner
from worldmove.fleet.served import require_served, served
from worldmove.fleet.sessions import SessionRecord, SessionTable, view
from worldmove.fleet.tries import Raised
from worldmove.fleet.views import SessionView
from worldmove.fleet.worker_table import WorkerTable
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_row import Row
from worldmove.state.environment import Environment
from worldmove.worker.messages import Close, Failed, Freed, Hello, Open, Opened

FIRST_EPOCH = 1
STATUSES = {"bad_file": 422}
"""Of answers that are no."""


class Opener:
    """Places, opens and closes."""

    def __init__(
        self,
        *,
        config: FleetConfig,
        workers: WorkerTable,
        sessions: SessionTable,
        desk: LedgerDesk,
        notes: Notes,
        gateway: Callable[[], Gateway],
        salt: Callable[[], str],
    ) -> None:
        """``salt`` makes names that no earlier server has given."""
        self._config = config
        self._workers = workers
        self._sessions = sessions
        self._desk = desk
        self._notes = notes
        self._gateway = gateway
        self._salt = salt

    async def open(
        self,
        session: str,
        seed: int,
        on: str | None,
        beginning: Beginning | None = None,
        *,
        protect_every: int | None = None,
    ) -> SessionView:
        """Begin a world, or go on with a saved one; return once it is open and its row is written."""
        worker = self._roomiest(beginning) if on is None else self._workers.to_fill(on)
        require_served(worker, self._config.engine)
        if beginning is not None:
            require_equal(beginning, worker)
        record = self._begin(session, seed, worker, throwaway=False)
        record.protect_every = self._config.protect_every if protect_every is None else protect_every
        saved = "" if beginning is None else beginning.path
        row = Row(session=session, owner=worker.name, incarnation=worker.incarnation, epoch=FIRST_EPOCH)
        record.noted = ((worker.name, worker.incarnation),)
        created = False
        try:
            await self._opened(record, worker, Open(session=session, epoch=FIRST_EPOCH, seed=seed, saved=saved))
            self._notes.keep_session(self._sessions.note_of(record))
            created = await self._desk.create(row)
        finally:
            if not created:
                self._workers.send(worker.name, Close(session=session))
                self._sessions.drop(session)
                with suppress(LedgerError):  # a row without a note is forgotten by the next server
                    self._notes.drop_session(session)
        if not created:
            raise UserError(f"The ledger has a session {session} already.", code="name_taken", status=409)
        return view(record, row)

    def _roomiest(self, beginning: Beginning | None) -> WorkerRecord:
        """Return the worker with most room: of those with this server's engine, and alike to a saved world's, if any.

        Raises UserError if none has any.
        """
        roomiest = self._workers.with_most_room()
        answering = served(self._workers.answering(), self._config.engine)
        able = answering if beginning is None else alike(answering, beginning.environment)
        return max(
            self._workers.sound(worker for worker in able if worker.room > 0),
            key=lambda worker: worker.room,
            default=roomiest,
        )

    async def open_throwaway(self, session: str, picture: bytes, seed: int) -> SessionView:
        """Begin a world from one picture beside a session."""
        self._sessions.get(session)
        worker = self._workers.with_fewest_players(lambda record: bool(served([record], self._config.engine)))
        require_served(worker, self._config.engine)
        record = self._begin(self._sessions.next_throwaway(session, self._salt), seed, worker, throwaway=True)
        is_open = False
        try:
            await self._opened(record, worker, Open(session=record.name, epoch=0, seed=seed, picture=picture))
            is_open = True
        finally:
            if not is_open:  # it may have come about all the same
                self._workers.send(worker.name, Close(session=record.name))
                self._sessions.drop(record.name)
        owner = Owner(worker=worker.name, incarnation=worker.incarnation, epoch=0)
        self._gateway().owned(record.name, owner)
        return view(record, None)

    async def close(self, session: str) -> None:
        """End a session everywhere, and forget it once no worker holds a copy (or does not answer)."""
        record = self._sessions.get(session)
        if record.moving:
            raise UserError(
                f"The session {session} is moving; close it when the move has ended.", code="moving", status=409
            )
        if self._desk.row(session) is None and not (record.throwaway and record.opened):
            why = f"The session {session} is being opened; close it when that has ended."
            raise UserError(why, code="busy", status=409)
        if not record.throwaway:  # a later server ends what this one has begun to
            self._notes.keep_session(self._sessions.note_of(record, closing=True))
        record.closing = True
        for worker in self._workers.holding(session):
            self._workers.send(worker.name, Close(session=session))
        await self._until_freed(session)
        self._sessions.drop(session)
        if record.throwaway:
            return
        with suppress(LedgerError):  # it is noted as closing: a later server forgets it
            await self._desk.forget(session)
            self._notes.drop_session(session)

    async def _until_freed(self, session: str) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.close_s
        while self._workers.holding(session) and loop.time() < deadline:
            await self._workers.changed(deadline - loop.time())

    def heard(self, worker: WorkerRecord, message: Opened | Failed | Freed) -> None:
        """Take a worker's word about an opening."""
        record = self._sessions.find(message.session)
        if record is None or isinstance(message, Freed):
            return
        if record.answer.done():
            if isinstance(message, Failed):
                self._failed(record, worker, message)
            return
        if (record.worker, record.incarnation) == (worker.name, worker.incarnation):
            record.answer.set_result(message)

    def died(self, worker: str, incarnation: int) -> None:
        """A worker is dead: openings there fail, and its throw-away copies are over."""
        for record in self._sessions.all():
            if (record.worker, record.incarnation) != (worker, incarnation):
                continue
            if not record.answer.done():
                why = f"{worker} ended while the session was opened"
                record.answer.set_result(Failed(session=record.name, code="worker_gone", message=why))
            elif record.throwaway:
                self._sessions.drop(record.name)
                self._gateway().lost(record.name, f"{worker} ended")

    def linked_again(self, hello: Hello) -> None:
        """A worker has made a new link: an opening that it is not at was lost with the old one, or the word of it."""
        at_it = [copy.session for copy in hello.copies if copy.phase not in ("live", "throwaway")]
        for record in self._sessions.all():
            here = (record.worker, record.incarnation) == (hello.worker, hello.incarnation)
            if here and not record.answer.done() and record.name not in at_it:
                why = f"{hello.worker} has made a new link before it had answered; try again"
                record.answer.set_result(Failed(session=record.name, code="link_lost", message=why))

    def _failed(self, record: SessionRecord, worker: WorkerRecord, failed: Failed) -> None:
        """An engine has raised: a throw-away copy is over, and of any other session it is known why it has no owner."""
        if record.throwaway and (record.worker, record.incarnation) != (worker.name, worker.incarnation):
            return  # it is played elsewhere
        record.failed_why = f"{worker.name}: {failed.message}"
        record.raised = Raised(worker=worker.name, incarnation=worker.incarnation, why=failed.message)
        if record.throwaway:
            self._sessions.drop(record.name)
            self._gateway().lost(record.name, record.failed_why)

    def _begin(self, session: str, seed: int, worker: WorkerRecord, *, throwaway: bool) -> SessionRecord:
        return self._sessions.add(
            SessionRecord(
                name=session, seed=seed, worker=worker.name, incarnation=worker.incarnation, throwaway=throwaway
            )
        )

    async def _opened(self, record: SessionRecord, worker: WorkerRecord, asked: Open) -> None:
        """Send an Open and wait for its answer. Raises UserError, and then the session is not there.

        There may be any number before it: an engine makes one session at a time.
        """
        self._workers.send(record.worker, asked)
        try:
            async with while_it_gets_on(lambda: worker.num_done, self._config.open_s):
                answer = await record.answer
        except TimeoutError:
            why = f"{record.worker} has got nothing done for {self._config.open_s:.0f} s"
            answer = Failed(session=record.name, code="silent", message=why)
        finally:
            worker.opening.pop(record.name, None)
        if isinstance(answer, Failed):
            self._sessions.drop(record.name)
            raise UserError(
                f"The session {record.name} was not opened: {answer.message}",
                code=answer.code,
                status=STATUSES.get(answer.code, 409),
            )
        record.opened = answer


def require_equal(beginning: Beginning, worker: WorkerRecord) -> None:
    """Raise UserError, naming the fields, unless a worker computes as the one that a session was saved by."""
    here = Environment(fields=worker.hello.environment if worker.hello else {})
    differences = here.difference(Environment(fields=beginning.environment))
    if differences:
        said = "; ".join(str(difference) for difference in differences[:8])
        more = f"; and {len(differences) - 8} more" if len(differences) > 8 else ""
        why = f"Not opened: {worker.name} would not go on as the saved world would have. {said}{more}."
        raise UserError(why, code="environment", status=409)
