"""Tasks that run beside a driver, by name: one that fails ends the driver, and none outlives it."""

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self


class Beside:
    """A task group whose members have names, can be ended one by one, and are ended with it."""

    def __init__(self) -> None:
        self._group = asyncio.TaskGroup()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks.values():
            task.cancel()
        await self._group.__aexit__(kind, error, trace)

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Run ``work``; what still runs under this name is ended."""
        self.end(name)
        self._tasks[name] = self._group.create_task(work)

    def has(self, name: str) -> bool:
        """Say whether something was started under this name and not ended since."""
        return name in self._tasks

    def end(self, name: str) -> None:
        """Cancel what runs under this name, if anything does."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()

    async def join(self, name: str) -> None:
        """Wait for what runs under this name, if anything does."""
        task = self._tasks.pop(name, None)
        if task is not None:
            await task
