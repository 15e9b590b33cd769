"""What the controller asks of the ledger in the place of an end that cannot ask."""

from worldmove.move.ledger_messages import CloseAttempt
from worldmove.move.messages import CONTROLLER


def closing(session: str, attempt: str, epoch: int) -> CloseAttempt:
    """An inquiry of the controller's, which closes. It holds no copy, so its boundary says nothing."""
    return CloseAttempt(session=session, attempt=attempt, epoch=epoch, worker=CONTROLLER, incarnation=0, boundary=0)
