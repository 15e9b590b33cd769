"""What an earlier server has left: its sessions go on, what it was ending is ended, its moves get an outcome.

Where that fails as nobody foresaw it is tried again: else the session would wait, and never be lost nor go on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from worldmove.errors import LedgerError
from worldmove.fleet.containment import AGAIN_S, Containment
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.history import History
from worldmove.fleet.notes import Notes, SessionNote
from worldmove.fleet.ports import Gateway
from worldmove.fleet.resumption import Resumption
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.fleet.unfinished import Unfinished
from worldmove.fleet.worker_table import WorkerTable
from worldmove.move.ledger_row import Row
from worldmove.worker.background import Background
from worldmove.worker.messages import Opened

Log = Callable[[str, dict[str, object]], None]
NO_COPY = "no copy was left when the server was started again"


class Inheritance:
    """Takes up a ledger's rows and notes, and leaves none at a clean end."""

    def __init__(
        self,
        *,
        workers: WorkerTable,
        sessions: SessionTable,
        desk: LedgerDesk,
        notes: Notes,
        history: History,
        gateway: Callable[[], Gateway],
        background: Background,
        containment: Containment,
        on_resumed: Callable[[], None],
        log: Log,
    ) -> None:
        self._sessions = sessions
        self._desk = desk
        self._notes = notes
        self._history = history
        self._gateway = gateway
        self._background = background
        self._containment = containment
        self._on_resumed = on_resumed
        self._log = log
        self._resumption = Resumption(workers=workers, desk=desk, gateway=gateway)
        self._unfinished = Unfinished(workers=workers, desk=desk, history=history)

    async def take_up(self, rows: Sequence[Row]) -> None:
        """Go on with every session that has a row, and find out about moves. Raises LedgerError."""
        moves, notes = self._history.load(), self._notes.sessions()
        for row in rows:
            self._history.row_changed(row)
        self._history.keep_marks()
        with_row = [row.session for row in rows]
        for name in [name for name in notes if name not in with_row]:
            self._notes.drop_session(name)  # it was being opened, and nobody was told its name
        for row in rows:
            note = notes.get(row.session)
            if note is None or note.closing:
                await self._forget(row.session)
            else:
                self._take_up(row, note)
        for move in moves:
            settled = partial(self._unfinished.settle, move)
            self._background.start(f"settle {move.attempt}", self._until_done("settle", move.session, settled))

    async def forget(self) -> None:
        """The workers were ended in order, and every world with them: leave no session to a later server."""
        try:
            for record in self._sessions.all():
                if not record.throwaway:
                    await self._forget(record.name)
        except LedgerError as error:
            self._log("ledger_silent", {"session": "", "why": str(error)})

    async def _forget(self, session: str) -> None:
        await self._desk.forget(session)
        self._notes.drop_session(session)

    def _take_up(self, row: Row, note: SessionNote) -> None:
        record = self._sessions.add(record_of(row, note))
        opened = Opened(
            session=row.session,
            epoch=row.epoch,
            num_bytes=note.num_bytes,
            num_leaves=note.num_leaves,
            state_digest=note.state_digest,
        )
        record.opened = opened
        record.answer.set_result(opened)
        self._gateway().resume(row.session, opened, note.forks)
        said: dict[str, object] = {"session": row.session, "worker": row.owner, "epoch": row.epoch, "lost": row.lost}
        self._log("session_taken_up", said)
        if row.lost:
            self._gateway().lost(row.session, NO_COPY)
        else:
            resumed = partial(self._resume, record)
            self._background.start(f"resume {row.session}", self._until_done("resume", row.session, resumed))

    async def _until_done(self, task: str, session: str, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            with self._containment.of(task, session):
                return await work()
            await asyncio.sleep(AGAIN_S)

    async def _resume(self, record: SessionRecord) -> None:
        row = self._desk.row(record.name)
        if row is not None:
            await self._unfinished.close(row)
        await self._resumption.resume(record.name, record.noted, record.is_resumed_after)
        record.resuming = False
        self._on_resumed()


def record_of(row: Row, note: SessionNote) -> SessionRecord:
    """Return the record of a session that an earlier server opened."""
    record = SessionRecord(
        name=row.session, seed=note.seed, worker=row.owner, incarnation=row.incarnation, throwaway=False
    )
    record.noted, record.resuming, record.protect_every = note.holders, True, note.protect_every
    record.forks = note.forks
    return record
