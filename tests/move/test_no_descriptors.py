"""A worker that may open no more files: a move of whichever strategy ends at once, says so, and the session plays."""

from typing import Any

import pytest

from tests.attacks.attacked import Attacked
from tests.move.test_no_memory import WAYS, begun, ends_well
from tests.move.virtual import run
from worldmove.errors import NoDescriptors
from worldmove.transport.wrappers import Wrapped


class AtItsLimit(Wrapped):
    """A path that can be opened so often, and then no more until more is allowed."""

    def __init__(self, inner: Any, allowed: int) -> None:
        super().__init__(inner, inner.name)
        self.allowed = allowed
        self.num_opened = 0

    async def connect(self, ticket: bytes) -> Any:
        if self.num_opened >= self.allowed:
            raise NoDescriptors("nothing can be connected here: [Errno 24] Too many open files")
        self.num_opened += 1
        return await self._inner.connect(ticket)


def limited(fleet: Attacked, allowed: int) -> AtItsLimit:
    path = AtItsLimit(fleet.transports["loopback"], allowed)
    fleet.transports["loopback"] = path
    return path


def tried(way: str, allowed: int) -> tuple[str, int, float]:
    """Return why a move ended, how often a path was opened, and how long it took, in virtual seconds."""

    async def main() -> tuple[str, int, float]:
        fleet = await begun(way)
        path = limited(fleet, allowed)
        clock = fleet.workers["B"].host.clock
        began = clock()
        why = await ends_well(fleet)
        took_s, num_opened = clock() - began, path.num_opened
        path.allowed = 1 << 20
        return why, num_opened, took_s

    return run(main())


@pytest.mark.parametrize("way", WAYS)
def test_whichever_opening_of_a_path_finds_no_descriptor_the_move_ends_at_once_with_that_reason(way: str) -> None:
    why, num_opened, usual_s = tried(way, 1 << 20)
    assert why == "done"
    assert num_opened > 0
    for allowed in range(num_opened):
        why, _, took_s = tried(way, allowed)
        is_component = way == "streaming" and why == "done"  # what cannot be followed is pulled over the other path
        assert why == "no_descriptors" or is_component
        assert took_s < usual_s + 1.0


def test_the_first_opening_is_enough_to_see_it_in_every_strategy() -> None:
    assert {tried(way, 0)[0] for way in WAYS} == {"no_descriptors"}
