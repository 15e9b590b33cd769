"""Looking after the sessions of a gateway: tell who works where, release silent keys, close what nobody watches."""

from collections.abc import Container, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import structlog

from worldmove.errors import LedgerError, UserError
from worldmove.fleet.ports import Fleet
from worldmove.fleet.views import WorkerView
from worldmove.serve.attendance import Attendance
from worldmove.serve.containment import Fails, containing
from worldmove.serve.live import Live
from worldmove.serve.play_messages import Workers
from worldmove.serve.unwatched import Unwatched
from worldmove.serve.wording import workers_now

log = structlog.get_logger()


class Home(Fails, Protocol):
    """Where sessions are played."""

    @property
    def fleet(self) -> Fleet: ...

    @property
    def lives(self) -> Mapping[str, Live]: ...

    def forget(self, session: str, why: str) -> None:
        """A session has ended: close its connections."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> object:
        """Run something beside the rest."""
        ...


class Upkeep:
    """One gateway's."""

    def __init__(self, home: Home, *, keep_s: float, spare_s: float, silent_s: float) -> None:
        """``keep_s``, ``spare_s``: see ``Unwatched``; ``silent_s``: after so long without a word keys are released."""
        self._home = home
        self._keep_s = keep_s
        self._silent_s = silent_s
        self._unwatched = Unwatched(keep_s=keep_s, spare_s=spare_s)
        self._attendance = Attendance()
        self._told: dict[str, Workers] = {}
        self._closing: dict[str, None] = {}

    def look(self, every_s: float) -> None:
        """Look at every session once; that is done again and again, so many seconds apart."""
        now = self._attendance.look(every_s)
        workers = self._home.fleet.workers()
        for session, live in tuple(self._home.lives.items()):
            with containing(self._home, "look", session):
                self._tell(session, live, workers)
                self._expire(session, live, now)

    async def make_room(self, among: Container[str]) -> bool:
        """Close the session that nobody has watched for longest, of those that are long enough and can be closed.

        ``among``: the workers on which room is wanted; one elsewhere is kept, and so is one that has none, since it is
        lost. Says whether it did. Why one cannot be (it moves, say) is no answer to who wants to open another.
        """
        for session in self._unwatched.spares(self._attendance.now()):
            owner = self._home.fleet.owner(session)
            if owner is None or owner.worker not in among or session in self._closing or self._is_watched(session):
                continue
            self._closing[session] = None  # nobody else has its room
            try:
                await self._home.fleet.close(session)
            except UserError as error:
                log.info("not closed, though its room is needed", session=session, code=error.code)
                continue
            finally:
                del self._closing[session]
            log.info("closed: its room is needed, and nobody watched", session=session)
            self._home.forget(session, "Nobody watched this world, and another one needed its room.")
            return True
        return False

    def forget(self, session: str) -> None:
        """A session has ended."""
        self._told.pop(session, None)
        self._unwatched.forget(session)

    def _tell(self, session: str, live: Live, workers: Sequence[WorkerView]) -> None:
        """Tell who works where, where that has changed, and release the keys of who is silent."""
        message = workers_now(workers, self._home.fleet.owner(session))
        if self._told.get(session) != message:
            self._told[session] = message
            live.audience.say(message)
        live.controls.release_if_silent(self._silent_s)

    def _expire(self, session: str, live: Live, now: float) -> None:
        """Close what nobody has watched for too long: beside, for a worker that is silent is waited for."""
        if self._unwatched.look(session, now, watched=live.watched) and session not in self._closing:
            self._closing[session] = None
            self._home.spawn(self._close(session))

    async def _close(self, session: str) -> None:
        try:
            if self._is_watched(session):  # somebody has come since it was begun
                return
            with suppress(UserError, LedgerError):  # a move is under way, or nothing can be noted: at the next look
                await self._home.fleet.close(session)
                log.info("closed: nobody watched", session=session, seconds=self._keep_s)
                self._home.forget(session, "Nobody watched this world for a while.")
        finally:
            del self._closing[session]

    def _is_watched(self, session: str) -> bool:
        """Whether somebody watches at this very instant: that may be since the last look, or the last wait."""
        live = self._home.lives.get(session)
        return live is not None and live.watched
