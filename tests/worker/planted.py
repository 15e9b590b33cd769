"""A bug that is planted: a task of one session that raises at its n-th await, where nobody foresaw that."""

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

TASKS: dict[str, Callable[[dict[str, Any]], str]] = {
    "CopyTable._play": lambda local: local["copy"].name,
    "Drivers._drive_source": lambda local: local["source"].session,
    "Drivers._drive_destination": lambda local: local["destination"].session,
    "Drivers.end": lambda local: local["session"],
    "Mover.move": lambda local: local["session"],
    "Recovery.recover": lambda local: local["session"],
    "Requests._open": lambda local: local["message"].session,
    "Requests._close": lambda local: local["message"].session,
    "Requests._answer": lambda local: local["message"].session,
}
"""The coroutine of each kind of task, and how to tell whose it is."""


class PlantedError(Exception):
    """What nobody foresaw."""


class Plant:
    """Raises once, in the first task of a kind and session, at its n-th await (0: the first)."""

    def __init__(self, task: str, number: int, session: str = "s-1") -> None:
        self.has_raised = False
        self.has_ended = False
        """Whether the task came to its end with fewer awaits."""
        self._result: Any = None
        self._task = task
        self._session = session
        self.number = number

    def sow(self) -> None:
        """Have the running loop raise it."""
        asyncio.get_running_loop().set_task_factory(self._make)

    def _make(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Any:
        if getattr(work, "__qualname__", "") == self._task and self._is_its_own(work):
            self._session = ""
            work = self._raising(work)
        return asyncio.Task(work, loop=loop, **options)

    def _is_its_own(self, work: Any) -> bool:
        return TASKS[self._task](work.cr_frame.f_locals) == self._session

    @types.coroutine
    def _raising(self, work: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        waited_for, number = self._step(work.send, None), 0
        while not self.has_ended:
            try:
                heard = yield waited_for
            except BaseException as error:  # noqa: BLE001  (a cancel, which is handed on)
                waited_for = self._step(work.throw, error)
                continue
            if number == self.number:
                self.has_raised = True
                waited_for = self._step(work.throw, PlantedError(self._task))
            else:
                waited_for = self._step(work.send, heard)
            number += 1
        return self._result

    def _step(self, act: Callable[[Any], Any], given: Any) -> Any:
        try:
            return act(given)
        except StopIteration as end:
            self.has_ended, self._result = True, end.value
