"""Posts of a fleet that treat some messages otherwise than others: when each arrives, in seconds, however often."""

from collections.abc import Callable

from worldmove.move.messages import AnyMoveMessage


def first(kind: type, deliveries: tuple[float, ...]) -> Callable[[AnyMoveMessage], tuple[float, ...]]:
    """A post that treats the first message of a kind as said, and every other one well."""
    seen: list[AnyMoveMessage] = []

    def fault(message: AnyMoveMessage) -> tuple[float, ...]:
        if not isinstance(message, kind) or seen:
            return (0.0005,)
        seen.append(message)
        return deliveries

    return fault


def every(kind: type, deliveries: tuple[float, ...]) -> Callable[[AnyMoveMessage], tuple[float, ...]]:
    """A post that treats every message of a kind as said."""
    return lambda message: deliveries if isinstance(message, kind) else (0.0005,)
