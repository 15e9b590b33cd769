"""How a state gets from one slot to another: what travels while the session is played, and what at the boundary."""

from enum import Enum

from worldmove.errors import MoveRefused


class Strategy(Enum):
    """The ways that are built."""

    BOUNDARY_COPY = "boundary copy"
    """Nothing while it is played; the whole state at the boundary."""


def pick(wanted: str | None = None) -> Strategy:
    """Return the strategy of a move: the one that the user wants, else the one that fits. Raises MoveRefused."""
    known = {strategy.value: strategy for strategy in Strategy}
    if wanted is None:
        return Strategy.BOUNDARY_COPY
    if wanted not in known:
        raise MoveRefused("strategy", f"there is no strategy named {wanted}; there is {', '.join(known)}")
    return known[wanted]
