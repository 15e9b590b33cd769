"""Which path a move takes: the one that is configured, or the next one where that has lied. Pure.

A path is a pair of workers, in this direction, and a transport. It is taken out of service by what it did (bytes of a
state arrived as others than were sent), never by its name or by what a device says that it can; and it comes back when
the time is over. Every move is verified whichever path it takes, so a path that has none to follow it goes on serving.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType

FALLBACKS: Mapping[str, str] = MappingProxyType({"shm": "tcp", "peer": "staged", "staged": "tcp"})
"""What is tried instead: through more hands, and through none of those that lied."""

ORDER = ("peer", "shm", "staged", "tcp")
"""The paths of this version, the fastest first."""

Pair = tuple[str, str]


def available(wanted: str, here: Mapping[str, float], there: Mapping[str, float]) -> str:
    """Return the wanted path if both workers have measured it; else the fastest kind that both have measured.

    A worker measures what it has before its hello: ``here`` and ``there`` are its rates. A slot on a device has no
    shared memory, and one in host memory no peer.
    """
    both = measured(here, there)
    return wanted if wanted in both or wanted not in ORDER or not both else both[0]


def measured(here: Mapping[str, float], there: Mapping[str, float]) -> list[str]:
    """Return the paths that both workers have measured, the fastest kind first."""
    return [name for name in ORDER if f"{name}_bytes_per_s" in here and f"{name}_bytes_per_s" in there]


class PathHealth:
    """The paths that have lied. Times in seconds, of one clock."""

    def __init__(self, *, quarantine_s: float) -> None:
        self._quarantine_s = quarantine_s
        self._until: dict[tuple[Pair, str], float] = {}

    def choose(self, pair: Pair, transport: str, now: float, both: Collection[str] = ()) -> str:
        """Return the path to take from the first worker of a pair to the second.

        ``both``: those that both have measured. What follows a path that lied is one of them, where any is known.
        """
        chosen = transport
        while chosen in FALLBACKS and (
            self.is_quarantined(pair, chosen, now) or (both and chosen != transport and chosen not in both)
        ):
            chosen = FALLBACKS[chosen]
        return chosen

    def is_quarantined(self, pair: Pair, transport: str, now: float) -> bool:
        """Whether this path has lied not long ago."""
        return now < self._until.get((pair, transport), now)

    def lied(self, pair: Pair, transport: str, now: float) -> bool:
        """Take a path out of service; return whether another is taken instead."""
        self._until[pair, transport] = now + self._quarantine_s
        return transport in FALLBACKS
