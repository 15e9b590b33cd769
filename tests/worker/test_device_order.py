"""What the devices order in a boundary's pause, with the double for both: no word between the hosts has to come for it,
and none that comes late, never or wrongly makes what is installed another state."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

from tests.worker.device_engine import WIDTH, DeviceEngine, World
from tests.worker.test_device_move import ARENA_BYTES, peer
from tests.worker.test_move_between_workers import HEAD, Pair
from worldmove.engine.base import Block, KeyChange
from worldmove.move import second_pass
from worldmove.move.attempt import GaveUpError
from worldmove.move.messages import Abandon, Boundary, Cancel, Ended, Landed, Proof, Still
from worldmove.move.passes import Passes
from worldmove.move.protocol import SourceEvent
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import DeviceWindow
from worldmove.state.double_digests import PlanOfDouble
from worldmove.state.extent import Extent
from worldmove.state.gate import Latch, OwnGate, number_of
from worldmove.state.kits import kit_of
from worldmove.transport.peer import PeerChannel
from worldmove.worker.known_ahead import KnownAhead
from worldmove.worker.messages import BlockDone

NONCE = bytes(32)


def never(message: Any) -> bool:
    return False


class Aligned(DeviceEngine):
    """Binds its tensor anew at addresses that are alike: what an offer foretells of it holds."""

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        block = super().step(session, changes)
        session.rebound = bound_anew(session.rebound)
        return block


def bound_anew(tensor: torch.Tensor, remainder: int = 0) -> torch.Tensor:
    """Return a copy at an address with a remainder modulo 256."""
    room = np.empty(tensor.numel() + 128, dtype=np.float32)
    begin = (remainder - room.ctypes.data) % 256 // 4
    return torch.from_numpy(room[begin : begin + tensor.numel()]).view(tensor.shape).copy_(tensor)


def moved(
    trial: Callable[[Pair], Any], *, loses: Callable[[Any], bool] = never, engine: type[DeviceEngine] = Aligned
) -> None:
    async def run() -> None:
        pair = Pair(engines=(engine(), engine()), transports={"path": peer()}, arena_bytes=ARENA_BYTES, loses=loses)
        try:
            await pair.open_on_a(4)
            await trial(pair)
        finally:
            await pair.close()
        assert pair.benches["a"].failures == pair.benches["b"].failures == []

    asyncio.run(run())


async def ended(pair: Pair) -> tuple[str, str]:
    await pair.start_move("path")
    found: Ended = await pair.hears(Ended)
    return found.outcome, found.reason


async def say_still(pair: Pair) -> None:
    head = HEAD | {"sender": "a", "incarnation": 1}
    pair.benches["b"].worker.take(Still(to="b", **head))  # type: ignore[arg-type]
    await pair.benches["b"].settle()


async def offered_and_played_on(pair: Pair, block: int = 4, *, is_said_still: bool = False) -> None:
    """Offer it, and have it play a block before the move goes on; between the two its slot may be said to be still."""
    await pair.open_attempt("path")
    if is_said_still:
        await say_still(pair)
    pair.benches["a"].inputs(block)
    await pair.benches["a"].rest()
    pair.acknowledge("a", block)


async def goes_on(pair: Pair, *, num_ends: int = 1) -> Ended:
    """Let a move that is offered go on, and return what the last of so many ends says that it has come to."""
    pair.start()
    found: Ended = await pair.hears(Ended, num_ends)
    return found


def latch_of(pair: Pair) -> Latch:
    copy = pair.benches["a"].worker.copies.get("s-1")
    assert copy is not None
    arena = copy.slot.arena
    assert isinstance(arena, DeviceArena)
    assert arena.gate is not None
    return arena.gate.for_number(number_of(NONCE))


def test_a_source_proves_what_it_froze_though_no_word_of_the_landing_comes() -> None:
    async def trial(pair: Pair) -> None:
        assert await ended(pair) == ("committed", "done")
        assert len(pair.benches["a"].of(Proof)) == 1

    moved(trial, loses=lambda message: isinstance(message, Landed))


def test_a_destination_whose_device_says_nothing_is_waited_for_until_its_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[bool] = []
    by_host = Latch.open

    def noted(self: Latch) -> None:
        opened.append(self.is_open())
        by_host(self)

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(PeerChannel, "tell_read", lambda self, number: None)
        monkeypatch.setattr(Latch, "open", noted)
        assert await ended(pair) == ("committed", "done")
        assert opened[0] is False

    moved(trial)


@pytest.mark.parametrize("end", ["source", "destination"])
def test_where_a_move_is_given_up_nothing_waits_at_the_gate_any_more(monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(PeerChannel, "tell_read", lambda self, number: None)
        monkeypatch.setattr(second_pass, "SHUT_S", 60.0)
        await pair.start_move("path")
        while not pair.benches["b"].of(Landed):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        latch = latch_of(pair)
        assert not latch.is_open()
        if end == "source":
            pair.benches["a"].worker.take(Cancel(to="a", **HEAD))  # type: ignore[arg-type]
        else:
            head = HEAD | {"sender": "b", "incarnation": 1}
            pair.benches["a"].worker.take(Abandon(to="a", reason="x", detail="y", **head))  # type: ignore[arg-type]
        await pair.hears(Ended, 2)
        assert {each.outcome for each in pair.heard if isinstance(each, Ended)} == {"aborted"}
        assert latch.is_open()
        pair.benches["a"].inputs(4)
        await pair.benches["a"].rest()
        assert pair.benches["a"].blocks()[-1] == 4

    moved(trial, loses=lambda message: isinstance(message, Landed))


def test_a_destination_that_opens_the_gate_too_early_spoils_no_more_than_its_own_proof() -> None:
    async def trial(pair: Pair) -> None:
        await pair.open_attempt("path")
        latch_of(pair).open()
        found = await goes_on(pair)
        assert found.outcome == "committed"  # what was installed is what was frozen: that is compared all the same

    moved(trial)


def test_a_gate_that_stays_shut_is_given_up_and_the_word_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[bool] = []

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(PeerChannel, "tell_read", lambda self, number: None)
        monkeypatch.setattr(second_pass, "SHUT_S", 0.0)
        real = second_pass.SecondPass._digested

        async def noted(self: Any, of: Any) -> Any:
            begun.append(of is not None)
            return await real(self, of)

        monkeypatch.setattr(second_pass.SecondPass, "_digested", noted)
        assert await ended(pair) == ("committed", "done")
        assert begun == [False]  # the one that stood behind the gate was not used

    moved(trial)


def test_a_call_that_waits_for_all_work_of_a_device_does_not_wait_for_a_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[Landed] = []

    def holds_back(message: Any) -> bool:
        if isinstance(message, Landed) and not held:
            held.append(message)
            return True
        return False

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(PeerChannel, "tell_read", lambda self, number: None)
        monkeypatch.setattr(second_pass, "SHUT_S", 60.0)
        await pair.start_move("path")
        while not held:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        latch, kit = latch_of(pair), kit_of("double")
        assert kit is not None
        assert not latch.is_open()
        kit.allocate(4096).release()  # another's, who knows of no move
        assert latch.is_open()
        assert pair.benches["a"].of(Proof) == []
        pair.benches["a"].worker.take(held[0])
        found: Ended = await pair.hears(Ended)
        assert found.outcome == "committed"

    moved(trial, loses=holds_back)


def test_the_second_pass_is_asked_of_the_device_before_anybody_waits_for_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = list[str]()
    ordered, first = second_pass.SecondPass._behind, Passes.first

    def noted(self: second_pass.SecondPass, latch: Latch) -> Any:
        order.append("the second is asked for")
        return ordered(self, latch)

    async def waited(self: Passes, frozen: Any) -> Any:
        order.append("the first is waited for")
        return await first(self, frozen)

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(second_pass.SecondPass, "_behind", noted)
        monkeypatch.setattr(Passes, "first", waited)
        assert await ended(pair) == ("committed", "done")
        assert order == ["the second is asked for", "the first is waited for"]

    moved(trial)


def test_a_source_that_gives_up_over_its_first_pass_leaves_the_gate_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async def gives_up(self: Passes, frozen: Any) -> Any:
        raise GaveUpError(SourceEvent.PASSES_DIFFER, "engine_wrote", "as if")

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(PeerChannel, "tell_read", lambda self, number: None)
        monkeypatch.setattr(Passes, "first", gives_up)
        await pair.open_attempt("path")
        latch = latch_of(pair)
        found = await goes_on(pair)
        assert (found.outcome, found.reason) == ("aborted", "engine_wrote")
        assert latch.is_open()

    moved(trial)


# what is pulled before the boundary


class Pulls:
    """Notes what was pulled, and through which window."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.extents: list[tuple[Extent, ...]] = []
        real = DeviceWindow.ready_copy

        def noted(window: DeviceWindow, source: int, extents: Sequence[Extent]) -> Any:
            begin = real(window, source, extents)

            def begins() -> Any:
                self.extents.append(tuple(extents))
                return begin()

            return begins

        monkeypatch.setattr(DeviceWindow, "ready_copy", noted)

    @property
    def num_bytes(self) -> list[int]:
        return [sum(extent.length for extent in extents) for extents in self.extents]


def test_what_lies_in_its_slot_is_pulled_before_the_boundary_and_only_what_has_come_there_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def trial(pair: Pair) -> None:
        pulls = Pulls(monkeypatch)
        assert await ended(pair) == ("committed", "done")
        said = [type(message) for message in pair.benches["a"].sent if isinstance(message, Still | Boundary)]
        assert said == [Still, Boundary]
        (boundary,) = pair.benches["a"].of(Boundary)
        assert len(boundary.moved) > 0
        early, late = pulls.num_bytes
        assert 0 < late < early // 8

    moved(trial)


def test_where_no_word_comes_that_the_slot_is_still_all_is_pulled_at_the_boundary(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def trial(pair: Pair) -> None:
        pulls = Pulls(monkeypatch)
        assert await ended(pair) == ("committed", "done")
        (all_of_it,) = pulls.num_bytes
        assert all_of_it > 250_000

    moved(trial, loses=lambda message: isinstance(message, Still))


LIES: dict[str, tuple[Callable[[tuple[int, ...]], tuple[int, ...]], tuple[str, str]]] = {
    "it keeps quiet about what has moved": (lambda moved: (), ("aborted", "engine_wrote")),
    "it speaks of what there is not": (lambda moved: (*moved, 4096), ("aborted", "bad_manifest")),
    "it says it twice": (lambda moved: (*moved, *moved), ("committed", "done")),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_source_that_lies_about_what_has_come_into_its_slot_installs_nothing_else(
    monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    bring_nothing_ahead(monkeypatch)
    change, expected = LIES[lie]
    told: list[Boundary] = []

    def struck(message: Any) -> bool:
        if isinstance(message, Boundary):
            if not told:
                msgspec.structs.force_setattr(message, "moved", change(message.moved))
            told.append(message)
        return False

    async def trial(pair: Pair) -> None:
        await pair.open_attempt("path")
        await say_still(pair)  # before anything has come into the slot
        found = await goes_on(pair)
        assert (found.outcome, found.reason) == expected
        if found.outcome == "aborted":
            assert pair.benches["b"].of(BlockDone) == []

    moved(trial, loses=struck)


def bring_nothing_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the other end is ready at once: the freeze brings what has left."""
    monkeypatch.setattr(KnownAhead, "make_ready_if_offered", lambda self, **how: None)


class BindsAnew(Aligned):
    """From its fifth block on it binds its window anew at each: what lay in the slot at the offer has left it."""

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        if session.block >= 4:
            session.window = bound_anew(session.window, session.window.data_ptr() % 256)
        return super().step(session, changes)


@pytest.mark.parametrize(("is_told", "outcome"), [(True, "committed"), (False, "aborted")])
def test_what_came_early_and_has_moved_since_comes_again_and_where_nobody_says_so_nothing_is_installed(
    monkeypatch: pytest.MonkeyPatch, *, is_told: bool, outcome: str
) -> None:
    parted: list[bool] = []
    real = OwnGate.for_number

    def noted(gate: OwnGate, number: int, *, is_parted: bool = False) -> Latch:
        parted.append(is_parted)
        return real(gate, number, is_parted=is_parted)

    def struck(message: Any) -> bool:
        if isinstance(message, Boundary) and not is_told:
            msgspec.structs.force_setattr(message, "moved", ())
        return False

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(OwnGate, "for_number", noted)
        bring_nothing_ahead(monkeypatch)
        await offered_and_played_on(pair, is_said_still=True)
        found = await goes_on(pair)
        assert found.outcome == outcome
        assert parted == [False]  # what comes again counts with the rest

    moved(trial, loses=struck, engine=BindsAnew)


def test_what_has_left_its_slot_is_there_again_before_the_freeze_and_comes_early_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def trial(pair: Pair) -> None:
        pulls = Pulls(monkeypatch)
        assert await ended(pair) == ("committed", "done")
        (boundary,) = pair.benches["a"].of(Boundary)
        counts = 1  # in host memory: it is staged anew
        assert len(boundary.moved) == counts
        early, late = pulls.num_bytes
        assert 0 < late < 1024 < early

    moved(trial)


class WritesLate(Aligned):
    """It writes what it has bound anew once more, after it was asked for its state and before the freeze."""

    asked = 0

    def quiesce(self, session: World) -> None:
        if self.asked:
            session.rebound[3] += 1.0
            self.asked = 0

    def state(self, session: World) -> Any:
        self.asked += session.block == 5
        return super().state(session)


def test_an_engine_that_writes_what_was_brought_before_the_freeze_is_blamed_itself() -> None:
    async def trial(pair: Pair) -> None:
        await offered_and_played_on(pair)
        found = await goes_on(pair)
        assert (found.outcome, found.reason) == ("aborted", "engine_wrote")
        assert "rebound" in found.detail
        assert pair.benches["b"].of(BlockDone) == []

    moved(trial, engine=WritesLate)


def test_what_comes_early_is_digested_anew_while_the_rest_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    said, digested = PeerChannel.tell_read, PlanOfDouble.digests

    def says(channel: PeerChannel, number: int) -> None:
        order.append("read")
        said(channel, number)

    def digests(plan: PlanOfDouble, key: bytes, which: Any) -> dict[int, bytes]:
        found = digested(plan, key, which)
        order.append("early" if isinstance(which, list) and which else "all")
        return found

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(PeerChannel, "tell_read", says)
        monkeypatch.setattr(PlanOfDouble, "digests", digests)
        assert await ended(pair) == ("committed", "done")
        assert order.count("read") == 2
        assert order.index("read") < order.index("early") < len(order) - 1 - order[::-1].index("all")

    moved(trial)


def test_a_slot_that_is_said_to_be_still_and_is_not_is_not_installed() -> None:
    """Said while the session is played on: what was pulled then is of another block."""

    async def trial(pair: Pair) -> None:
        await offered_and_played_on(pair, is_said_still=True)
        found = await goes_on(pair)
        assert (found.outcome, found.reason) == ("aborted", "engine_wrote")
        assert pair.benches["b"].of(BlockDone) == []

    moved(trial)


class Flushes(Aligned):
    """It writes the window's last row when it is asked for its state after a step: it has not come to rest before."""

    owes = False

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        self.owes = True
        return super().step(session, changes)

    def state(self, session: World) -> Any:
        if self.owes:
            session.window[-1] = session.rebound[:WIDTH] * 0.5
        self.owes = False
        return super().state(session)


def test_an_engine_that_writes_after_it_has_come_to_rest_is_blamed_and_then_moved_without_its_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def moves(pair: Pair, block: int) -> tuple[str, str]:
        await offered_and_played_on(pair, block)
        if not pair.benches["a"].of(Still):
            await say_still(pair)  # as the source will, and is heard before its engine is asked for its state
        found = await goes_on(pair, num_ends=2 if block == 4 else 1)
        return found.outcome, found.reason

    async def trial(pair: Pair) -> None:
        assert await moves(pair, 4) == ("aborted", "engine_wrote")
        said = [each for each in pair.heard if isinstance(each, Ended)]
        assert {each.reason for each in said} == {"engine_wrote"}
        assert all("window" in each.detail for each in said)
        assert pair.benches["b"].of(BlockDone) == []
        await pair.settle()
        pair.heard.clear()
        monkeypatch.setitem(HEAD, "attempt", "00000002-x")
        assert await moves(pair, 5) == ("committed", "done")
        assert len(pair.benches["a"].of(Still)) == 1

    moved(trial, engine=Flushes)


def test_a_path_that_writes_into_what_came_early_while_it_brings_the_rest_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = DeviceWindow.ready_copy
    early: list[tuple[int, tuple[Extent, ...]]] = []

    def strays(window: DeviceWindow, source: int, extents: Sequence[Extent]) -> Any:
        begin = real(window, source, extents)
        if not early:
            early.append((source, tuple(extents)))
            return begin

        def begins() -> Any:
            pending = begin()
            (at, first), *_ = early
            short = [Extent(offset=extent.offset, length=extent.length - 256) for extent in first[:1]]
            real(window, at + 256, short)()
            return pending

        return begins

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(DeviceWindow, "ready_copy", strays)
        outcome, _ = await ended(pair)
        assert outcome == "aborted"
        assert len(pair.benches["a"].of(Still)) == 1
        assert pair.benches["b"].of(BlockDone) == []

    moved(trial)


def test_a_path_that_lies_about_what_it_pulls_before_the_boundary_too_is_blamed_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = DeviceWindow.ready_copy

    def lies(window: DeviceWindow, source: int, extents: Sequence[Extent]) -> Any:
        return real(window, source, [extent for extent in extents if extent.length < 100_000])

    async def trial(pair: Pair) -> None:
        monkeypatch.setattr(DeviceWindow, "ready_copy", lies)
        assert await ended(pair) == ("aborted", "mismatch")
        assert len(pair.benches["a"].of(Still)) == 1

    moved(trial)
