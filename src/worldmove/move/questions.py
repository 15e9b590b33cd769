"""What an end of a move asks of the ledger, in its worker's name."""

from worldmove.move.host import Host
from worldmove.move.ledger_messages import CloseAttempt, CommitAttempt, Reclaim


def close(host: Host, session: str, attempt: str, *, epoch: int, boundary: int) -> CloseAttempt:
    """An inquiry, which closes. ``epoch`` is the asker's own, or that of the attempt."""
    return CloseAttempt(
        session=session,
        attempt=attempt,
        epoch=epoch,
        worker=host.worker,
        incarnation=host.incarnation,
        boundary=boundary,
    )


def commit(host: Host, session: str, attempt: str, *, epoch: int, boundary: int) -> CommitAttempt:
    """The one compare-and-swap: from the owner in ``epoch`` to this worker."""
    return CommitAttempt(
        session=session,
        attempt=attempt,
        epoch=epoch,
        boundary=boundary,
        worker=host.worker,
        incarnation=host.incarnation,
    )


def reclaim(host: Host, session: str, *, epoch: int, reach: tuple[int, int]) -> Reclaim:
    """Ask for a session whose owner in ``epoch`` may be gone. ``reach`` is that of the copy: see ``SourceCopy``."""
    acknowledged, computed = reach
    return Reclaim(
        session=session,
        epoch=epoch,
        acknowledged=acknowledged,
        computed=computed,
        worker=host.worker,
        incarnation=host.incarnation,
    )
