"""Who is to blame for a move that has failed its proof, by every strategy: an engine that wrote, or a path."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.move.harness import Copy, Fleet, Outcome, Plays, World
from tests.move.rolling import FIRST_BLOCKS, ROW_BYTES, Rolling, install
from tests.move.virtual import run
from worldmove.move.messages import Boundary, Landed
from worldmove.move.passes import Passes
from worldmove.move.strategy import Strategy
from worldmove.state.extent import Extent
from worldmove.transport.loopback import Loopback, LoopbackChannel

PULLED = (Strategy.BOUNDARY_COPY, Strategy.PRE_COPY, Strategy.STREAMING)
"""The strategies by which bytes travel at the boundary."""
every = pytest.mark.parametrize("strategy", [*PULLED, Strategy.REPLAY], ids=lambda strategy: strategy.value)
pulled = pytest.mark.parametrize("strategy", PULLED, ids=lambda strategy: strategy.value)
Arm = Callable[[Fleet, Callable[[], None]], None]


class Lying(Loopback):
    """Once the session is frozen, what it brings has a flipped bit; or from the first byte on."""

    is_on = False

    async def connect(self, ticket: bytes) -> LoopbackChannel:
        channel = await super().connect(ticket)
        pull = channel.pull

        async def lying(wanted: Sequence[Extent], into: memoryview) -> None:
            await pull(wanted, into)
            if self.is_on and wanted:
                into[wanted[0].offset] ^= 1

        channel.pull = lying  # type: ignore[method-assign, assignment]
        return channel


def moved(strategy: Strategy, arm: Arm, leaf: str) -> Outcome:
    """Move a world once; ``arm`` is given what writes one of its leaves."""
    return moves(strategy, arm, leaf, 1)[0]


def moves(strategy: Strategy, arm: Arm, leaf: str, num: int) -> list[Outcome]:
    """Move a world some times, until it is at its destination."""

    async def story() -> list[Outcome]:
        tokens = iter(range(1 << 20))
        fleet = Fleet(world=World(first=Rolling, install=install))
        fleet.transports["loopback"] = Lying(
            blocking=fleet.workers["A"].host.blocking, tokens=lambda: next(tokens).to_bytes(32, "big")
        )
        fleet.source_config = replace(fleet.source_config, row_bytes=ROW_BYTES)
        await fleet.play(FIRST_BLOCKS)
        assert (await fleet.move("B")).outcomes == ("committed", "committed")
        await fleet.play(2)
        await fleet.settled()
        fleet.strategy, fleet.waits_for_ready_s = strategy.value, 0.5
        arm(fleet, writing(fleet.owner, leaf))
        playing = fleet.play_on()
        outcomes = []
        for _ in range(num):
            outcomes.append(await fleet.move("A"))
            await fleet.wait(1.0)
        await playing.end()
        return outcomes

    return run(story())


def writing(copy: Copy, leaf: str) -> Callable[[], None]:
    """Return what writes a leaf of a frozen copy, once."""
    times: list[None] = []

    def write() -> None:
        if copy.plays is Plays.FROZEN and not times:
            times.append(None)
            getattr(copy.world, leaf).view(-1)[0].add_(1.0)

    return write


def at(kind: type) -> Arm:
    def arm(fleet: Fleet, write: Callable[[], None]) -> None:
        fleet.on_post = lambda message: write() if isinstance(message, kind) else None

    return arm


def reasons(outcome: Outcome) -> dict[str, str]:
    return {end.side: end.reason for end in outcome.ended if end.outcome == "aborted"}


def said(outcome: Outcome, side: str) -> str:
    end = outcome.of(side)
    assert end is not None
    return end.detail


@pulled
@pytest.mark.parametrize("leaf", ["static", "keys", "window"])
def test_an_engine_that_writes_once_all_has_landed_is_blamed_by_both_ends(strategy: Strategy, leaf: str) -> None:
    outcome = moved(strategy, at(Landed), leaf)
    assert reasons(outcome) == {"source": "engine_wrote", "destination": "engine_wrote"}
    assert said(outcome, "source") == f"the engine wrote after its block boundary: {leaf}"


@every
def test_an_engine_that_writes_between_the_two_passes_is_blamed_by_both_ends(
    strategy: Strategy, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Passes.first

    def arm(fleet: Fleet, write: Callable[[], None]) -> None:
        async def before_a_write(passes: Passes, frozen: Any) -> Any:
            proof = await first(passes, frozen)
            write()
            return proof

        monkeypatch.setattr(Passes, "first", before_a_write)

    outcome = moved(strategy, arm, "static")
    assert reasons(outcome) == {"source": "engine_wrote", "destination": "engine_wrote"}


@pulled
def test_an_engine_that_writes_what_had_been_copied_into_its_slot_before_both_passes_is_blamed_by_its_own_end(
    strategy: Strategy,
) -> None:
    """What it binds anew is pulled from the slot, and proven where it is played from: both passes have the new one."""
    outcome = moved(strategy, at(Boundary), "window")
    assert reasons(outcome) == {"source": "engine_wrote", "destination": "mismatch"}
    assert said(outcome, "source") == "the engine wrote after its block boundary: window"


@pytest.mark.parametrize("strategy", [Strategy.PRE_COPY, Strategy.STREAMING], ids=lambda strategy: strategy.value)
@pytest.mark.parametrize("leaf", ["static", "keys"])
def test_an_engine_that_writes_rows_of_which_was_told_that_they_are_as_before_is_blamed_by_its_own_end(
    strategy: Strategy, leaf: str
) -> None:
    """Nothing of them is pulled: no path can have damaged them."""
    outcome = moved(strategy, at(Boundary), leaf)
    assert reasons(outcome) == {"source": "engine_wrote", "destination": "mismatch"}
    assert said(outcome, "source") == f"the engine wrote after its block boundary: {leaf}"


@pulled
def test_a_path_that_lies_is_blamed_by_both_ends(strategy: Strategy) -> None:
    def arm(fleet: Fleet, write: Callable[[], None]) -> None:
        path = fleet.transports["loopback"]
        assert isinstance(path, Lying)
        if strategy is Strategy.BOUNDARY_COPY:
            path.is_on = True
        else:  # what came before the boundary is known by its content: only what is pulled there is played unseen
            fleet.on_post = lambda message: setattr(path, "is_on", isinstance(message, Boundary) or path.is_on)
            fleet.finals = lambda copy: ()
            fleet.waits_for_ready_s = 0.0

    outcome = moved(strategy, arm, "static")
    assert reasons(outcome) == {"source": "mismatch", "destination": "mismatch"}
    assert "arrived damaged from B over loopback" in said(outcome, "destination")


def test_what_a_replay_computes_otherwise_is_blamed_on_no_path_whoever_wrote() -> None:
    outcome = moved(Strategy.REPLAY, at(Boundary), "static")
    assert reasons(outcome) == {"source": "diverged", "destination": "diverged"}


@pulled
def test_an_engine_that_was_blamed_is_moved_once_it_is_quiet(strategy: Strategy) -> None:
    first, second = moves(strategy, at(Boundary), "window", 2)
    assert (first.outcomes, second.outcomes) == (("aborted", "aborted"), ("committed", "committed"))
