"""A snapshot from one worker to another: it counts when its blocks have left, is proven twice, and is played from."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.move import virtual
from tests.worker.bench_worker import Bench
from tests.worker.test_move_between_workers import HEAD, Pair
from worldmove.errors import TransportError
from worldmove.move.ledger_row import Row
from worldmove.move.messages import Cancel, Gone, Reserved
from worldmove.state.extent import Extent
from worldmove.state.manifest import Manifest
from worldmove.state.placement import extents
from worldmove.state.runs import Runs
from worldmove.transport.loopback import Loopback, LoopbackChannel
from worldmove.worker import keeper
from worldmove.worker.background import AGAIN_S
from worldmove.worker.copies import CopyTable
from worldmove.worker.kept import KeptState
from worldmove.worker.messages import (
    Acknowledge,
    Alive,
    Beat,
    BlockDone,
    Close,
    Copies,
    DropSnapshot,
    Expect,
    Failed,
    Fault,
    GiveUp,
    InTime,
    Keep,
    Kept,
    Leaving,
    LetGo,
    NotDone,
    Pass,
    Replayed,
    Revive,
    SnapshotTaken,
    TakeOver,
    TakeSnapshot,
)
from worldmove.worker.session import CopyPhase

NONCE = bytes(range(32))


class Keeping(Pair):
    """The owner ``a`` has computed four blocks, and ``b`` is to keep a snapshot."""

    @property
    def a(self) -> Bench:
        return self.benches["a"]

    @property
    def b(self) -> Bench:
        return self.benches["b"]

    async def begin(self, *, left: int = 4) -> None:  # type: ignore[override]
        """Have the owner compute four blocks, of which so many have left; the keeper has the lists from there on."""
        await self.open_on_a(4)
        self.b.worker.take(Expect(session="s-1"))
        self.a.inputs(*range(4, 4 + (4 - left)))
        await self.settle()

    async def taken(self, request: int = 1) -> SnapshotTaken:
        self.a.worker.take(TakeSnapshot(session="s-1", request=request, transport="loopback", nonce=NONCE))
        await self.settle()
        return self.a.of(SnapshotTaken)[-1]

    async def kept(self, request: int = 1, **changed: Any) -> Any:
        """Have a snapshot taken and kept; return the keeper's answer."""
        taken = await self.taken(request)
        keep = Keep(session="s-1", request=request, snapshot=taken.snapshot, transport="loopback", nonce=NONCE)
        self.b.worker.take(Keep(**({name: getattr(keep, name) for name in keep.__struct_fields__} | changed)))
        await self.settle()
        self.a.worker.take(DropSnapshot(session="s-1", request=request))
        await self.settle()
        return (self.b.of(Kept) + self.b.of(NotDone))[-1]

    async def revived(self, block: int = 4, next_block: int = 6) -> None:
        self.b.inputs(*range(block, next_block + 1))
        self.b.worker.take(Revive(session="s-1", epoch=1, block=block, next_block=next_block))
        await self.settle()

    def held(self) -> list[tuple[str, int]]:
        return [(copy.phase, copy.block) for copy in self.b.copies().copies]


def on(trial: Any) -> None:
    async def run() -> None:
        pair = Keeping()
        try:
            work: Coroutine[Any, Any, None] = trial(pair)
            await work
        finally:
            await pair.close()

    virtual.run(run())


def test_a_snapshot_is_kept_beside_nothing_else_and_both_workers_give_the_slots_back_that_it_took() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        assert isinstance(await pair.kept(1), Kept)
        assert pair.held() == [("kept", 4)]
        assert (pair.a.copies().slots_free, pair.b.copies().slots_free) == (1, 1)
        assert isinstance(await pair.kept(2), Kept)
        assert pair.b.copies().slots_free == 1
        pair.b.worker.take(LetGo(session="s-1"))
        await pair.settle()
        assert (pair.held(), pair.b.copies().slots_free) == ([], 2)

    on(trial)


def test_a_word_to_let_go_for_another_keeper_that_comes_late_is_as_if_it_had_not_come() -> None:
    """That keeper may be dead by then; what is only expected goes all the same, for no list of it may be missed."""

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        assert isinstance(await pair.kept(1), Kept)
        let_go = LetGo(session="s-1", only=InTime(beat=1, within_s=0.5))
        pair.b.worker.take(Beat(number=1))
        await asyncio.sleep(1.0)
        pair.b.worker.take(let_go)
        await pair.settle()
        assert pair.held() == [("kept", 4)]
        pair.b.worker.take(Beat(number=2))
        pair.b.worker.take(msgspec.structs.replace(let_go, only=InTime(beat=2, within_s=0.5)))
        await pair.settle()
        assert pair.held() == []
        pair.b.worker.take(Expect(session="s-1"))
        pair.b.worker.take(let_go)
        assert isinstance(await pair.kept(2), NotDone)

    on(trial)


def test_a_snapshot_waits_until_every_block_before_it_has_left() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin(left=3)  # it computes one more, which has not left
        pair.a.worker.take(TakeSnapshot(session="s-1", request=1, transport="loopback", nonce=NONCE))
        await pair.settle()
        assert pair.a.of(SnapshotTaken) == []
        pair.acknowledge("a", 4)
        await pair.settle()
        assert [taken.snapshot.block for taken in pair.a.of(SnapshotTaken)] == [5]

    on(trial)


def test_a_snapshot_that_is_not_what_its_owner_proved_is_not_kept_and_the_older_one_stays() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept(1)
        told = await pair.kept(2, nonce=bytes(32))
        assert (told.code, pair.held(), pair.b.copies().slots_free) == ("mismatch", [("kept", 4)], 1)

    on(trial)


def test_a_path_that_does_not_let_go_of_a_slot_keeps_it_out_of_use(monkeypatch: pytest.MonkeyPatch) -> None:
    async def holds_on(self: LoopbackChannel) -> None:
        raise TransportError("it is still read")

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        monkeypatch.setattr(LoopbackChannel, "close", holds_on)
        answer = await pair.kept()
        assert (answer.code, answer.message) == (TransportError.code, "it is still read")
        copies = pair.b.copies()
        assert (copies.slots_free, copies.slots_quarantined) == (1, 1)

    on(trial)


def test_a_snapshot_may_take_as_long_as_its_path_takes_for_each_piece_and_says_how_it_gets_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A state of some GB takes half a minute over a gigabit: it is to be kept all the same."""
    piece_s, pull = 0.9 * keeper.PULL_S, LoopbackChannel.pull

    async def slowly(self: LoopbackChannel, wanted: Sequence[Extent], into: memoryview) -> None:
        await asyncio.sleep(piece_s)
        await pull(self, wanted, into)

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        taken = await pair.taken()
        wanted = Runs.of(extents(Manifest.from_bytes(taken.snapshot.manifest), taken.snapshot.placement))
        monkeypatch.setattr(keeper, "PIECE_BYTES", -(-wanted.num_bytes // 10))
        monkeypatch.setattr(LoopbackChannel, "pull", slowly)
        before = pair.b.worker.tools.progress.num_pulled
        pair.b.worker.take(Keep(session="s-1", request=1, snapshot=taken.snapshot, transport="loopback", nonce=NONCE))
        await asyncio.sleep(5.5 * piece_s)
        assert pair.b.worker.tools.progress.num_pulled - before == 1 + 5  # it was poisoned first
        assert pair.b.of(Kept) + pair.b.of(NotDone) == []
        await asyncio.sleep(8 * piece_s)
        await pair.settle()
        assert ([kept.block for kept in pair.b.of(Kept)], pair.b.of(NotDone)) == ([4], [])

    on(trial)


@pytest.mark.parametrize(
    ("takes_s", "expected"),
    [(0.0, [1, 2, 4, 4, 4, 1]), (1.5 * keeper.QUICK_S, [1] * 16)],
    ids=["quick", "slow"],
)
def test_the_pieces_of_a_snapshot_are_as_large_as_a_path_carries_in_a_moment(
    monkeypatch: pytest.MonkeyPatch, takes_s: float, expected: Sequence[int]
) -> None:
    pulled, pull = list[int](), LoopbackChannel.pull

    async def timed(self: LoopbackChannel, wanted: Sequence[Extent], into: memoryview) -> None:
        pulled.append(Runs.of(wanted).num_bytes)
        await asyncio.sleep(takes_s)
        await pull(self, wanted, into)

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        taken = await pair.taken()
        monkeypatch.setattr(keeper, "PIECE_BYTES", 1)
        monkeypatch.setattr(keeper, "MOST_BYTES", 4)
        monkeypatch.setattr(LoopbackChannel, "pull", timed)
        pair.b.worker.take(Keep(session="s-1", request=1, snapshot=taken.snapshot, transport="loopback", nonce=NONCE))
        await asyncio.sleep(10.0)
        await pair.settle()
        assert [kept.block for kept in pair.b.of(Kept)] == [4]
        assert pulled == expected

    on(trial)


def test_a_path_that_carries_nothing_more_of_a_snapshot_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hangs(self: LoopbackChannel, wanted: Sequence[Extent], into: memoryview) -> None:
        await asyncio.Event().wait()

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        taken = await pair.taken()
        monkeypatch.setattr(LoopbackChannel, "pull", hangs)
        pair.b.worker.take(Keep(session="s-1", request=1, snapshot=taken.snapshot, transport="loopback", nonce=NONCE))
        await asyncio.sleep(keeper.PULL_S + 1.0)
        await pair.settle()
        assert [(told.code, told.message) for told in pair.b.of(NotDone)] == [
            (TransportError.code, "nothing more of the snapshot arrived within 30 s")
        ]
        assert pair.b.copies().slots_free == 2

    on(trial)


@pytest.mark.parametrize("at", ["connect", "pull", "close", "close again"])
def test_a_session_that_is_closed_while_its_snapshot_is_fetched_costs_no_slot(
    monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Wherever that ends it, and however often: the slot is given back once its path has let go of it."""
    goes_on, reached = asyncio.Event(), list[str]()

    async def waits_at(place: str) -> None:
        reached.append("close again" if place in reached else place)
        if reached[-1] == at:
            thread = asyncio.create_task(goes_on.wait())
            cancelled: asyncio.CancelledError | None = None
            while not thread.done():
                try:
                    await asyncio.shield(thread)
                except asyncio.CancelledError as error:
                    cancelled = error  # as a thread's work does, it goes on to its end
            if cancelled is not None:
                raise cancelled

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        for place, of in (("connect", Loopback), ("pull", LoopbackChannel), ("close", LoopbackChannel)):
            monkeypatch.setattr(of, place, _first(partial(waits_at, place), getattr(of, place)))
        taken = await pair.taken()
        other = bytes(32) if at == "close again" else NONCE  # what has come is not what was proven
        pair.b.worker.take(Keep(session="s-1", request=1, snapshot=taken.snapshot, transport="loopback", nonce=other))
        await pair.settle()
        pair.b.worker.take(Close(session="s-1"))
        await asyncio.sleep(3 * AGAIN_S)
        assert (reached[-1], pair.b.copies().slots_free) == (at, 1)
        goes_on.set()
        await asyncio.sleep(3 * AGAIN_S)
        copies = pair.b.copies()
        assert (copies.slots_free, copies.slots_quarantined, pair.b.of(Fault)) == (2, 0, [])

    on(trial)


def _first(
    before: Callable[[], Awaitable[None]], after: Callable[..., Awaitable[Any]]
) -> Callable[..., Awaitable[Any]]:
    async def both(*given: Any) -> Any:
        await before()
        return await after(*given)

    return both


def test_what_nobody_expects_is_not_kept() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.open_on_a(4)
        assert (await pair.kept()).code == "not_expected"
        assert pair.b.copies().slots_free == 2

    on(trial)


class Playing:
    """A worker's copies, of which one is played as far as anybody asks."""

    def __init__(self, real: CopyTable) -> None:
        self.report_soon = real.report_soon

    def get(self, session: str) -> Any:
        return SimpleNamespace(phase=CopyPhase.LIVE)


@pytest.mark.parametrize("since", ["all the while", "it was pulled"])
def test_who_plays_a_session_keeps_no_snapshot_of_it(monkeypatch: pytest.MonkeyPatch, since: str) -> None:
    """It would save nothing, and whoever counts what stays at a worker would find it full."""

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        pair.a.worker.take(Expect(session="s-1"))
        taken = await pair.taken()
        here = pair.a if since == "all the while" else pair.b
        if here is pair.b:
            pulled = keeper.Keeper._pulled

            async def and_comes_here(self: keeper.Keeper, asked: Keep) -> KeptState:
                state = await pulled(self, asked)
                monkeypatch.setattr(self, "_copies", Playing(self._copies))
                return state

            monkeypatch.setattr(keeper.Keeper, "_pulled", and_comes_here)
        here.worker.take(Keep(session="s-1", request=1, snapshot=taken.snapshot, transport="loopback", nonce=NONCE))
        await pair.settle()
        answer = here.of(NotDone)[-1]
        assert (answer.code, answer.message.partition(" ")[2]) == (
            "not_expected",
            "plays s-1 itself, and keeps no snapshot of it",
        )
        assert [copy.phase for copy in here.copies().copies] == (["live"] if here is pair.a else [])
        assert here.copies().slots_free == (0 if here is pair.a else 2)  # the owner's snapshot is still offered

    on(trial)


def test_a_worker_without_a_free_slot_says_so_at_either_end() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.taken(1)
        pair.a.worker.take(TakeSnapshot(session="s-1", request=2, transport="loopback", nonce=NONCE))
        await pair.settle()
        assert pair.a.of(NotDone)[-1].code == "no_slot"

    on(trial)


def test_what_is_kept_becomes_a_retired_copy_that_replays_says_so_and_plays_on() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept()
        await pair.revived()
        assert pair.held() == [("retired", 4)]
        pair.b.worker.take(TakeOver(session="s-1", epoch=2, block=6))
        await pair.settle()
        pair.a.inputs(4, 5, 6)
        await pair.settle()
        owners = {done.block: done.frame_sha256 for done in pair.a.of(BlockDone)}
        assert {done.block: done.frame_sha256 for done in pair.b.of(Replayed)} == {n: owners[n] for n in (4, 5)}
        assert [(done.block, done.epoch) for done in pair.b.of(BlockDone)] == [(6, 2)]
        assert pair.b.of(BlockDone)[0].frame_sha256 == owners[6]

    on(trial)


def test_a_copy_made_of_a_snapshot_stays_though_what_a_dead_owner_had_sent_leaves_later() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept()
        await pair.revived()
        pair.b.worker.take(Acknowledge(session="s-1", epoch=1, block=6, server_life=1))
        await pair.settle()
        assert pair.held() == [("retired", 4)]
        pair.b.worker.take(Pass(session="s-1"))
        await pair.settle()
        assert pair.held() == []

    on(trial)


def test_a_copy_that_nobody_wants_any_more_when_it_has_been_made_of_a_snapshot_does_not_stay() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept()
        pair.b.inputs(4, 5, 6)
        pair.b.worker.take(Revive(session="s-1", epoch=1, block=4, next_block=6))
        await asyncio.sleep(0)
        pair.b.worker.take(LetGo(session="s-1"))
        await pair.settle()
        assert pair.held() == [("retired", 4)]
        pair.b.worker.take(Acknowledge(session="s-1", epoch=1, block=6, server_life=1))
        await pair.settle()
        assert (pair.held(), pair.b.copies().slots_free) == ([], 2)

    on(trial)


def test_a_path_that_a_destination_cannot_let_go_of_does_not_end_the_copy_that_took_over_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The destination of a move to the keeper has given up, and what was kept there plays by then."""
    is_over = asyncio.Event()

    async def holds_on(self: LoopbackChannel) -> None:
        await is_over.wait()
        raise TransportError("it is still read")

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept()
        await pair.offer("loopback")
        await pair.hears(Reserved)
        monkeypatch.setattr(LoopbackChannel, "close", holds_on)
        pair.b.worker.take(Cancel(to="b", **HEAD))  # type: ignore[arg-type]
        await pair.settle()
        await pair.revived()
        pair.b.worker.take(TakeOver(session="s-1", epoch=2, block=6))
        await pair.settle()
        is_over.set()
        await pair.settle()
        pair.b.inputs(7)
        await pair.settle()
        assert [done.block for done in pair.b.of(BlockDone)] == [6, 7]
        assert pair.b.of(Failed) == []
        assert [fault.task for fault in pair.b.of(Fault)] == ["destination"]
        assert (pair.b.copies().slots_free, pair.b.copies().slots_quarantined) == (0, 1)

    async def run() -> None:
        pair = Keeping(on_fault=lambda task, error: None)
        try:
            await trial(pair)
        finally:
            await pair.close()

    virtual.run(run())


def test_a_copy_that_took_over_says_again_on_a_new_link_what_it_replayed_before_what_may_be_shown() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept()
        await pair.revived()
        pair.b.worker.take(TakeOver(session="s-1", epoch=2, block=6))
        await pair.settle()
        pair.b.sent.clear()
        pair.b.worker.joined()
        await pair.settle()
        said = [message.block for message in pair.b.sent if isinstance(message, Replayed | BlockDone)]
        assert said == [4, 5, 6]

    on(trial)


@pytest.mark.parametrize(("left", "told"), [(6, [4, 5]), (12, [5]), (13, [])])
def test_what_was_replayed_is_said_on_a_new_link_as_long_as_a_player_may_lack_it(left: int, told: list[int]) -> None:
    """A later server has it of a replaced owner alone, and sends it to nobody before it knows that it is the same."""

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept()
        await pair.revived()
        pair.b.worker.take(TakeOver(session="s-1", epoch=2, block=6))
        await pair.settle()
        pair.b.inputs(*range(4, left + 1))
        await pair.settle()
        pair.b.worker.take(Acknowledge(session="s-1", epoch=2, block=left, server_life=1))
        pair.b.sent.clear()
        pair.b.worker.joined()
        assert [message.block for message in pair.b.of(Replayed)] == told

    on(trial)


def test_bytes_that_have_changed_since_they_were_proven_are_never_played_and_the_reason_is_said() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept()
        keeping = pair.b.worker.copies.kept.get("s-1")
        assert keeping is not None
        assert keeping.state is not None
        place = keeping.state.placement[0] + keeping.state.manifest.storages[0].used[0].offset
        arena: Any = keeping.state.slot.arena
        arena.memory[place] ^= 1
        await pair.revived()
        assert "snapshot of block 4 cannot be used" in pair.b.of(Failed)[0].message
        assert (pair.held(), pair.b.copies().slots_free) == ([], 2)

    on(trial)


def test_a_snapshot_of_which_no_session_can_be_made_for_whatever_reason_is_let_go_and_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would be tried again for ever, and the session would never be said to be lost."""

    async def has_no_memory(*_: object) -> None:
        raise MemoryError("there is none left")

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept()
        monkeypatch.setattr(keeper.Keeper, "_installed", has_no_memory)
        pair.b.worker.take(Revive(session="s-1", epoch=1, block=4, next_block=6))
        await asyncio.sleep(0.1)
        assert [type(error) for error in pair.b.failures] == [MemoryError]
        pair.b.failures.clear()
        assert [failed.code for failed in pair.b.of(Failed)] == ["internal"]
        assert (pair.held(), pair.b.copies().slots_free) == ([], 2)

    on(trial)


def test_a_path_that_fails_at_letting_go_of_a_snapshot_costs_no_slot_and_no_other_world(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fails(self: Loopback, ticket: bytes) -> None:
        raise OSError("it is gone")

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.taken(1)
        assert pair.a.copies().slots_free == 0
        with monkeypatch.context() as patched:
            patched.setattr(Loopback, "withdraw", fails)
            pair.a.worker.joined()
            await asyncio.sleep(0.1)
        assert [type(error) for error in pair.a.failures] == [OSError]
        pair.a.failures.clear()
        assert [fault.task for fault in pair.a.of(Fault)] == ["drop"]
        assert pair.a.copies().slots_free == 1

    on(trial)


def test_a_copy_made_of_a_snapshot_that_is_given_the_session_otherwise_says_that_it_holds_none() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept()
        await pair.revived()
        await pair.ledger.forget("s-1")
        await pair.ledger.create(Row(session="s-1", owner="b", incarnation=1, epoch=2))
        await asyncio.sleep(5.1)
        await pair.settle()
        assert [gone.owned_epoch for gone in pair.heard if isinstance(gone, Gone)] == [2]
        assert pair.held() == [("retired", 4)]

    on(trial)


def test_a_copy_that_is_told_to_give_up_is_freed_and_says_why_and_that_it_is_gone() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept()
        await pair.revived()
        pair.b.worker.take(TakeOver(session="s-1", epoch=2, block=6))
        await pair.settle()
        for epoch in (1, 2):  # the first is of an epoch that is over
            pair.b.worker.take(GiveUp(session="s-1", epoch=epoch, why="it has replayed block 4 differently"))
        await pair.settle()
        assert pair.b.of(Failed)[0].message == "it has replayed block 4 differently"
        assert [gone.owned_epoch for gone in pair.heard if isinstance(gone, Gone)] == [2]
        assert pair.held() == []

    on(trial)


@pytest.mark.parametrize("ends", [Close(session="s-1"), LetGo(session="s-1")])
def test_a_session_that_ends_leaves_nothing_that_is_kept(ends: Any) -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        await pair.kept()
        pair.b.worker.take(ends)
        await pair.settle()
        assert pair.b.of(Copies)[-1].slots_free == 2

    on(trial)


@pytest.mark.parametrize("only", [None, InTime(beat=0, within_s=1.0)])
@pytest.mark.parametrize("num_beats", [1, 2, 3])
def test_what_is_taken_together_with_beats_is_done_and_reported_before_the_first_of_them_is_answered(
    only: InTime | None, num_beats: int
) -> None:
    """They have waited in a socket: who has an answer to a beat knows what has become of all that it sent before."""

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        assert isinstance(await pair.kept(), Kept)
        pair.b.worker.take(Beat(number=0))
        await pair.settle()
        pair.b.sent.clear()
        pair.b.worker.take(LetGo(session="s-1", only=only))
        for number in range(1, num_beats + 1):
            pair.b.worker.take(Beat(number=number))
        await pair.settle()
        said = [message for message in pair.b.sent if isinstance(message, Alive | Copies)]
        assert isinstance(said[0], Copies)
        assert [copy for copy in said[0].copies if copy.session == "s-1"] == []
        assert [message.number for message in said if isinstance(message, Alive)] == list(range(1, num_beats + 1))
        assert [type(message) for message in said].count(Copies) == 1

    on(trial)


def test_an_owner_that_is_told_to_give_up_with_beats_behind_reports_that_before_it_answers() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        pair.a.sent.clear()
        pair.a.worker.take(GiveUp(session="s-1", epoch=1, why="its blocks are others"))
        pair.a.worker.take(Beat(number=1))
        await pair.settle()
        said = [message for message in pair.a.sent if isinstance(message, Alive | Copies)]
        assert isinstance(said[0], Copies)
        assert [copy.phase for copy in said[0].copies] == ["freeing"]
        assert isinstance(said[1], Alive)

    on(trial)


def test_a_worker_that_was_told_to_end_says_so_on_every_link_and_ends_after_a_time_in_any_case() -> None:
    async def trial(pair: Keeping) -> None:
        leaving = asyncio.ensure_future(pair.b.worker.leave(5.0))
        await pair.settle()
        pair.b.worker.joined()
        await pair.settle()
        assert len(pair.b.of(Leaving)) == 2
        for number in range(70):  # it is led all the while, and nothing goes
            pair.b.worker.take(Beat(number=number))
            await asyncio.sleep(0.1)
            assert number > 30 or not leaving.done()
        assert leaving.done()

    on(trial)


def test_a_second_snapshot_of_a_session_that_is_on_its_way_takes_no_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asked for the first waits for it no more, and it goes on all the same."""
    pull = LoopbackChannel.pull

    async def slowly(self: LoopbackChannel, wanted: Sequence[Extent], into: memoryview) -> None:
        await asyncio.sleep(5.0)
        await pull(self, wanted, into)

    async def trial(pair: Keeping) -> None:
        await pair.begin()
        taken = await pair.taken()
        monkeypatch.setattr(LoopbackChannel, "pull", slowly)
        for request in (1, 2, 3):
            asked = Keep(session="s-1", request=request, snapshot=taken.snapshot, transport="loopback", nonce=NONCE)
            pair.b.worker.take(asked)
            await asyncio.sleep(1.0)
        assert pair.b.copies().slots_free == pair.b.worker.hello().num_slots - 1
        assert [(answer.request, answer.code) for answer in pair.b.of(NotDone)] == [(2, "busy"), (3, "busy")]
        await asyncio.sleep(5.0)
        await pair.settle()
        assert [kept.request for kept in pair.b.of(Kept)] == [1]
        pair.b.worker.take(msgspec.structs.replace(asked, request=4))  # the way is free again
        await asyncio.sleep(6.0)
        await pair.settle()
        assert [kept.request for kept in pair.b.of(Kept)] == [1, 4]
        assert pair.b.copies().slots_free == pair.b.worker.hello().num_slots - 1

    on(trial)


def test_an_owner_says_how_it_gets_on_with_a_snapshot_piece_by_piece() -> None:
    async def trial(pair: Keeping) -> None:
        await pair.begin()
        before = pair.a.worker.tools.progress.num_done
        taken = await pair.taken()
        num_copied = len(Manifest.from_bytes(taken.snapshot.manifest).storages)
        num_digested = 1 + len(taken.snapshot.groups) // 16  # what there is on a device is digested in one
        assert pair.a.worker.tools.progress.num_done - before == num_copied + num_digested

    on(trial)
