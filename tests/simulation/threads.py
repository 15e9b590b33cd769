"""A worker's threads in the simulation: each runs one function after another, and takes virtual time for it."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from tests.simulation.net import Wire
from tests.simulation.trace import Trace

T = TypeVar("T")


class Alone:
    """Something that is used by one function at a time: an engine, from whichever of its two threads."""

    def __init__(self, name: str) -> None:
        self.num_users = 0
        self._name = name

    def begin(self, trace: Trace) -> None:
        """A function is given to a thread. Breaks the run where another one is at it."""
        self.num_users += 1
        if self.num_users > 1:
            trace.fail(f"two calls to the engine of {self._name} at once")


class SimThread:
    """A ``Blocking``: one function after another, each with a duration. A cancelled caller waits for its own."""

    def __init__(self, wire: Wire, name: str, cost_s: tuple[float, float], alone: "Alone | None" = None) -> None:
        """``alone``: what no two functions may use at once."""
        self._alone = alone
        self._wire = wire
        self._dice = wire.weather.dice(name)
        self._cost_s = cost_s
        self._free_at = 0.0
        self.slowness = 1.0
        self.takes_s: float | None = None
        """What each function takes from now on, whatever it is; None: by the dice."""

    async def __call__(self, function: Callable[[], T], /) -> T:
        loop, alone = self._wire.loop, self._alone
        if alone is not None:
            alone.begin(self._wire.trace)
        cost_s = self.slowness * self._dice.between(*self._cost_s)
        cost_s = cost_s if self.takes_s is None else self.takes_s
        self._free_at = max(self._free_at, loop.time()) + cost_s
        ended = asyncio.Event()
        brought: list[tuple[Any, Exception | None]] = []

        def run() -> None:
            try:
                brought.append((function(), None))
            except Exception as error:  # noqa: BLE001  (it is the caller's)
                brought.append((None, error))
            if alone is not None:
                alone.num_users -= 1
            ended.set()

        loop.call_at(self._free_at, run)
        cancelled: asyncio.CancelledError | None = None
        while not ended.is_set():
            try:
                await ended.wait()
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        result, failure = brought[0]
        if failure is not None:
            raise failure
        return result  # type: ignore[no-any-return]
