"""One end's changes of phase, for the log: each noted with its instant, and written when nobody waits for this end.

Between a freeze and the answer to the commit the session stands still, and a line that is written then makes it stand
still for longer.
"""

from enum import Enum

from worldmove.move.host import Host


class PhaseLog:
    """The lines of one driver that are not yet written."""

    def __init__(self, host: Host, *, side: str, session: str) -> None:
        self._host = host
        self._side = side
        self._session = session
        self._noted: list[dict[str, object]] = []

    def note(self, before: Enum, after: Enum, why: Enum, *, attempt: str, epoch: int) -> None:
        """Note that an event has led from one phase to another. Writes nothing."""
        if after is not before:
            self._noted.append(
                {
                    "at": self._host.clock(),
                    "side": self._side,
                    "phase": after.value,
                    "before": before.value,
                    "why": why.name.lower(),
                    "session": self._session,
                    "attempt": attempt,
                    "epoch": epoch,
                }
            )

    def write(self) -> None:
        """Write what was noted, in order."""
        noted, self._noted = self._noted, []
        for fields in noted:
            self._host.log("move_phase", **fields)
