"""A copy that follows its session's owner, between two workers in one process: what it steps, when, and how it ends."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from tests.worker.bench_worker import Bench
from tests.worker.counting import CountingEngine, World
from tests.worker.test_move_between_workers import ATTEMPT, HEAD, Pair
from worldmove.errors import StateRefused
from worldmove.move.ledger_row import Facts
from worldmove.move.messages import Cancel, Ended, Ready
from worldmove.worker.messages import BlockDone, CheckDone, Close, Failed, Followed
from worldmove.worker.session import SessionCopy
from worldmove.worker.slots import SlotState

T = TypeVar("T")


def followed(trial: Callable[[Pair], Coroutine[Any, Any, None]], *, engine: CountingEngine | None = None) -> None:
    """Run a trial on a session that has played three blocks at ``a``, and is followed at ``b``."""

    async def run() -> None:
        pair = Pair(engines=(CountingEngine(), engine or CountingEngine()))
        pair.strategy = "replay"
        pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=3)
        try:
            await pair.open_on_a(3)
            await pair.open_attempt()
            pair.begin()
            await pair.hears(Ready)
            await trial(pair)
        finally:
            await pair.close()
        assert pair.benches["a"].failures == pair.benches["b"].failures == []

    asyncio.run(run())


def lists(pair: Pair, *blocks: int) -> None:
    for each in pair.benches.values():
        each.inputs(*blocks)


def left(pair: Pair, block: int) -> None:
    for name in pair.benches:
        pair.acknowledge(name, block)


def copy_at(trial: Bench) -> SessionCopy:
    copy = trial.worker.copies.get("s-1")
    assert copy is not None
    return copy


def stepped(trial: Bench) -> list[int]:
    return [done.block for done in trial.of(Followed)]


async def is_over(pair: Pair) -> Ended:
    """Return the destination's last word, once every slot but the owner's is free."""
    await pair.hears(Ended, 2)
    for _ in range(200):
        await asyncio.sleep(0.01)
        if (pair.benches["a"].copies().slots_free, pair.benches["b"].copies().slots_free) == (1, 2):
            break
    assert (pair.benches["a"].copies().slots_free, pair.benches["b"].copies().slots_free) == (1, 2)
    assert pair.benches["b"].copies().copies == ()
    (ended,) = [message for message in pair.heard if isinstance(message, Ended) and message.side == "destination"]
    return ended


def test_a_follower_steps_what_has_left_and_nothing_else_and_only_the_digests_of_its_frames_are_sent() -> None:
    async def trial(pair: Pair) -> None:
        a, b = pair.benches["a"], pair.benches["b"]
        await pair.settle()
        assert copy_at(b).phase.value == "following"
        assert a.copies().slots_free == 1  # the snapshot's slot is free again
        lists(pair, 3, 4, 5)
        await b.rest()
        assert stepped(b) == []
        assert b.worker.tools.progress.attempts() == (ATTEMPT,)  # its snapshot has come
        left(pair, 4)
        await b.rest()
        assert stepped(b) == [3, 4]
        assert [done.frame_sha256 for done in b.of(Followed)] == [d.frame_sha256 for d in a.of(BlockDone)][3:5]
        assert b.worker.tools.progress.num_done >= len(stepped(b)) > 0  # whoever waits for it hears that it gets on
        assert b.worker.tools.progress.attempts() == (ATTEMPT,)
        assert (b.of(BlockDone), b.of(CheckDone)) == ([], [])
        assert [held.left for held in b.copies().copies] == [0]
        assert copy_at(b).left == 5

    followed(trial)


def test_both_compute_the_last_block_at_once_and_the_follower_plays_on_from_it() -> None:
    async def trial(pair: Pair) -> None:
        a, b = pair.benches["a"], pair.benches["b"]
        lists(pair, 3, 4)
        left(pair, 4)
        await b.rest()
        pair.start()
        given = 5
        while copy_at(a).phase.value != "frozen":  # a loaded machine takes a block or two more
            assert given < 50
            lists(pair, given)
            given += 1
            await asyncio.sleep(a.engine.spec.period_s)
        met = copy_at(a).next_block
        assert sorted({*a.blocks()}) == list(range(met))
        assert stepped(b) == list(range(3, met))  # and those from 5 on had not left
        assert met > 5
        pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=met)
        left(pair, met - 1)
        ended: Ended = await pair.hears(Ended)
        assert ended.outcome == "committed"
        lists(pair, *range(given, met + 2))
        await b.rest()
        assert b.blocks()[:2] == [met, met + 1]
        pair.facts = Facts(owner="b", incarnation=1, epoch=2, owner_gone=False, next_block=met + 2)
        left(pair, met + 1)
        await a.rest()
        await a.rest()
        checks = [(done.frame_sha256, done.state_digest) for done in a.of(CheckDone)]
        assert checks == [(d.frame_sha256, d.state_digest) for d in b.of(BlockDone)][:2]
        assert len(checks) == 2
        assert (a.copies().slots_free, b.copies().slots_free) == (2, 1)

    followed(trial)


def test_a_follower_that_lacks_a_list_and_has_later_ones_gives_up_by_name() -> None:
    async def trial(pair: Pair) -> None:
        a, b = pair.benches["a"], pair.benches["b"]
        a.inputs(3, 4)
        b.inputs(4)
        left(pair, 4)
        await a.settle()
        assert (await is_over(pair)).reason == "log_gap"
        a.inputs(5)
        await a.settle()
        assert a.blocks()[-1] == 5

    followed(trial)


def test_an_engine_that_raises_at_the_follower_ends_the_move_and_not_the_session() -> None:
    engine = CountingEngine()

    def fails(world: World) -> None:
        raise RuntimeError("of its own making")

    async def trial(pair: Pair) -> None:
        a, b = pair.benches["a"], pair.benches["b"]
        engine.during_step = fails
        lists(pair, 3, 4)
        left(pair, 4)
        ended = await is_over(pair)
        assert (ended.reason, "of its own making" in ended.detail) == ("engine_failed", True)
        assert b.of(Failed) == []
        lists(pair, 5)
        await a.settle()
        assert a.blocks()[-1] == 5

    followed(trial, engine=engine)


def test_a_follower_whose_state_cannot_be_resolved_ends_the_move_and_the_source_plays_on() -> None:
    engine = CountingEngine()

    def refuses(session: World) -> Any:
        raise StateRefused("numbers", "they are no more")

    async def trial(pair: Pair) -> None:
        engine.state = refuses  # type: ignore[method-assign]
        pair.start()
        assert (await is_over(pair)).reason == "state_refused"
        lists(pair, 3)
        await pair.benches["a"].settle()
        assert pair.benches["a"].blocks()[-1] == 3

    followed(trial, engine=engine)


@pytest.mark.parametrize("while_it_steps", [False, True])
def test_a_cancel_frees_the_slot_only_once_nothing_computes_in_it(while_it_steps: bool) -> None:
    async def trial(pair: Pair) -> None:
        b, go, found = pair.benches["b"], asyncio.Event(), list[SlotState]()
        slot = copy_at(b).slot

        async def gated(function: Callable[[], T]) -> T:
            await go.wait()
            found.append(slot.state)
            return function()

        b.worker.tools.turns._spare_thread = gated
        lists(pair, 3, 4)
        left(pair, 4)
        for _ in range(100):
            await asyncio.sleep(0.002)
            if copy_at(b).step.is_there:
                break
        assert copy_at(b).step.is_there
        if not while_it_steps:
            go.set()
            await b.rest()
        for end in ("a", "b"):
            pair.benches[end].worker.take(Cancel(to=end, **HEAD))  # type: ignore[arg-type]
        await b.settle()
        assert slot.state is (SlotState.QUARANTINED if while_it_steps else SlotState.FREE)
        go.set()
        assert (await is_over(pair)).reason == "cancelled"
        assert SlotState.FREE not in found

    followed(trial)


def test_a_session_that_is_closed_while_it_is_followed_leaves_no_slot_taken() -> None:
    async def trial(pair: Pair) -> None:
        for each in pair.benches.values():
            each.worker.take(Close(session="s-1"))
        for _ in range(200):
            await asyncio.sleep(0.01)
            if {each.copies().slots_free for each in pair.benches.values()} == {2}:
                break
        assert [each.copies().slots_free for each in pair.benches.values()] == [2, 2]

    followed(trial)


def test_a_session_that_is_closed_while_its_snapshot_waits_to_be_fetched_leaves_no_slot_taken() -> None:
    async def run() -> None:
        pair = Pair()
        pair.strategy = "replay"
        try:
            await pair.open_on_a(3)
            await pair.open_attempt()
            a = pair.benches["a"]
            pair.benches["b"].worker.take(Cancel(to="b", **HEAD))  # type: ignore[arg-type]
            await pair.settle()
            pair.begin()
            await asyncio.sleep(0.2)
            await a.settle()
            assert a.copies().slots_free == 0  # the session, and its snapshot
            a.worker.take(Close(session="s-1"))
            await asyncio.sleep(0.05)
            await a.settle()
            assert a.copies().slots_free == 2
        finally:
            await pair.close()

    asyncio.run(run())
