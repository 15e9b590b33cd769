"""How somebody wants a move to be made, beside where to. Pure."""

from dataclasses import dataclass

from worldmove.move.strategy import Strategy


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """Left as it is, everything is chosen."""

    damage: bool = False
    """Every try's bytes pass the Corrupting wrapper (*Break it*)."""
    strategy: Strategy | None = None
    """None: admission chooses."""
    link: str | None = None
    """The speed that the path is slowed down to, such as ``1gbit``. None: as fast as it is."""


AS_CHOSEN = Wish()
"""Nothing is wished for."""
