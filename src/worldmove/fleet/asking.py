"""Questions to workers about a session's state, by number: each has one answer, or the asker is told why not."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from worldmove.errors import UserError
from worldmove.fleet.config import FleetConfig
from worldmove.fleet.desk import LedgerDesk
from worldmove.fleet.getting_on import while_it_gets_on
from worldmove.fleet.sessions import SessionTable
from worldmove.fleet.worker_table import WorkerTable
from worldmove.fleet.workers import WorkerRecord
from worldmove.worker.messages import (
    Describe,
    Described,
    Keep,
    Kept,
    NotDone,
    Save,
    Saved,
    SnapshotTaken,
    TakeSnapshot,
)

NUMBER_BYTES = 6
STATUSES = {"no_space": 507, "cannot_write": 507, "silent": 503}
"""Of answers that are no."""
Answers = Described | Saved | SnapshotTaken | Kept | NotDone
AnswerT = TypeVar("AnswerT", Described, Saved, SnapshotTaken, Kept)


def bad_answer(worker: str, said: str) -> UserError:
    """Return the error of a worker that answers what is no answer to what it was asked."""
    return UserError(f"{worker} has answered what is no answer: {said}.", code="bad_answer", status=502)


def first_number(nonce: bytes) -> int:
    """Return where a server's questions begin: so far from another's that no two have one number."""
    return 1 + int.from_bytes(nonce[-NUMBER_BYTES:], "big")


@dataclass(slots=True, kw_only=True)
class _Question:
    """One that waits for its answer."""

    worker: str
    incarnation: int
    session: str
    kind: type[Describe | Save | TakeSnapshot | Keep]
    may_go_on: bool
    """Where nobody waits for its answer any more, the worker may be at it all the same."""
    answer: "asyncio.Future[Any]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Asking:
    """Asks owners, and waits."""

    def __init__(
        self,
        *,
        config: FleetConfig,
        workers: WorkerTable,
        sessions: SessionTable,
        desk: LedgerDesk,
        begins_at: int = 1,
    ) -> None:
        """``begins_at``: the first question's number. What an earlier server has asked may still be answered."""
        self._config = config
        self._workers = workers
        self._sessions = sessions
        self._desk = desk
        self._asked = begins_at - 1
        self._waiting: dict[int, _Question] = {}
        self._given_up: dict[int, _Question] = {}
        """Snapshots that were to be kept, and whose keepers have not answered in time, nor since."""

    async def describe(self, session: str) -> Described:
        """Return a session's leaves. Raises UserError: unknown, lost, moving, silent."""
        return await self._of_owner(Describe(session=session, request=self.number()), Described)

    async def save(self, session: str, path: str) -> Saved:
        """Have a session's state written to a new file. Raises UserError: unknown, lost, moving, silent, no space."""
        return await self._of_owner(Save(session=session, request=self.number(), path=path), Saved)

    def number(self) -> int:
        """Return the number of the next question."""
        self._asked += 1
        return self._asked

    async def of_worker(
        self, worker: WorkerRecord, asked: TakeSnapshot | Keep, kind: type[AnswerT], within_s: float
    ) -> AnswerT:
        """Ask a worker for what it is to do for a snapshot. Raises UserError with the answer's code, or 'silent'."""
        return await self._ask(worker, asked, kind, within_s)

    def heard(self, worker: WorkerRecord, answer: Answers) -> None:
        """Take an answer; one that nobody waits for any more is dropped, and one about another session."""
        question = self._waiting.get(answer.request) or self._given_up.get(answer.request)
        if question is None or answer.session != question.session:
            return
        if (question.worker, question.incarnation) != (worker.name, worker.incarnation):
            return
        question.may_go_on = False
        self._given_up.pop(answer.request, None)
        if not question.answer.done():
            question.answer.set_result(answer)

    def still_at(self, session: str) -> frozenset[str]:
        """Return the workers that may still be at a snapshot of a session for which nobody waits any more."""
        return frozenset(question.worker for question in self._given_up.values() if question.session == session)

    def linked_again(self, worker: str) -> None:
        """A worker has made a new link: a question or its answer may be lost with the old one, and does not come again.

        What it had begun for a snapshot it has given up.
        """
        why = f"{worker} has made a new link before it had answered"
        self._end(lambda question: question.worker == worker, "link_lost", why, is_over=True)

    def died(self, worker: str, incarnation: int) -> None:
        """A worker is dead: what it was asked has no answer."""
        why = f"{worker} ended before it had answered; try again."
        ended = (worker, incarnation)
        self._end(lambda question: (question.worker, question.incarnation) == ended, "worker_gone", why, is_over=True)

    def suspected(self, worker: str) -> None:
        """A worker does not answer: whoever waits asks another, or the session's next owner."""
        self._end(lambda question: question.worker == worker, "silent", f"{worker} does not answer; try again.")

    def ended(self, session: str) -> None:
        """A session is closed or lost: who was asked about it may have let it go without another word."""
        why = f"The session {session} has ended."
        self._end(lambda question: question.session == session, "closing", why, is_over=True)

    def owned(self, session: str, owner: str) -> None:
        """A session is played by this worker, perhaps as of now: it keeps no snapshot, and nobody else takes one."""

        def is_meant(question: _Question) -> bool:
            is_owners = question.worker == owner
            is_of_use = {Keep: not is_owners, TakeSnapshot: is_owners}.get(question.kind, True)
            return question.session == session and not is_of_use

        self._end(is_meant, "moving", f"The session {session} is on {owner} by now.")

    def _end(self, is_meant: Callable[[_Question], bool], code: str, why: str, *, is_over: bool = False) -> None:
        """Answer in a worker's place. ``is_over``: it is not at it any more, or whether it is will not be said."""
        for number, question in (*self._waiting.items(), *self._given_up.items()):
            if is_meant(question):
                question.may_go_on = question.may_go_on and not is_over
                if not question.answer.done():
                    question.answer.set_result(NotDone(session="-", request=number, code=code, message=why))
        self._given_up = {number: question for number, question in self._given_up.items() if question.may_go_on}

    async def _of_owner(self, asked: Describe | Save, kind: type[AnswerT]) -> AnswerT:
        return await self._ask(self._owner(asked.session), asked, kind, self._config.save_s)

    async def _ask(
        self,
        worker: WorkerRecord,
        asked: Describe | Save | TakeSnapshot | Keep,
        kind: type[AnswerT],
        within_s: float,
    ) -> AnswerT:
        found = self._workers.find(worker.name)
        if found is None or found.incarnation != worker.incarnation:  # its successor would be asked, and not heard
            raise UserError(f"{worker.name} ended before it was asked; try again.", code="worker_gone", status=409)
        question = _Question(
            worker=worker.name,
            incarnation=worker.incarnation,
            session=asked.session,
            kind=type(asked),
            may_go_on=isinstance(asked, Keep),
        )
        self._waiting[asked.request] = question
        try:
            self._workers.send(worker.name, asked)
            async with while_it_gets_on(lambda: self._how_far(worker, asked), within_s):
                answer = await question.answer
        except TimeoutError:
            why = f"{worker.name} has not answered, and got nothing done for {within_s:.0f} s; try again."
            raise UserError(why, code="silent", status=503) from None
        finally:
            del self._waiting[asked.request]
            if question.may_go_on:
                self._given_up[asked.request] = question
        if isinstance(answer, kind):
            return answer
        if not isinstance(answer, NotDone):
            raise bad_answer(worker.name, f"{type(answer).__name__} where {kind.__name__} was asked for")
        raise UserError(answer.message, code=answer.code, status=STATUSES.get(answer.code, 409))

    def _how_far(self, worker: WorkerRecord, asked: Describe | Save | TakeSnapshot | Keep) -> int:
        """Return how far a worker has got with what it is asked for, or with what is before that.

        A snapshot is kept without its engine. One is given by the engine, and then digested, in its turn, by the thread
        that also takes in what others give: that says something only while the engine returns.
        """
        if isinstance(asked, Keep):
            return worker.num_pulled
        is_digested = isinstance(asked, TakeSnapshot) and not self._workers.is_stuck(worker)
        return worker.num_done + (worker.num_pulled if is_digested else 0)

    def _owner(self, session: str) -> WorkerRecord:
        """Return the worker that plays a session. Raises UserError."""
        self._sessions.get(session)
        if self._desk.row(session) is None:
            why = f"The session {session} is being opened; try again when that has ended."
            raise UserError(why, code="busy", status=409)
        owner = self._desk.owner(session)
        if owner is None:
            raise UserError(f"The session {session} is lost: no copy of it is left.", code="lost", status=410)
        return self._workers.get(owner.worker)
