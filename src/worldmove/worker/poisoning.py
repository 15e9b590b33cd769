"""A slot made so that nothing in it can be right by luck, beside the moves of other sessions."""

from collections.abc import Callable
from functools import partial

from worldmove.state.arena import AnyArena, Arena
from worldmove.transport.base import Blocking
from worldmove.units import MIB

PIECE_BYTES = 16 * MIB
"""Some milliseconds: in between, the thread is whoever's is frozen meanwhile. A device's memory takes less, in one."""


async def poisoned(arena: AnyArena, copying: Blocking, gets_on: Callable[[], None]) -> None:
    """Poison it, and touch its pages, piece by piece in the thread that moves wait for. ``gets_on`` hears of each."""
    if not isinstance(arena, Arena):
        await copying(arena.poison)
        gets_on()
        return
    for begin in range(0, arena.size, PIECE_BYTES):
        await copying(partial(arena.poison, begin, begin + PIECE_BYTES))
        gets_on()
