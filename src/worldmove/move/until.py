"""Work that ends when it is done, when somebody gives up, or when its time is over."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from worldmove.errors import NoMemory, WorldMoveError
from worldmove.move.attempt import GaveUpError

Failure = GaveUpError | WorldMoveError | TimeoutError


async def until_given_up(
    work: Coroutine[Any, Any, None], listener: Coroutine[Any, Any, None], limit_s: float | None
) -> Failure | None:
    """Run ``work`` beside a ``listener`` that raises when it hears of an end. Return what ended the work early.

    When it returns, neither runs any more. What is not a Failure is a bug and is raised.
    """
    failure: Failure | None = None
    try:
        async with asyncio.timeout(limit_s), asyncio.TaskGroup() as group:
            listening = group.create_task(listener)
            await work
            listening.cancel()
    except* (GaveUpError, WorldMoveError, TimeoutError, MemoryError) as failed:
        failure = _first(failed)
    return failure


def given_up(failure: Failure, *, on_time_out: Any, otherwise: Any) -> GaveUpError:
    """Return a failure as giving up: the event that it is for this end's table, a word and a sentence."""
    if isinstance(failure, GaveUpError):
        return failure
    if isinstance(failure, TimeoutError):
        return GaveUpError(on_time_out, "time_out", "it took longer than it may")
    return GaveUpError(otherwise, failure.code, str(failure))


def _first(group: BaseExceptionGroup[Any]) -> Failure:
    """Return the leaf of a group of groups that says most: one who gave up says why."""
    leaves: list[Failure] = []
    pending: list[Any] = [group]
    while pending:
        error = pending.pop(0)
        if isinstance(error, BaseExceptionGroup):
            pending.extend(error.exceptions)
        else:
            leaves.append(NoMemory(str(error) or "the system gives none") if isinstance(error, MemoryError) else error)
    return next((leaf for leaf in leaves if isinstance(leaf, GaveUpError)), leaves[0])
