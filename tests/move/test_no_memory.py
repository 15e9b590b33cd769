"""Memory that cannot be had, wherever it is asked for: the move goes on plainly or ends, and its session is played."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pytest

from tests.attacks import brook
from tests.attacks.attacked import WORLD, Attacked
from tests.move.decoded import Part
from tests.move.harness import Copy, Worker
from tests.move.virtual import inline, run
from worldmove.errors import NoMemory
from worldmove.move.messages import AnyMoveMessage, Component

T = TypeVar("T")
Go = Callable[[Attacked], None]

LIMIT_S = 8.0
MOST_SEAMS = 6
"""Of each end and way: spread over all that there are."""


def go_ahead(fleet: Attacked) -> None:
    fleet.go_ahead(plays_on=True)


def go_streaming(fleet: Attacked) -> None:
    fleet.go_streaming(rests=True)


def go_plainly(fleet: Attacked) -> None:
    fleet.at_ease()


WAYS: dict[str, Go] = {
    "plain": go_plainly,
    "pre-copy": go_ahead,
    "streaming": go_streaming,
    "replay": Attacked.go_following,
}


class Scarce:
    """Blocking work of a worker: the ``nth`` finds no memory. ``raised``: in which words."""

    def __init__(self, nth: int, raised: BaseException) -> None:
        self.num_asked = 0
        self._nth = nth
        self._raised = raised

    async def __call__(self, function: Callable[[], T], /) -> T:
        self.num_asked += 1
        if self.num_asked - 1 == self._nth:
            raise self._raised
        return await inline(function)


async def begun(way: str) -> Attacked:
    fleet = Attacked(brook.WORLD if way == "streaming" else WORLD)
    await fleet.play(3)
    WAYS[way](fleet)
    return fleet


async def ends_well(fleet: Attacked) -> str:
    """Let the move end, and see that nothing is left of it; return what it came to."""
    outcome = await fleet.move("B", limit_s=LIMIT_S)
    fleet.at_ease()
    fleet.spend(outcome)
    await fleet.play(2)
    assert fleet.crashed() == []
    assert await fleet.alone(), "a slot is neither free nor played"
    assert len(fleet.live()) == 1
    assert fleet.owner.world.bytes_of() == fleet.oracle.bytes_of()  # type: ignore[attr-defined]
    assert fleet.wrong == []
    return next((end.reason for side in ("destination", "source") if (end := outcome.of(side)) is not None), "declined")


def scarce(fleet: Attacked, worker: str, nth: int, raised: BaseException) -> Scarce:
    found: Worker = fleet.workers[worker]
    work = Scarce(nth, raised)
    object.__setattr__(found.host, "blocking", work)
    return work


def tried(way: str, worker: str, nth: int, raised: BaseException) -> tuple[int, str]:
    """Move once; return how much blocking work there was at a worker, and why the move ended."""

    async def main() -> tuple[int, str]:
        fleet = await begun(way)
        work = scarce(fleet, worker, nth, raised)
        before = fleet.on_promote
        asked = list[int]()

        def promoted(copy: Copy) -> None:
            before(copy)
            asked.append(work.num_asked)

        fleet.on_promote = promoted
        why = await ends_well(fleet)
        return asked[0] if asked else work.num_asked, why

    return run(main())


@pytest.mark.parametrize("worker", ["A", "B"])
@pytest.mark.parametrize("way", WAYS)
def test_work_of_either_end_that_finds_no_memory_ends_no_driver(way: str, worker: str) -> None:
    num_seams, why = tried(way, worker, -1, NoMemory("-"))
    assert (why, num_seams > 0) == ("done", True)
    whys = {
        tried(way, worker, nth, NoMemory("all is taken"))[1] for nth in range(0, num_seams, -(-num_seams // MOST_SEAMS))
    }
    assert whys <= {"done", "no_memory", "declined"}
    assert "no_memory" in whys


def test_a_driver_that_finds_no_memory_itself_gives_the_move_up_and_says_so() -> None:
    assert tried("plain", "B", 0, MemoryError())[1] == "no_memory"


def test_a_component_for_which_there_is_no_memory_is_pulled() -> None:
    async def main() -> str:
        fleet = await begun("streaming")

        def none(copy: Copy, num_bytes: int) -> Part:
            raise NoMemory(f"{num_bytes} bytes")

        fleet.beside = none
        return await ends_well(fleet)

    assert run(main()) == "done"


@pytest.mark.parametrize("beyond", [1 << 20, 1 << 40])
def test_no_lie_about_where_a_component_lies_has_more_memory_asked_for_than_a_slot_has(beyond: int) -> None:
    asked: list[int] = []

    async def main() -> tuple[str, list[Any]]:
        fleet = await begun("streaming")

        def noted(copy: Copy, num_bytes: int) -> Part:
            asked.append(num_bytes)
            return Part(copy, num_bytes, step=brook.follow)

        def lied(message: AnyMoveMessage) -> list[tuple[float, AnyMoveMessage]]:
            if isinstance(message, Component):
                places = (*message.placement[:-1], message.placement[-1] + beyond)
                message = msgspec.structs.replace(message, placement=places)
            return [(0.0005, message)]

        fleet.beside, fleet.deliver = noted, lied
        why = await ends_well(fleet)
        return why, [line for line in fleet.logged if line["event"] == "not_followed"]

    why, not_followed = run(main())
    assert (asked, why, len(not_followed)) == ([], "done", 1)
    assert "a storage ends at" in str(not_followed[0]["why"])
