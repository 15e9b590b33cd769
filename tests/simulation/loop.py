"""Virtual time, a seeded order, and no door to the outside: the same seed gives the same run.

Rules of this file:

1. Callbacks run in the order in which they were scheduled, as asyncio promises. Which task runs next is drawn.
2. Tasks hash by birth, so that asyncio's own sets of tasks iterate alike in every run, also the second in a process.
3. What belongs to a node (``NODE``, inherited by its tasks and timers) is put aside while the node is paused. A node
   without power is one that is never resumed: nothing of it runs, not even ``finally``. What was put aside is kept
   until the loop is buried; to collect it in the middle of a run would run it.
"""

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Coroutine, Sequence
from contextvars import Context, ContextVar, copy_context
from typing import Any, cast

NODE: ContextVar[str] = ContextVar("node", default="")
"""Whose a task or timer is: a name with an incarnation, like ``worker-1#2``."""
RESOLUTION_S = 1e-9
"""What a turn takes. Without it, who waits for less than the precision of the time would wait for ever."""
BURIAL_TURNS = 20_000
CANCEL_AGAIN_S = 0.5
"""A cancel that meets a failure inside a TaskGroup is lost before Python 3.13: the shipped program repeats it too."""


class StalledError(RuntimeError):
    """Nothing is ready and nothing is scheduled, or nothing ends: a deadlock."""


class EscapeError(BaseException):
    """The program reached for a thread, a socket, a clock or an executor. No ``except Exception`` hides it."""


class SimTask(asyncio.Task[Any]):
    """A task that is known by its birth."""

    serial: int

    def __new__(cls, _coroutine: Any, *, loop: "SimLoop", **_options: Any) -> "SimTask":
        """Number it before asyncio keeps it in a set."""
        task = super().__new__(cls)
        loop.born += 1
        task.serial = loop.born
        return task

    def __init__(self, coroutine: Any, *, loop: "SimLoop", name: str | None = None, **options: Any) -> None:
        super().__init__(coroutine, loop=loop, name=name or f"task-{self.serial}", **options)

    def __hash__(self) -> int:
        return self.serial


class _Skipped:
    """A handle for nothing."""

    _cancelled = True


SKIPPED = _Skipped()


class Ready:
    """What may run now. ``rng`` draws which task does; None: the one that has waited longest."""

    def __init__(self, rng: random.Random | None, aside: dict[str, list[Any]]) -> None:
        self._draw = None if rng is None else rng.random
        self._aside = aside
        self._calls: deque[Any] = deque()
        self._tasks: list[Any] = []

    def __len__(self) -> int:
        return len(self._calls) + len(self._tasks)

    def append(self, handle: Any) -> None:
        if self._draw is not None and isinstance(getattr(handle._callback, "__self__", None), SimTask):
            self._tasks.append(handle)
        else:
            self._calls.append(handle)

    def popleft(self) -> Any:
        handle = self._pick()
        if self._aside:
            aside = self._aside.get(handle._context.get(NODE, ""))
            if aside is not None:
                aside.append(handle)
                return SKIPPED
        return handle

    def clear(self) -> None:
        self._calls.clear()
        self._tasks.clear()

    def _pick(self) -> Any:
        tasks = self._tasks
        if not tasks or self._draw is None:
            return self._calls.popleft()
        choices = len(tasks) + bool(self._calls)
        pick = int(self._draw() * choices) if choices > 1 else 0
        if pick == len(tasks):
            return self._calls.popleft()
        if len(tasks) > 1:
            tasks.sort(key=_serial)
        return tasks.pop(pick)


def _serial(handle: Any) -> int:
    return cast("int", handle._callback.__self__.serial)


class SimLoop(asyncio.BaseEventLoop):
    """One run's loop. ``fifo``: no drawing, every task in its turn."""

    def __init__(self, seed: int, *, fifo: bool = False, max_turns: int = 200_000) -> None:
        super().__init__()
        self.born = 0
        self.turns = 0
        self._max_turns = max_turns
        self._now = 0.0
        self._aside: dict[str, list[Any]] = {}
        self._dead: dict[str, None] = {}
        self._selector = self
        self._ready = Ready(None if fifo else random.Random(f"schedule:{seed}"), self._aside)
        self.set_task_factory(cast("Any", lambda loop, coroutine, **options: SimTask(coroutine, loop=loop, **options)))

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        """Do one turn, as the base class does, without what a loop of the real world needs."""
        ready, timers = self._ready, cast("Any", self)._scheduled
        while timers and timers[0]._cancelled:
            heapq.heappop(timers)._scheduled = False
        if ready or cast("Any", self)._stopping:
            self.select(0)
        else:
            self.select(timers[0]._when - self._now if timers else None)
        while timers and timers[0]._when < self._now + RESOLUTION_S:
            timer = heapq.heappop(timers)
            timer._scheduled = False
            if not timer._cancelled:
                ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle._cancelled:
                handle._run()

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(cast("Any", self)._scheduled, timer)
        cast("Any", timer)._scheduled = True
        return timer

    def select(self, timeout: float | None) -> tuple[()]:
        """Where a real loop would sleep."""
        self.turns += 1
        if timeout is None or self.turns > self._max_turns:
            raise StalledError(f"nothing goes on at {self._now:.6f} s, turn {self.turns}")
        if timeout > 0:
            self._now = cast("Any", self)._scheduled[0]._when
        else:
            self._now += RESOLUTION_S
        return ()

    # nodes

    def context(self, node: str) -> Context:
        """Return a context in which everything belongs to ``node``."""
        context = copy_context()
        context.run(NODE.set, node)
        return context

    def pause(self, node: str) -> None:
        """Put everything of a node aside, as it becomes ready."""
        self._aside.setdefault(node, [])

    def resume(self, node: str) -> None:
        """Let a paused node go on, with what has become ready meanwhile. One without power does not."""
        if node not in self._dead:
            for handle in self._aside.pop(node, ()):
                self._ready.append(handle)

    def power_off(self, node: str) -> None:
        """Nothing of this node runs any more."""
        self._dead[node] = None
        self.pause(node)

    def has_power(self, node: str) -> bool:
        return node not in self._dead

    def bury(self) -> None:
        """End whatever is left, the dead included, and close. For the end of a run, when nobody looks any more.

        Raises StalledError where a task does not end, however often it is cancelled.
        """
        self.set_exception_handler(lambda _loop, _context: None)
        self._dead.clear()
        for node in tuple(self._aside):
            self.resume(node)
        self._max_turns = self.turns + BURIAL_TURNS
        try:
            while left := sorted((task for task in asyncio.all_tasks(self) if not task.done()), key=hash):
                self._cancel(left)
                self.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        finally:
            self.close()

    def _cancel(self, tasks: Sequence["asyncio.Task[Any]"]) -> None:
        """Cancel these, now and again and again."""
        for task in tasks:
            task.cancel()
        self.call_later(CANCEL_AGAIN_S, self._cancel, tasks)

    def run_in(self, context: Context, work: Coroutine[Any, Any, Any], name: str | None = None) -> asyncio.Task[Any]:
        """Start a task of a node."""
        return self.create_task(work, name=name, context=context)

    # doors

    def _door(self, *_arguments: object, **_options: object) -> Any:
        raise EscapeError("a thread, a socket or an executor inside a simulation")

    call_soon_threadsafe = run_in_executor = create_connection = create_server = _door
    create_datagram_endpoint = create_unix_connection = create_unix_server = _door
    subprocess_exec = subprocess_shell = getaddrinfo = _door

    def _process_events(self, event_list: Any) -> None: ...

    def _write_to_self(self) -> None: ...
