"""Rows where they lie: digested, held, and moved, in a slot's memory of either kind."""

from worldmove.state.arena import AnyArena
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_held import DeviceHeld
from worldmove.state.device_rows import device_row_digests, move_in_device
from worldmove.state.held import Held, Holding
from worldmove.state.row_digests import Digests, row_digests
from worldmove.state.row_looks import DeviceLook, HostLook, RowLook
from worldmove.state.row_moves import Moves, apply
from worldmove.state.rows import Rows


def digests_in(arena: AnyArena, rows: Rows) -> Digests:
    """Return the digest of each row. Not for the event loop's thread."""
    return device_row_digests(arena, rows) if isinstance(arena, DeviceArena) else row_digests(arena.memory, rows)


def look_at(arena: AnyArena, rows: Rows) -> RowLook:
    """Look at rows, to compare later. Not for the event loop's thread."""
    return DeviceLook(arena, rows) if isinstance(arena, DeviceArena) else HostLook(arena.memory, rows)


def held_in(arena: AnyArena, rows: Rows) -> Holding:
    """Look at rows as they are now, and make ready to be asked for them. Not for the event loop's thread."""
    if isinstance(arena, DeviceArena):
        return DeviceHeld(arena, rows)
    return Held(rows, row_digests(arena.memory, rows), arena.memory)


def move_in(arena: AnyArena, moves: Moves) -> None:
    """Do moves, in their order. Not for the event loop's thread."""
    if isinstance(arena, DeviceArena):
        move_in_device(arena, moves)
    else:
        apply(moves, arena.buffer, memoryview(bytearray(moves.spare_bytes)))
