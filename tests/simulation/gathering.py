"""``asyncio.gather`` as Python 3.11 has it: since 3.12 what is done already is gathered without a turn of the loop.

A turn more or less is another draw of the scheduler's, and a seed would be another run. What a program may rely on is
the same in both; here it always takes the turn.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any


class Gathered(asyncio.Future[list[Any]]):
    """What a gather gives: to cancel it is to cancel what it waits for."""

    def __init__(self, parts: "list[asyncio.Future[Any]]", *, keeps_errors: bool) -> None:
        super().__init__(loop=parts[0].get_loop() if parts else asyncio.get_running_loop())
        self._parts = parts
        self._keeps_errors = keeps_errors
        self._was_cancelled = False
        self._num_left = len(parts)
        for part in parts:
            part.add_done_callback(self._ended)
        if not parts:
            self.set_result([])

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel every part. False where none could be."""
        if self.done():
            return False
        if [part for part in self._parts if part.cancel(msg)]:
            self._was_cancelled = True
            return True
        return False

    def _ended(self, part: "asyncio.Future[Any]") -> None:
        """One part is done: tell its failure at once, or everything once it was the last."""
        self._num_left -= 1
        if self.done():
            _brought(part)  # so that nobody says that it was never looked at
            return
        failure = _brought(part)[1]
        if failure is not None and not self._keeps_errors:
            self.set_exception(failure)
        elif not self._num_left:
            self._tell()

    def _tell(self) -> None:
        if self._was_cancelled:
            self.set_exception(asyncio.CancelledError())
            return
        brought = [_brought(part) for part in self._parts]
        self.set_result([result if failure is None else failure for result, failure in brought])


def gather(*awaited: Awaitable[Any], return_exceptions: bool = False) -> Gathered:
    """Do as ``asyncio.gather`` does."""
    return Gathered([asyncio.ensure_future(each) for each in awaited], keeps_errors=return_exceptions)


def _brought(part: "asyncio.Future[Any]") -> tuple[Any, BaseException | None]:
    """Return the result of a done part, or its failure: a cancel is one."""
    if part.cancelled():
        return None, asyncio.CancelledError()
    failure = part.exception()
    return (part.result(), None) if failure is None else (None, failure)
