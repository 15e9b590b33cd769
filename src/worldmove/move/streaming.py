"""What a source tells of a block while it is computed, as soon as its engine does: what is final, what is handed on."""

import asyncio
from collections.abc import Callable

from worldmove.limits import MAX_TEXT
from worldmove.move.attempt import Attempt
from worldmove.move.message import MAX_PATHS
from worldmove.move.messages import Final, Handed
from worldmove.move.source_copy import SourceCopy

EVERY_S = 0.002
"""Between two looks at what the engine has said: its thread waits for nobody."""


async def tell_finals(attempt: Attempt, copy: SourceCopy, hands: Callable[[], bool] = lambda: False) -> None:
    """Go on until it is ended. The engine goes on saying so until it is hushed: whoever tells next loses nothing.

    ``hands``: whether the other end steps a component, and is told what blocks hand to it.
    """
    while True:
        if hands():
            tell_handed(attempt, copy)
        tell_final(attempt, copy)
        await asyncio.sleep(EVERY_S)


def tell_final(attempt: Attempt, copy: SourceCopy) -> None:
    """Tell what is final by now."""
    paths = [path for path in copy.finals() if can_be_said(path)][:MAX_PATHS]
    if paths:
        attempt.send(attempt.peer, Final, paths=tuple(dict.fromkeys(paths)))


def tell_handed(attempt: Attempt, copy: SourceCopy) -> None:
    """Tell what blocks have handed on by now."""
    for block, data in copy.handed():
        attempt.send(attempt.peer, Handed, block=block, data=data)


def can_be_said(path: object) -> bool:
    """Whether what an engine has called final is a path that a message can have: others end the link of every world."""
    return type(path) is str and len(path) <= MAX_TEXT and not any("\ud800" <= sign <= "\udfff" for sign in path)
