"""What one worker lends to the drivers of all its moves: the link, the ledger, threads, transports, a clock."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from worldmove.move.ledger_messages import Answer, Operation
from worldmove.move.messages import AnyMoveMessage
from worldmove.state.digest import Digester
from worldmove.state.environment import Environment
from worldmove.transport.base import Blocking, Transport


class Post(Protocol):
    def __call__(self, message: AnyMoveMessage, /) -> None:
        """Send a message to whom its ``to`` names. It may be lost; it never waits."""
        ...


class LedgerClient(Protocol):
    async def ask(self, operation: Operation) -> Answer | None:
        """Put one operation to the ledger. None is silence: it may or may not have been done."""
        ...


def uncounted(attempt: str = "") -> None:
    """Nobody waits for what gets on here."""


def unlogged(event: str, **fields: object) -> None:
    """A log that keeps nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What one worker lends to the drivers of all its moves."""

    worker: str
    incarnation: int
    environment: Environment
    post: Post
    ledger: LedgerClient
    blocking: Blocking
    digester: Digester
    transports: Mapping[str, Transport]
    """By the name that an offer gives."""
    clock: Callable[[], float]
    """Monotonic, seconds; ``loop.time``. Two workers on one host share its axis."""
    gets_on: Callable[[str], None] = uncounted
    """Hears of each piece of a state that has come from another worker, or was digested, by any thread.

    With the move's attempt; "" for what is no move's.
    """
    log: Callable[..., None] = unlogged
    """An event and its fields, on each change of phase. ``at``: when it was, by ``clock``, where it is said later."""
