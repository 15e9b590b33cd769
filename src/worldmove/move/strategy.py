"""How a state gets from one slot to another: what travels while the session is played, and what at the boundary."""

from enum import Enum

from worldmove.errors import MoveRefused


class Strategy(Enum):
    """Every way that there is a reckoning for, the one that costs least beside its pause first."""

    BOUNDARY_COPY = "boundary copy"
    """Nothing while it is played; the whole state at the boundary."""
    PRE_COPY = "pre-copy"
    """Rounds while it is played; at the boundary the rows that the destination has nowhere."""
    STREAMING = "streaming"
    """Each leaf as soon as it is final for its block; at the boundary what was final too late."""
    REPLAY = "replay"
    """A snapshot while it is played, then the input lists; at the boundary nothing."""

    @property
    def begins_early(self) -> bool:
        """Whether something is done before the boundary: the controller begins it, and starts once it is ready."""
        return self is not Strategy.BOUNDARY_COPY

    @property
    def has_rounds(self) -> bool:
        """Whether what has changed is pulled again and again before the boundary, and found there by its content."""
        return self in (Strategy.PRE_COPY, Strategy.STREAMING)

    @property
    def alike(self) -> "tuple[Strategy, ...]":
        """Those whose pauses go the same way, this one included: what one has measured there says something of both."""
        return (Strategy.PRE_COPY, Strategy.STREAMING) if self.has_rounds else (self,)


WIRED: tuple[Strategy, ...] = tuple(Strategy)
"""Those that both drivers carry out: one that is added here is admitted, chosen, offered and taken everywhere."""


def pick(wanted: str | None = None) -> Strategy:
    """Return a strategy by its name, with spaces or dashes; without one a boundary copy. Raises MoveRefused."""
    if wanted is None:
        return Strategy.BOUNDARY_COPY
    for strategy in WIRED:
        if wanted.replace(" ", "-") == slug(strategy):
            return strategy
    known = ", ".join(strategy.value for strategy in WIRED)
    raise MoveRefused("strategy", f"there is no strategy named {wanted}; there is {known}")


def slug(strategy: Strategy) -> str:
    """Return a strategy's name as one word, for a command line."""
    return strategy.value.replace(" ", "-")
