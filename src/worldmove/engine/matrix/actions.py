"""Keys in, mouse and keyboard of every video frame out. Pure.

Rules of this file:

1. A block's changes are spread over its frames in their order, evenly: a list of one acts from the first frame on.
2. A key acts in a frame if it is down there, or went down there: so a tap acts once, however short.
3. A press of a key that is down (a keyboard's repeat) does nothing.
4. All of a block's changes are used within the block; nothing waits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from worldmove.engine.base import FrameNote, KeyChange
from worldmove.engine.matrix.config import KEYBOARD_CHANNELS, MOUSE_CHANNELS
from worldmove.errors import UserError

STAY = "stay"
CONTROLS: Mapping[str, tuple[float, ...]] = {
    "up": (0, 0, 1, 0, 0, 0),
    "down": (0, 0, 0, 1, 0, 0),
    "left": (0, -1, 0, 0, 1, 0),
    "right": (0, 1, 0, 0, 0, 1),
    "flag": (1, 0, 0, 0, 0, 0),
}
"""What each key does: the mouse's pitch and yaw; W, S, A, D. Left and right turn and step; ``flag`` looks up."""
KEYS = tuple(CONTROLS)
DIRECTIONS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
NUM_CHANNELS = MOUSE_CHANNELS + KEYBOARD_CHANNELS


@dataclass(frozen=True, slots=True, kw_only=True)
class Stand:
    """Where a session's player stands: keys held, in the order pressed; newest change used; pose in steps."""

    held: tuple[str, ...] = ()
    number: int = 0
    pose: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a block's key changes come to: the controls and the note of every video frame, and the stand after it."""

    controls: tuple[tuple[float, ...], ...]
    notes: tuple[FrameNote, ...]
    stand: Stand


def plan(stand: Stand, changes: Sequence[KeyChange], num_frames: int) -> Plan:
    """Spread key changes over a block. Raises UserError for a key that is not one of KEYS."""
    for change in changes:
        if change.key not in KEYS:
            raise UserError(f"There is no key {change.key!r} in this world; use one of {', '.join(KEYS)}.")
    controls, notes = [], []
    for frame in range(num_frames):
        due = [change for i, change in enumerate(changes) if i * num_frames // len(changes) == frame]
        stand, acting = _frame(stand, due)
        controls.append(tuple(sum(column) for column in zip(*map(CONTROLS.__getitem__, acting), strict=True)) or REST)
        action = acting[-1] if acting else STAY
        stand = Stand(held=stand.held, number=stand.number, pose=moved(stand.pose, action))
        notes.append(FrameNote(pose=stand.pose, action=action, number=stand.number))
    return Plan(controls=tuple(controls), notes=tuple(notes), stand=stand)


REST = (0.0,) * NUM_CHANNELS


def _frame(stand: Stand, due: Sequence[KeyChange]) -> tuple[Stand, tuple[str, ...]]:
    """Apply one frame's changes; return the keys that act in it, the one pressed last at the end."""
    held, acting, number = stand.held, stand.held, stand.number
    for change in due:
        number = change.number
        if not change.down:
            held = tuple(key for key in held if key != change.key)
            if not _pressed(change.key, due):
                acting = tuple(key for key in acting if key != change.key)
        elif change.key not in held:
            held = (*held, change.key)
            acting = (*(key for key in acting if key != change.key), change.key)
    return Stand(held=held, number=number, pose=stand.pose), acting


def _pressed(key: str, due: Sequence[KeyChange]) -> bool:
    return any(change.key == key and change.down for change in due)


def moved(pose: tuple[int, int], action: str) -> tuple[int, int]:
    """Where an action leads: there is nothing to run into."""
    dy, dx = DIRECTIONS.get(action, (0, 0))
    return pose[0] + dy, pose[1] + dx
