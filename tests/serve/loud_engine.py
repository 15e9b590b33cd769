"""The counting engine, which says something at each block in every way in which a library may."""

import logging
import sys
import warnings
from collections.abc import Sequence

from tests.worker.counting import CountingEngine, World
from worldmove.engine.base import Block, KeyChange


class LoudEngine(CountingEngine):
    """Prints, logs with a traceback, and warns."""

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        print("printed at block", session.block, "." * 4000, file=sys.stderr, flush=True)  # noqa: T201  (as an engine of somebody may)
        try:
            raise ValueError("logged")
        except ValueError:
            logging.getLogger("loud").exception("at block %d", session.block)
        warnings.warn(f"warned at block {session.block}", stacklevel=1)
        return super().step(session, changes)


def engine(num_threads: int) -> LoudEngine:
    return LoudEngine(num_threads)
