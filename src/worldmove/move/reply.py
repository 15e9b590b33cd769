"""An answer to a message of a move, in its worker's name."""

from typing import Any, TypeVar

from worldmove.move.host import Host
from worldmove.move.messages import MoveMessage
from worldmove.move.sayable import sayable

MessageT = TypeVar("MessageT", bound=MoveMessage)


def reply(host: Host, asked: MoveMessage, kind: type[MessageT], **fields: Any) -> MessageT:
    """Return a message to whoever asked, about the same attempt."""
    return kind(
        to=asked.sender,
        sender=host.worker,
        incarnation=host.incarnation,
        session=asked.session,
        attempt=asked.attempt,
        epoch=asked.epoch,
        **sayable(fields),
    )
