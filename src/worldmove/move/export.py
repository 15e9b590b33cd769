"""What a source has laid out for one attempt: its layout described, its arena open to be read."""

from dataclasses import dataclass

from worldmove.errors import WorldMoveError
from worldmove.move.hosts import Host, SourceCopy
from worldmove.move.messages import Declined, Prepare, Prepared, Start


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One ticket, and the layout that the attempt's nonce is bound to."""

    attempt: str
    transport: str
    ticket: bytes
    layout_digest: bytes


class Exports:
    """The one export of a copy: the newest attempt's."""

    def __init__(self, *, host: Host, copy: SourceCopy) -> None:
        self._host = host
        self._copy = copy
        self._current: Export | None = None

    def of(self, start: Start) -> Export | None:
        """Return what was prepared for this attempt, if it was."""
        return self._current if self._current is not None and self._current.attempt == start.attempt else None

    async def prepare(self, asked: Prepare) -> None:
        """Describe the session, export its arena, and answer; or decline, and nothing is exported."""
        await self.withdraw()
        try:
            reply = await self._prepared(asked)
        except WorldMoveError as error:
            reply = self._declined(asked, error.code, str(error))
        self._host.post(reply)

    async def withdraw(self) -> None:
        """End the export, if there is one."""
        export, self._current = self._current, None
        if export is not None:
            await self._host.transports[export.transport].withdraw(export.ticket)

    async def _prepared(self, asked: Prepare) -> Prepared | Declined:
        transport = self._host.transports.get(asked.transport)
        if transport is None:
            return self._declined(asked, "transport", f"{self._host.worker} has no path named {asked.transport}")
        layout = await self._copy.layout()
        ticket = await transport.export(self._copy.arena)
        self._current = Export(
            attempt=asked.attempt, transport=asked.transport, ticket=ticket, layout_digest=layout.digest
        )
        return Prepared(
            to=asked.sender,
            sender=self._host.worker,
            incarnation=self._host.incarnation,
            session=asked.session,
            attempt=asked.attempt,
            epoch=asked.epoch,
            layout=layout.to_bytes(),
            environment=dict(self._host.environment.fields),
            ticket=ticket,
            block_s=self._copy.block_s,
        )

    def _declined(self, asked: Prepare, reason: str, detail: str) -> Declined:
        return Declined(
            to=asked.sender,
            sender=self._host.worker,
            incarnation=self._host.incarnation,
            session=asked.session,
            attempt=asked.attempt,
            epoch=asked.epoch,
            reason=reason,
            detail=detail[:2048],
        )
