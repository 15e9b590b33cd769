"""What a source does before the boundary, to its end: done, or given up, and whoever has a part in it was told."""

from collections.abc import Coroutine
from typing import Any

from worldmove.errors import MoveRefused, WorldMoveError
from worldmove.move.attempt import Attempt
from worldmove.move.messages import Abandon
from worldmove.move.patience import Patience


async def early_part(attempt: Attempt, patience: Patience, work: Coroutine[Any, Any, None], late: str) -> bool:
    """Say whether the work was done. ``late``: what had not come about, where the patience is over."""
    try:
        async with patience.limit():
            await work
            return True
    except TimeoutError:
        reason, detail = patience.why(late)
    except MoveRefused as error:
        reason, detail = error.reason, error.detail
    except WorldMoveError as error:
        reason, detail = error.code, str(error)
    attempt.send(attempt.peer, Abandon, reason=reason, detail=detail[:2048])
    attempt.end("source", "aborted", reason, detail)
    return False
