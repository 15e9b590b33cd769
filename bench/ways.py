"""How moves are asked for on a command line: ``any@10gbit*20,replay@25gbit*4,streaming*3``. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from worldmove.errors import UserError
from worldmove.move.strategy import pick, slug
from worldmove.transport.link_speed import rate_of_link

ANY = "any"
"""The strategy that admission chooses."""
AS_IS = "as it is"
"""A link without a limit."""
ONE = re.compile(r"(?P<strategy>[a-z-]+)(@(?P<link>[0-9.]+[kmg]bit))?(\*(?P<count>[0-9]+))?")


@dataclass(frozen=True, slots=True)
class Ask:
    """One way to ask for a move. ``strategy`` None: as admission chooses; ``link`` None: as fast as the path is."""

    strategy: str | None = None
    link: str | None = None

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.strategy or ANY}, {self.link or AS_IS}"


def ways_of(text: str) -> list[tuple[Ask, int]]:
    """Read ways, and how often each is to be taken. Raises UserError."""
    return [_one(part) for part in text.split(",") if part]


def _one(text: str) -> tuple[Ask, int]:
    found = ONE.fullmatch(text)
    if found is None or (found["link"] and rate_of_link(found["link"]) is None):
        raise UserError(f"{text} says no way to move; write it like {ANY}@10gbit*20 or replay*5")
    strategy = None if found["strategy"] == ANY else slug(pick(found["strategy"]))
    return Ask(strategy, found["link"]), int(found["count"] or 1)


def woven(ways: Sequence[tuple[Ask, int]]) -> list[Ask]:
    """Return every single move in an order in which each way is spread evenly: at any time all are as far."""
    places = [((number + 0.5) / count, at, way) for at, (way, count) in enumerate(ways) for number in range(count)]
    return [way for _, _, way in sorted(places, key=lambda place: place[:2])]
