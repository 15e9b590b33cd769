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
    """Go on until it is ended."""
    try:
        while True:
            paths = [path for path in copy.finals() if len(path) <= LONGEST_PATH][:MOST_PATHS]
            if paths:
                attempt.send(attempt.peer, Final, paths=tuple(dict.fromkeys(paths)))
            await asyncio.sleep(EVERY_S)
    finally:
        copy.hush()
