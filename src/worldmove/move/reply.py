"""What a worker says in its own name: an answer to a message of a move; that a session is gone from there."""

from typing import Any, TypeVar

from worldmove.move.host import Host
from worldmove.move.messages import CONTROLLER, Gone, MoveMessage
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


def gone(host: Host, session: str, epoch: int) -> Gone:
    """Return that a session, which the ledger says is this worker's in ``epoch``, has no copy here to be played on."""
    return Gone(
        to=CONTROLLER,
        sender=host.worker,
        incarnation=host.incarnation,
        session=session,
        attempt="-",
        epoch=epoch,
        owned_epoch=epoch,
    )
