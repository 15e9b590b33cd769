"""Keys in, one action a frame out. Pure.

Rules of this file:

1. Key changes wait in one queue and take effect in order. A frame takes changes until one of them acts,
   and then the releases that follow it; so a tap acts once, however short, and no press is lost.
2. A press of a key that is down (a keyboard's repeat) does nothing.
3. While a direction is down, each frame without a new press repeats the one pressed last; but only from the
   block after its press on. A list is cut somewhere between a tap's two changes as often as not, and the tap
   is to be one step all the same.
4. ``flag`` acts once for a press.
5. At most MAX_WAITING changes wait: of more, the oldest take effect at once, and their presses act in no frame. They
   are part of the state, which whoever plays could else make as large as they like, and slow for everybody beside.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from worldmove.engine.base import KeyChange
from worldmove.errors import UserError

ACTIONS = ("stay", "up", "down", "left", "right", "flag")
KEYS = ACTIONS[1:]
MAX_WAITING = 256
"""More than a minute of presses of the quickest."""
DIRECTIONS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What a session's keys are doing: keys held, in the order pressed; changes waiting; the newest used."""

    held: tuple[str, ...] = ()
    waiting: tuple[KeyChange, ...] = ()
    number: int = 0


def accept(controls: Controls, changes: Sequence[KeyChange]) -> Controls:
    """Queue a block's key changes. Raises UserError for a key that is not one of KEYS."""
    for change in changes:
        if change.key not in KEYS:
            raise UserError(f"There is no key {change.key!r} in this world; use one of {', '.join(KEYS)}.")
    waiting = (*controls.waiting, *changes)
    held, number = controls.held, controls.number
    for change in waiting[:-MAX_WAITING]:
        held, number = _after(held, change), change.number
    return Controls(held=held, waiting=waiting[-MAX_WAITING:], number=number)


def next_action(controls: Controls, repeats: Sequence[str]) -> tuple[str, Controls]:
    """Decide one frame's action. ``repeats``: the keys that were down when this frame's block began."""
    held, waiting, number = controls.held, list(controls.waiting), controls.number
    action = None
    while waiting and (action is None or not waiting[0].down):
        change = waiting.pop(0)
        number = change.number
        if change.down and change.key not in held:
            action = change.key
        held = _after(held, change)
    repeated = (key for key in reversed(held) if key in DIRECTIONS and key in repeats)
    action = action or next(repeated, "stay")
    return action, Controls(held=held, waiting=tuple(waiting), number=number)


def _after(held: tuple[str, ...], change: KeyChange) -> tuple[str, ...]:
    """Return the keys that are down after a change."""
    if not change.down:
        return tuple(key for key in held if key != change.key)
    return held if change.key in held else (*held, change.key)


def moved(pose: tuple[int, int], action: str) -> tuple[int, int]:
    """Where an action leads: there is nothing to run into."""
    dy, dx = DIRECTIONS.get(action, (0, 0))
    return pose[0] + dy, pose[1] + dx
