"""Whether a ledger knows less of a session than a worker does: it has lost a write.

An epoch is the ledger's to give, and is durable before a worker hears of it. So a copy of an epoch that the row does
not know, or that it gives to another, tells of a ledger that was put back. Nobody acts on that one: what it granted now
was granted before. The session waits where it is until the newest file is back, or somebody closes it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from worldmove.fleet.workers import WorkerRecord
from worldmove.move.ledger_row import Row

OWNED = ("live", "frozen", "superseded", "retired")
"""Phases of a copy whose epoch was granted to its worker."""
PLAYED = ("live", "frozen")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """A copy that the ledger cannot have known of."""

    worker: str
    epoch: int


def ahead(row: Row, workers: Iterable[WorkerRecord]) -> Ahead | None:
    """Return the copy of the latest epoch that the row knows nothing of; None where there is none such."""
    found = [
        Ahead(worker=worker.name, epoch=copy.epoch)
        for worker in workers
        for copy in worker.copies
        if copy.session == row.session
        and copy.phase in OWNED
        and (copy.epoch > row.epoch or (copy.epoch == row.epoch and copy.phase in PLAYED and not _owns(row, worker)))
    ]
    return max(found, key=lambda one: one.epoch, default=None)


def _owns(row: Row, worker: WorkerRecord) -> bool:
    return (row.owner, row.incarnation) == (worker.name, worker.incarnation)
