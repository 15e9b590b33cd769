"""Who can go on with a session whose owner is gone: pure, by what the workers report that they hold."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from worldmove.worker.messages import KEPT, Copy

WAITING = ("frozen", "superseded", "shadow", "following")
"""Phases of a copy that asks the ledger by itself."""
SHADOWS = ("shadow", "following")
CURRENT = (*WAITING, "live", "retired", KEPT)

HolderT = TypeVar("HolderT")


def that_may_go_on(held: Sequence[tuple[HolderT, Copy]], *, may_be_granted: bool) -> Sequence[tuple[HolderT, Copy]]:
    """Leave out the shadows where nobody will grant them the session: nothing is to wait for them.

    ``may_be_granted``: whether an attempt is open, or the owner is dead. A commit of a closed attempt has no answer
    while its owner may be alive.
    """
    return held if may_be_granted else [(holder, copy) for holder, copy in held if copy.phase not in SHADOWS]


def successor(held: Sequence[tuple[HolderT, Copy]]) -> HolderT | None:
    """Return the retired copy that takes over; None while a copy that is further on can still ask for itself."""
    if any(copy.phase in WAITING for _, copy in held):
        return None
    retired = [(holder, copy) for holder, copy in held if copy.phase == "retired"]
    return max(retired, key=lambda found: found[1].block)[0] if retired else None


def to_revive(held: Sequence[tuple[HolderT, Copy]], next_block: int) -> tuple[HolderT, Copy] | None:
    """Return the newest snapshot that is kept, where nothing else is there that could go on.

    One of a later boundary than the next block could not show that one.
    """
    if any(copy.phase in (*WAITING, "retired") for _, copy in held):
        return None
    kept = [(holder, copy) for holder, copy in held if copy.phase == KEPT and copy.block <= next_block]
    return max(kept, key=lambda found: found[1].block) if kept else None


def num_current(copies: Iterable[Copy]) -> int:
    """Return how many copies the session might still go on from. Only where there is none may it be lost."""
    return sum(copy.phase in CURRENT for copy in copies)
