"""Who hears of work on a state that gets on, piece by piece: or nobody."""

from collections.abc import Callable

GetsOn = Callable[[], None]


def unheard() -> None:
    """Nobody waits for what gets on here."""
