"""What the controller says to both ends of one try."""

from collections.abc import Callable

from worldmove.fleet.config import FleetConfig
from worldmove.fleet.tries import Plan
from worldmove.fleet.workers import WorkerRecord
from worldmove.move.affordable import Affordable
from worldmove.move.messages import AnyMoveMessage, Begin, Cancel, Inquire, Offer, Prepare, Prepared, Start


class Ends:
    """Tells a try's source and destination what to do. Each word may be lost, and may be said again."""

    def __init__(self, plan: Plan, *, config: FleetConfig, send: Callable[[str, AnyMoveMessage], None]) -> None:
        self._plan = plan
        self._config = config
        self._send = send

    def prepare(self) -> None:
        """Have the source say what it would move."""
        self._tell(self._plan.source, Prepare, transport=self._plan.transport, stays=self._plan.is_protected)

    def offer(self, prepared: Prepared, most: Affordable | None) -> None:
        """Have the destination make room for what the source has said. ``most``: what it may leave for the end."""
        config, plan = self._config, self._plan
        self._tell(
            plan.destination,
            Offer,
            layout=prepared.layout,
            environment=prepared.environment,
            ticket=prepared.ticket,
            nonce=plan.nonce,
            source=plan.source.name,
            source_incarnation=plan.source.incarnation,
            transport=plan.transport,
            strategy=plan.strategy.value,
            lease_s=config.lease_s,
            patience_s=config.patience_s,
            affordable_bytes=None if most is None else most.standing,
            pause_bytes=None if most is None else most.in_pause,
        )

    def begin(self) -> None:
        """Have both do what comes before the boundary; said again, it is still wanted."""
        for end in (self._plan.source, self._plan.destination):
            self._begin(end)

    def go_on(self) -> None:
        """Have a destination that waits for its source go on waiting: nobody else says that the move is conducted."""
        self._begin(self._plan.destination)

    def _begin(self, end: WorkerRecord) -> None:
        config, plan = self._config, self._plan
        self._tell(
            end,
            Begin,
            destination=plan.destination.name,
            destination_incarnation=plan.destination.incarnation,
            nonce=plan.nonce,
            lease_s=config.lease_s,
            patience_s=config.patience_s,
            strategy=plan.strategy.value,
        )

    def start(self) -> None:
        """Have the source freeze at its next boundary."""
        plan = self._plan
        self._tell(
            plan.source,
            Start,
            destination=plan.destination.name,
            destination_incarnation=plan.destination.incarnation,
            nonce=plan.nonce,
        )

    def wake(self, end: WorkerRecord) -> None:
        """Have an end give up if it may, and ask the ledger if it may not."""
        self._tell(end, Cancel)
        self._tell(end, Inquire)

    def cancel(self) -> None:
        """Have both give up, if they may."""
        for end in (self._plan.source, self._plan.destination):
            self._tell(end, Cancel)

    def _tell(self, to: WorkerRecord, kind: type[AnyMoveMessage], **fields: object) -> None:
        self._send(to.name, self._plan.message(to.name, kind, **fields))
