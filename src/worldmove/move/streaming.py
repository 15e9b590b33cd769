"""What a source tells of a block while it is computed: which leaves are final, as soon as its engine says so."""

import asyncio

from worldmove.move.attempt import Attempt
from worldmove.move.hosts import SourceCopy
from worldmove.move.messages import Final

EVERY_S = 0.002
"""Between two looks at what the engine has said: its thread waits for nobody."""
MOST_PATHS = 4096
LONGEST_PATH = 2048


async def tell_finals(attempt: Attempt, copy: SourceCopy) -> None:
    """Go on until it is ended. The engine goes on saying so until it is hushed: whoever tells next loses nothing."""
    while True:
        paths = [path for path in copy.finals() if can_be_said(path)][:MOST_PATHS]
        if paths:
            attempt.send(attempt.peer, Final, paths=tuple(dict.fromkeys(paths)))
        await asyncio.sleep(EVERY_S)


def can_be_said(path: object) -> bool:
    """Whether what an engine has called final is a path that a message can have: others end the link of every world."""
    return type(path) is str and len(path) <= LONGEST_PATH and not any("\ud800" <= sign <= "\udfff" for sign in path)
