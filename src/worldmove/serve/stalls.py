"""Sessions whose next block does not come though its owner has the list and its worker answers.

An engine that never returns from a step looks like this. Its worker's event loop answers every beat, so nobody is
suspected, and nobody may take over: the block may come yet. So it is only said, and whoever runs the server decides: to
kill that worker ends the step (docs/operations.md).
"""

import asyncio
from dataclasses import dataclass
from statistics import median

import structlog

from worldmove.fleet.views import SessionState, SessionView
from worldmove.fleet.worker_table import NUM_BLOCKS
from worldmove.serve.containment import containing
from worldmove.serve.live import Live
from worldmove.serve.upkeep import Home

LEAST_S = 5.0
"""No session is called stalled before: a move may hold one still for some seconds, and a busy host too."""
PLAYED = (SessionState.LIVE, SessionState.MOVING)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """A block that an owner is to compute."""

    owner: str
    epoch: int
    block: int


@dataclass(slots=True, kw_only=True)
class Wait:
    """How long for one, and whether it was said."""

    of: Awaited
    since: float
    is_told: bool = False


class Stalls:
    """Of one gateway's sessions. ``look`` is to be called again and again."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._waits: dict[str, Wait] = {}
        self._looked_at: float | None = None

    def look(self, every_s: float) -> None:
        """Look at every session. Time in which this server itself did not run counts for nobody."""
        now = asyncio.get_running_loop().time()
        away_s = 0.0 if self._looked_at is None else now - self._looked_at - 2 * every_s
        self._looked_at = now
        for wait in self._waits.values():
            wait.since += max(0.0, away_s)
        views = {view.name: view for view in self._home.fleet.sessions()}
        for session in [session for session in self._waits if session not in self._home.lives]:
            del self._waits[session]
        for session, live in tuple(self._home.lives.items()):
            view = views.get(session)
            with containing(self._home, "look", session):
                self._note(live, None if view is None else awaited(live, view), now)

    def stalled_s(self, session: str) -> float | None:
        """Return for how long a stalled session's block has been awaited; None for one that is not stalled."""
        wait = self._waits.get(session)
        return asyncio.get_running_loop().time() - wait.since if wait is not None and wait.is_told else None

    @property
    def num_stalled(self) -> int:
        return sum(wait.is_told for wait in self._waits.values())

    def _note(self, live: Live, of: Awaited | None, now: float) -> None:
        before = self._waits.get(live.name)
        if before is None or before.of != of:
            if before is not None and before.is_told:
                waited_s = round(now - before.since, 1)
                log.warning("session_stalled_no_more", session=live.name, worker=before.of.owner, waited_s=waited_s)
            self._waits.pop(live.name, None)
            if of is not None:
                self._waits[live.name] = Wait(of=of, since=now)
        elif not before.is_told and now - before.since >= limit_s(live):
            before.is_told = True
            waited_s = round(now - before.since, 1)
            said = {"worker": before.of.owner, "epoch": before.of.epoch, "block": before.of.block}
            log.warning("session_stalled", session=live.name, **said, waited_s=waited_s)


def awaited(live: Live, view: SessionView) -> Awaited | None:
    """Return the block that a session's owner has the list of and has not sent; None where there is none.

    Of an owner that does not answer none is awaited: what becomes of its sessions is for others to say. Nor is one that
    has come, and waits here to be shown: for the ledger, say.
    """
    block = live.next_block
    if block is None or view.state not in PLAYED or live.resting_why is not None or live.lost_why is not None:
        return None
    if live.sequencer.reaches <= block or live.showing.has_come(view.epoch, block):
        return None
    return Awaited(owner=view.owner, epoch=view.epoch, block=block)


def limit_s(live: Live) -> float:
    """Return after how long a session is called stalled: by what its blocks take."""
    recent_s = live.showing.compute_s
    block_s = median(recent_s) if recent_s else live.spec.period_s  # one that was stalled counts little
    return max(LEAST_S, NUM_BLOCKS * block_s)
