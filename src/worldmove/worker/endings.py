"""Untimely ends of a session's part in a worker: its engine raises, its conduct fails, it plays otherwise."""

from collections.abc import Callable

from worldmove.errors import EngineFailed
from worldmove.move.sayable import said
from worldmove.worker.containment import Containment
from worldmove.worker.copies import CopyTable
from worldmove.worker.drivers import Drivers
from worldmove.worker.messages import Failed, GiveUp, ToServer
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.slots import SlotState

ELSEWHERE = (CopyPhase.SHADOW, CopyPhase.FOLLOWING, CopyPhase.SUPERSEDED, CopyPhase.RETIRED)
"""Phases of a copy whose session another worker plays."""


class Endings:
    """One worker's. The others go on."""

    def __init__(
        self, *, copies: CopyTable, drivers: Drivers, containment: Containment, send: Callable[[ToServer], None]
    ) -> None:
        self._copies = copies
        self._drivers = drivers
        self._send = send
        copies.on_failed = self._engine_failed
        containment.end_part = self._end_part

    def give_up(self, message: GiveUp) -> None:
        """What this copy has made is none of its world's blocks: it is freed, as one whose engine has raised."""
        copy = self._copies.get(message.session)
        if copy is None or copy.epoch != message.epoch or copy.phase not in (CopyPhase.LIVE, CopyPhase.FROZEN):
            return
        self._engine_failed(copy, EngineFailed(message.why))
        copy.end()

    def _engine_failed(self, copy: SessionCopy, error: EngineFailed) -> None:
        """An engine has raised in mid-step: this session cannot go on here, and the others do.

        One that only followed goes on where it is played; its move's driver finds out.
        """
        if copy.phase is CopyPhase.FOLLOWING:
            return
        self._send(Failed(session=copy.name, code=error.code, message=said(str(error))))
        self._drivers.failed(copy, str(error))

    async def _end_part(self, session: str, why: str) -> None:
        """This session's conduct has failed here: it goes on elsewhere, or nowhere, and the others go on."""
        copy = self._copies.get(session)
        if copy is not None and (copy.phase not in ELSEWHERE or _is_opening(copy)):
            self._send(Failed(session=session, code="internal", message=why))
        await self._drivers.break_off(session, copy, why)


def _is_opening(copy: SessionCopy) -> bool:
    """Whether a copy is of a session that is being opened here, and not moved."""
    return copy.phase is CopyPhase.SHADOW and copy.slot.state is SlotState.BOUND
