"""What all clients together may take of the server's loop: a share of its time, in turn and fairly among them.

Blocks and their frames go through the same loop. So the time that clients' requests take in it is measured and owed,
and while they owe some, who asks waits. Who has taken least is next: one who floods waits for its own sake, and one
who asks for the first time in a while is next.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from math import inf
from typing import Any, TypeVar

from starlette.types import Scope

from worldmove.serve.allowance import Allowance, Pace

T = TypeVar("T")
CREDIT_S = 0.02
"""So much each may take before it counts like those who ask all the time: a page's files, say."""
MEASURED = "worldmove.measured"
"""Among the ``extensions`` of a connection's scope: the context in which what a task beside the first one does for its
client is measured."""


def measured_of(scope: Scope) -> Callable[[], AbstractContextManager[None]]:
    """Return the context that a client's own work is to be done in."""
    extensions: dict[str, Any] = scope.get("extensions", {})
    found: Callable[[], AbstractContextManager[None]] = extensions.get(MEASURED, nullcontext)
    return found


class Party:
    """One connection, as a share knows it."""

    __slots__ = ("taken_s",)

    def __init__(self) -> None:
        self.taken_s = -inf
        """What it has taken, on the share's own scale: who comes has taken ``CREDIT_S`` less than others."""


class LoopShare:
    """A share of the running loop's time, in seconds a second: the pace's unit is a second of the loop.

    ``on_wait`` hears each time that somebody has to wait.
    """

    def __init__(self, pace: Pace, on_wait: Callable[[], None]) -> None:
        self._allowance = Allowance(pace)
        self._on_wait = on_wait
        self._level_s = 0.0
        """How much each had taken who was let go on last, so that nobody saves up more than ``CREDIT_S``."""
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self._is_letting = False

    def ask(self, party: Party, go_on: Callable[[], None]) -> bool:
        """Whether a party may go on now; where not, ``go_on`` is called once it may."""
        if not self._waiting and self._owed_s() <= 0:
            self._go(self._standing_s(party), party)
            return True
        self._on_wait()
        begins_s = self._standing_s(party)

        def go() -> None:
            self._go(begins_s, party)
            go_on()

        heapq.heappush(self._waiting, (begins_s, next(self._number), go))
        self._let_later()
        return False

    async def turn(self, party: Party) -> None:
        """Wait until a party may go on; whoever is cancelled meanwhile costs the others nothing."""
        asked = asyncio.get_running_loop().create_future()
        if not self.ask(party, lambda: None if asked.done() else asked.set_result(None)):
            await asked

    def owe(self, party: Party, took_s: float) -> None:
        """A party has taken so much of the loop's time."""
        party.taken_s = self._standing_s(party) + took_s
        self._allowance.owe(asyncio.get_running_loop().time(), took_s)

    @contextmanager
    def measured(self, party: Party) -> Iterator[None]:
        """Have a party owe what is done inside, which waits for nothing."""
        clock = asyncio.get_running_loop().time
        begun_s = clock()
        try:
            yield
        finally:
            self.owe(party, clock() - begun_s)

    def _standing_s(self, party: Party) -> float:
        return max(party.taken_s, self._level_s - CREDIT_S)

    def _owed_s(self) -> float:
        """For how long nobody may go on."""
        return self._allowance.owe(asyncio.get_running_loop().time(), 0.0)

    def _go(self, begins_s: float, party: Party) -> None:
        self._level_s = max(self._level_s, begins_s)
        party.taken_s = max(party.taken_s, begins_s)

    def _let_later(self) -> None:
        if not self._is_letting:
            self._is_letting = True
            asyncio.get_running_loop().call_later(self._owed_s(), self._let)

    def _let(self) -> None:
        """Let the next one go on. What it takes is known only once it has: the one after it is asked about later."""
        self._is_letting = False
        if self._waiting and self._owed_s() <= 0:
            heapq.heappop(self._waiting)[-1]()
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._let_later)


class Measured(Generator[Any, Any, T]):
    """Awaits something, and has each of its steps in the loop measured: not what it waits for."""

    def __init__(self, steps: Awaitable[T], step: Callable[[], AbstractContextManager[None]]) -> None:
        """``step``: a context that one step is made in."""
        self._steps: Any = steps.__await__()
        self._step = step

    def __await__(self) -> "Measured[T]":
        return self

    def send(self, value: Any) -> Any:
        with self._step():
            return next(self._steps) if value is None else self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        with self._step():
            return self._steps.throw(*error)
