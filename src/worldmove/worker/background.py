"""Tasks that run beside a component: kept, watched, and ended with it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

AGAIN_S = 0.5


class Background:
    """Starts tasks and keeps them. A task that fails is handed on: silence would hide a bug."""

    def __init__(self, on_failure: Callable[[str, BaseException], None]) -> None:
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._started = 0
        self._on_failure = on_failure
        self._stops = False

    def start(
        self,
        name: str,
        coroutine: Coroutine[Any, Any, None],
        *,
        contained: Callable[[BaseException], None] | None = None,
    ) -> asyncio.Task[None]:
        """Run a coroutine beside everything else. ``contained`` hears of its failure instead of ``on_failure``."""
        self._started += 1
        number = self._started
        task = asyncio.create_task(coroutine, name=name)
        self._tasks[number] = task
        task.add_done_callback(lambda ended: self._ended(number, name, ended, contained))
        return task

    async def end(self, name: str) -> None:
        """Cancel what runs under a name, and wait for it."""
        await _end([task for task in self._tasks.values() if task.get_name() == name])

    async def stop(self) -> None:
        """Cancel what still runs, and wait for it. Whoever stops from inside a task goes on."""
        self._stops = True
        await _end([task for task in self._tasks.values() if task is not asyncio.current_task()])

    def _ended(
        self, number: int, name: str, task: asyncio.Task[None], contained: Callable[[BaseException], None] | None
    ) -> None:
        del self._tasks[number]
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        if contained is None or self._stops:  # nothing is left to go on with
            self._on_failure(name, error)
        else:
            contained(error)


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    """Cancel tasks until they have ended.

    Once is not enough: a cancel that meets a failure inside a TaskGroup is lost before Python 3.13.
    """
    ended = asyncio.gather(*tasks, return_exceptions=True)
    while not ended.done():
        for task in tasks:
            task.cancel()
        try:
            async with asyncio.timeout(AGAIN_S):
                await asyncio.shield(ended)
        except TimeoutError:
            continue
