"""Closes a session's lists when they are due, and sends them to whoever holds a copy.

The gateway is the one place where a session's lists are closed, so worker, retired copy and replay all step
from the same log. A holder gets every list from the next block to be shown on, in order; one that it has
already is a repeat to it.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from worldmove.engine.base import KeyChange
from worldmove.fleet.ports import Fleet
from worldmove.serve.sequencer import Sequencer
from worldmove.serve.tempo import Close, Rest, Situation, Tempo, Wait
from worldmove.worker.messages import Acknowledge, Change, Inputs

Look = Callable[[float], Situation]


class Feed:
    """One session's lists on their way to its holders."""

    def __init__(
        self,
        session: str,
        *,
        sequencer: Sequencer,
        tempo: Tempo,
        fleet: Fleet,
        look: Look,
        on_rest: Callable[[str | None], None],
        account_every: int = 0,
    ) -> None:
        """``account_every``: after how many blocks the owner accounts for its state; 0 for never."""
        self._session = session
        self._sequencer = sequencer
        self._tempo = tempo
        self._fleet = fleet
        self._look = look
        self._on_rest = on_rest
        self._account_every = account_every
        self._next: dict[str, int] = {}
        """By holder: the next block whose list it is to be sent."""
        self._left: Acknowledge | None = None
        """Of the newest block that has left."""
        self._changed = asyncio.Event()
        self._resting_why: str | None = None
        self.enabled = False
        """Whether somebody owns the session."""

    @property
    def resting_why(self) -> str | None:
        """Why the world rests; None while it goes on."""
        return self._resting_why

    @property
    def holders(self) -> tuple[str, ...]:
        """Who is sent the lists."""
        return tuple(self._next)

    def nudge(self) -> None:
        """The situation has changed: decide anew."""
        self._changed.set()

    def hold(self, workers: Sequence[str], first: int) -> None:
        """Send the lists to these workers from now on; to those that are new, from block ``first`` on."""
        self._next = {worker: self._next.get(worker, first) for worker in workers}
        self._send()

    def send_from(self, worker: str, first: int) -> None:
        """Send a worker every list from ``first`` on, also those that it was sent before."""
        self._next[worker] = first
        self._send()

    def send_again(self, worker: str, first: int) -> None:
        """A holder's link was lost: send it every list from ``first`` on that is here, and what has left by now."""
        if worker in self._next:
            if self._left is not None:
                self._fleet.send(worker, self._left)
            self.send_from(worker, max(first, self._sequencer.first))

    def acknowledge(self, epoch: int, block: int, server_life: int) -> None:
        """Tell every holder that a block has left."""
        message = Acknowledge(session=self._session, epoch=epoch, block=block, server_life=server_life)
        if self._left is None or self._left.block <= block:
            self._left = message
        for worker in self.holders:
            self._fleet.send(worker, message)

    async def run(self) -> None:
        """Close lists for as long as the session lives."""
        while True:
            self._changed.clear()
            if not self.enabled:
                await self._changed.wait()
                continue
            match self._tempo.decide(self._look(asyncio.get_running_loop().time())):
                case Close():
                    self._rest(None)
                    self._sequencer.close()
                    self._send()
                case Wait(until=until):
                    await self._changed_by(until)
                case Rest(why=why):
                    self._rest(why)
                    await self._changed.wait()

    async def _changed_by(self, until: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._changed.wait()

    def _rest(self, why: str | None) -> None:
        if why != self._resting_why:
            self._resting_why = why
            self._on_rest(why)

    def _send(self) -> None:
        reaches = self._sequencer.reaches
        for worker, first in self._next.items():
            # Who lacks lists that are here no more has a gap, and says so.
            for block in range(max(first, self._sequencer.first), reaches):
                changes = tuple(change_of(change) for change in self._sequencer.closed(block))
                account = bool(self._account_every) and (block + 1) % self._account_every == 0
                inputs = Inputs(session=self._session, block=block, changes=changes, account=account)
                self._fleet.send(worker, inputs)
            self._next[worker] = max(first, reaches)


def change_of(change: KeyChange) -> Change:
    """Return a key change as it travels to a worker."""
    return Change(number=change.number, key=change.key, down=change.down)
