"""Rows where they lie: digested, and moved, in a slot's memory of either kind."""

from worldmove.errors import StateRefused
from worldmove.state.arena import AnyArena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.row_digests import Digests, row_digests
from worldmove.state.row_moves import Moves, apply
from worldmove.state.rows import Rows


def digests_in(arena: AnyArena, rows: Rows) -> Digests:
    """Return the digest of each row. Not for the event loop's thread. Raises StateRefused where nothing can do it."""
    if isinstance(arena, DeviceArena):
        raise StateRefused("", f"nothing here digests rows of {arena.kit.name}")
    return row_digests(arena.memory, rows)


def move_in(arena: AnyArena, moves: Moves) -> None:
    """Do moves, in their order. Not for the event loop's thread. Raises StateRefused where nothing can do it."""
    if isinstance(arena, DeviceArena):
        raise StateRefused("", f"nothing here moves rows of {arena.kit.name}")
    apply(moves, arena.buffer, memoryview(bytearray(moves.spare_bytes)))
