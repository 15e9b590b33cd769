"""What a source has laid out for one attempt: its layout described, its arena open to be read."""

from dataclasses import dataclass

from worldmove.errors import MoveRefused, WorldMoveError
from worldmove.limits import MAX_BLOB_BYTES
from worldmove.move.device_path import export_slot
from worldmove.move.host import Host
from worldmove.move.messages import Begin, Cancel, Declined, Prepare, Prepared, Start
from worldmove.move.reply import reply
from worldmove.move.source_copy import SourceCopy


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """One ticket, and the layout that the attempt's nonce is bound to."""

    transport: str
    layout_digest: bytes
    prepared: Prepared


class Exports:
    """The one export of a copy: the newest attempt's."""

    def __init__(self, *, host: Host, copy: SourceCopy) -> None:
        self._host = host
        self._copy = copy
        self._current: Export | None = None

    def of(self, start: Begin | Start | Cancel) -> Export | None:
        """Return what was prepared for this attempt, if it was."""
        return self._current if self._current and self._current.prepared.attempt == start.attempt else None

    async def prepare(self, asked: Prepare) -> None:
        """Describe the session, export its arena, and answer; or decline, and nothing is exported.

        Asked again, it gives the same ticket: a destination may be using it already.
        """
        if self._current is None or self._current.prepared.attempt != asked.attempt:
            await self.withdraw()
            try:
                self._current = await self._export(asked)
            except MoveRefused as error:
                self._decline(asked, error.reason, error.detail)
            except WorldMoveError as error:
                self._decline(asked, error.code, str(error))
        if self._current is not None:
            self._host.post(self._current.prepared)

    async def withdraw(self) -> None:
        """End the export, if there is one."""
        export, self._current = self._current, None
        if export is not None:
            await self._host.transports[export.transport].withdraw(export.prepared.ticket)

    async def _export(self, asked: Prepare) -> Export:
        transport = self._host.transports.get(asked.transport)
        if transport is None:
            raise MoveRefused("transport", f"{self._host.worker} has no path named {asked.transport}")
        layout = await self._copy.layout()
        encoded = layout.to_bytes()
        if len(encoded) > MAX_BLOB_BYTES:
            raise MoveRefused("state_too_large", f"its layout has {len(encoded):,} bytes, more than a message may")
        prepared = reply(
            self._host,
            asked,
            Prepared,
            layout=encoded,
            environment=dict(self._host.environment.fields),
            ticket=await export_slot(transport, self._copy.arena),
            block_s=self._copy.block_s,
        )
        return Export(transport=asked.transport, layout_digest=layout.digest, prepared=prepared)

    def _decline(self, asked: Prepare, reason: str, detail: str) -> None:
        self._host.post(reply(self._host, asked, Declined, reason=reason, detail=detail[:2048]))
