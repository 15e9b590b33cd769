"""Virtual time, a seeded order, and no door to the outside: the same seed gives the same run.

Rules of this file:

1. Callbacks run in the order in which they were scheduled, as asyncio promises. Which task runs next is drawn.
2. Tasks hash by birth, so that asyncio's own sets of tasks iterate alike in every run, also the second in a process.
3. What belongs to a node (``NODE``, inherited by its tasks and timers) is put aside while the node is paused. A node
   without power is one that is never resumed: nothing of it runs, not even ``finally``. What was put aside is kept
   until the loop is buried; to collect it in the middle of a run would run it.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context, ContextVar, copy_context
from functools import partial
from heapq import heappop, heappush
from operator import attrgetter
from typing import Any

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

    def __init__(self, coroutine: Any, *, loop: "SimLoop", name: str | None = None, **options: Any) -> None:
        loop.born += 1
        self.serial = loop.born  # before asyncio keeps it in a set
        super().__init__(coroutine, loop=loop, name=name or f"task-{self.serial}", **options)

    def __hash__(self) -> int:
        return self.serial


class SimHandle(asyncio.TimerHandle):
    """A callback of asyncio's, without what a loop of the real world needs."""

    __slots__ = ("serial",)
    _loop = _repr = _source_traceback = None
    _when: float
    _scheduled = False
    serial: int
    """Of the task that it steps; set where that is drawn."""

    def __init__(self, callback: Any, args: Any, context: Context | None) -> None:
        self._callback = callback
        self._args = args
        self._context = copy_context() if context is None else context
        self._cancelled = False

    def __lt__(self, _other: object) -> bool:
        """Of two that are due at once, neither is first."""
        return False

    def cancel(self) -> None:
        self._cancelled = True
        self._callback, self._args = None, ()


_by_serial = attrgetter("serial")


class Ready:
    """What may run now. ``rng`` draws which task does; None: the one that has waited longest."""

    def __init__(self, rng: random.Random | None) -> None:
        self.draw = None if rng is None else rng.random
        self.calls: deque[SimHandle] = deque()
        self.tasks: list[SimHandle] = []

    def append(self, handle: SimHandle) -> None:
        task = getattr(handle._callback, "__self__", None)
        if type(task) is SimTask and self.draw is not None:
            handle.serial = task.serial
            self.tasks.append(handle)
        else:
            self.calls.append(handle)

    def popleft(self) -> SimHandle:
        """Return what runs next."""
        tasks, calls = self.tasks, self.calls
        if not tasks or self.draw is None:
            return calls.popleft()
        choices = len(tasks) + 1 if calls else len(tasks)
        if choices == 1:
            return tasks.pop()  # nothing to draw
        pick = int(self.draw() * choices)
        if pick == len(tasks):
            return calls.popleft()
        tasks.sort(key=_by_serial)
        return tasks.pop(pick)

    def clear(self) -> None:
        self.calls.clear()
        self.tasks.clear()


class SimLoop(asyncio.BaseEventLoop):
    """One run's loop. ``fifo``: no drawing, every task in its turn."""

    _stopping: bool
    get_debug = staticmethod(bool)
    """False; asyncio asks at every future."""

    def __init__(self, seed: int, *, fifo: bool = False, max_turns: int = 200_000) -> None:
        super().__init__()
        self.born = 0
        self.turns = 0
        self._max_turns = max_turns
        self._now = 0.0
        self._aside: dict[str, list[Any]] = {}
        self._dead: dict[str, None] = {}
        self._scheduled: list[tuple[float, SimHandle]] = []
        self._ready = Ready(None if fifo else random.Random(f"schedule:{seed}"))
        self.on_turn: Callable[[], None] = lambda: None
        """Hears of every callback that has run."""
        self.create_future = partial(asyncio.Future, loop=self)  # type: ignore[method-assign]

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        """Take turns, as the base class does, until the loop is to stop; without what the real world needs."""
        ready, aside = self._ready, self._aside
        calls, tasks = ready.calls, ready.tasks
        while True:
            self._pass_time(is_busy=bool(calls or tasks or self._stopping))
            for _ in range(len(calls) + len(tasks)):
                handle = ready.popleft() if tasks else calls.popleft()
                if aside and (node := handle._context.get(NODE, "")) in aside:
                    aside[node].append(handle)
                elif not handle._cancelled:
                    try:
                        handle._context.run(handle._callback, *handle._args)
                    except (SystemExit, KeyboardInterrupt):
                        raise
                    except BaseException as error:  # noqa: BLE001  (as asyncio does, whatever it is)
                        self._say(error, handle)
                    self.on_turn()
            if self._stopping:
                return

    def _say(self, error: BaseException, handle: SimHandle) -> None:
        self.call_exception_handler({"message": f"Exception in callback {handle!r}", "exception": error})

    def _pass_time(self, *, is_busy: bool) -> None:
        """Go on to what is due next, where a real loop would sleep."""
        timers = self._scheduled
        while timers and timers[0][1]._cancelled:
            heappop(timers)
        self.turns += 1
        if not (is_busy or timers) or self.turns > self._max_turns:
            raise StalledError(f"nothing goes on at {self._now:.6f} s, turn {self.turns}")
        due = self._now if is_busy else timers[0][0]
        self._now = due if due > self._now else self._now + RESOLUTION_S
        reached = self._now + RESOLUTION_S
        while timers and timers[0][0] < reached:
            timer = heappop(timers)[1]
            if not timer._cancelled:
                self._ready.append(timer)

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = SimHandle(callback, args, context)
        self._ready.append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = SimHandle(callback, args, context)
        timer._when = when
        heappush(self._scheduled, (when, timer))
        return timer

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def create_task(self, coro: Any, **options: Any) -> SimTask:
        return SimTask(coro, loop=self, **options)

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

    def is_paused(self, node: str) -> bool:
        """Whether nothing of it runs just now."""
        return node in self._aside

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
