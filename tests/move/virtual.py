"""Virtual time: an event loop without a clock, a socket or a thread, so that waiting costs nothing."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class StalledError(RuntimeError):
    """Nothing is ready and nothing is scheduled: a deadlock."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Jumps to the next timer whenever nothing is ready."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = self

    def time(self) -> float:
        return self._now

    def select(self, timeout: float | None) -> tuple[()]:
        """Where a real loop would sleep."""
        if timeout is None:
            raise StalledError(f"at {self._now:.6f} s")
        if timeout > 0:
            self._now = self._scheduled[0]._when  # type: ignore[attr-defined]
        return ()

    def _process_events(self, event_list: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time. A task that fails in the background fails the run."""
    loop = VirtualLoop()
    problems: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: problems.append(context))
    try:
        result = loop.run_until_complete(main)
    finally:
        problems += _end_tasks(loop)
        loop.close()
    if problems:
        raise problems[0].get("exception") or RuntimeError(problems[0]["message"])
    return result


def _end_tasks(loop: VirtualLoop) -> list[dict[str, Any]]:
    """Cancel what still runs; return the failures of background tasks."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    ends = loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True)) if tasks else []
    return [{"exception": end, "message": ""} for end in ends if isinstance(end, Exception)]


async def inline(function: Callable[[], T], /) -> T:
    """A ``Blocking`` that does not leave the loop: the fake for tests in virtual time."""
    await asyncio.sleep(0)
    return function()
