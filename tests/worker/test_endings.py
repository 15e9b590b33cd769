"""A session that ends in the middle of something ends alone: its worker plays the others on."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.move import virtual
from tests.worker.bench_worker import bench
from tests.worker.counting import CountingEngine, World
from tests.worker.test_move_between_workers import ATTEMPT, HEAD, Pair
from worldmove.errors import MessageError, MoveRefused, TransportError, UserError
from worldmove.move.ledger_messages import OpenAttempt
from worldmove.move.messages import Declined, Reserved, Start
from worldmove.worker.messages import (
    BlockDone,
    Change,
    Close,
    Describe,
    Failed,
    Freed,
    Inputs,
    NotDone,
    Open,
    Save,
    StateDone,
    ToServer,
)


@pytest.mark.parametrize("num_turns", range(0, 12, 3))
@pytest.mark.parametrize("closed", [False, True])
def test_a_session_that_ends_in_the_block_that_its_freeze_waits_for_ends_alone(num_turns: int, *, closed: bool) -> None:
    """By an engine that raises, or because it is closed in that very block."""

    async def main() -> None:
        engine = CountingEngine()
        pair = Pair(engines=(engine, CountingEngine()))
        a, b = pair.benches["a"], pair.benches["b"]
        await pair.open_on_a(3)
        a.worker.take(Open(session="s-2", epoch=1, seed=6))
        await pair.offer("loopback")
        await pair.hears(Reserved)
        opened = OpenAttempt(session="s-1", attempt=ATTEMPT, epoch=1, destination="b", destination_incarnation=1)
        await pair.ledger.ask(opened, pair.facts)

        def end(world: World) -> None:
            if closed:
                for each in (a, b):
                    each.worker.take(Close(session="s-1"))
            else:
                raise ValueError("no such place")

        engine.during_step = end
        a.worker.take(Start(to="a", destination="b", destination_incarnation=1, nonce=bytes(32), **HEAD))  # type: ignore[arg-type]
        for _ in range(num_turns):
            await asyncio.sleep(0)
        a.inputs(3)
        await pair.settle()
        engine.during_step = lambda world: None
        a.inputs(0, 1, session="s-2")
        await asyncio.sleep(2.0)  # a cancel that was lost is repeated after half a second
        await pair.settle()
        await pair.close()
        assert [done.block for done in a.of(BlockDone) if done.session == "s-2"] == [0, 1]
        assert [copy.session for copy in a.copies().copies] == ["s-2"]
        assert (a.copies().slots_free, b.copies().slots_free) == (1, 2)

    virtual.run(main())


@pytest.mark.parametrize("num_turns", range(5))
@pytest.mark.parametrize("saved", [False, True])
def test_a_session_that_is_closed_while_it_opens_ends_alone_and_keeps_its_slot_until_then(
    tmp_path: Path, num_turns: int, *, saved: bool
) -> None:
    """A saved one that cannot be read fails, and is being freed already."""

    async def main() -> None:
        trial = bench()
        trial.worker.take(Open(session="s-2", epoch=1, seed=6))
        await trial.settle()
        path = str(tmp_path / "none") if saved else ""
        trial.worker.take(Open(session="s-1", epoch=1, seed=5, saved=path))
        for _ in range(num_turns):
            await asyncio.sleep(0)
        trial.worker.take(Close(session="s-1"))
        await trial.settle()
        trial.inputs(0, 1, session="s-2")
        await trial.settle()
        said = [message for message in trial.sent if isinstance(message, Failed | Freed)]
        assert [type(message) for message in said][-1] is Freed
        assert [message.code for message in said if isinstance(message, Failed)] in (["closed"], ["bad_file"], [])
        assert trial.blocks() == [0, 1]
        assert [copy.session for copy in trial.copies().copies] == ["s-2"]
        assert trial.copies().slots_free == 1

    asyncio.run(main())


class Wordy(CountingEngine):
    """Its state is small, and what there is to say of its leaves is long."""

    def state(self, session: World) -> dict[str, Any]:
        return {**super().state(session), "x" * 400: [0] * 20}

    def install(self, state: dict[str, Any], into: World | None = None) -> World:
        return super().install({name: value for name, value in state.items() if len(name) < 400})


def test_a_state_of_which_there_is_more_to_say_than_a_message_holds_ends_nothing() -> None:
    async def main() -> None:
        sent: list[Any] = []

        def send(message: Any) -> None:
            if len(msgspec.msgpack.encode(message)) > 4000:
                raise MessageError("it is too long")
            sent.append(message)

        trial = bench(Wordy(), send=send)
        trial.sent = sent
        trial.worker.take(Open(session="s-1", epoch=1, seed=5))
        await trial.settle()
        trial.worker.take(Describe(session="s-1", request=7))
        await trial.settle()
        changes = (Change(number=1, key="up", down=True),)
        for block in range(2):
            trial.worker.take(Inputs(session="s-1", block=block, changes=changes, account=True))
            await trial.settle()
        assert [(refusal.request, refusal.code) for refusal in trial.of(NotDone)] == [(7, MessageError.code)]
        assert (trial.of(StateDone), trial.of(Failed)) == ([], [])
        assert trial.blocks() == [0, 1]

    asyncio.run(main())


class Nameless:
    """Breaks whoever looks at it."""

    @property
    def __class__(self) -> Any:
        raise ValueError("it has no class")

    @__class__.setter
    def __class__(self, value: Any) -> None: ...


class Breaking(CountingEngine):
    """Raises an error of ours where nobody would, or holds what nothing can be read of."""

    is_broken = False

    def open(self, seed: int) -> World:
        if seed == 6:
            raise TransportError("it fetches its weights")
        return super().open(seed)

    def state(self, session: World) -> dict[str, Any]:
        return {**super().state(session), **({"odd": Nameless()} if self.is_broken else {})}


def test_whatever_an_engine_raises_or_holds_when_it_is_asked_ends_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        engine = Breaking()
        trial = bench(engine)
        trial.worker.take(Open(session="s-1", epoch=1, seed=5))
        trial.worker.take(Open(session="s-2", epoch=1, seed=6))
        await trial.settle()
        assert [(failed.session, failed.code) for failed in trial.of(Failed)] == [("s-2", TransportError.code)]
        engine.is_broken = True
        trial.worker.take(Describe(session="s-1", request=7))
        trial.worker.take(Save(session="s-1", request=8, path=str(tmp_path / "saved")))
        await trial.settle()
        for block in range(2):
            trial.worker.take(Inputs(session="s-1", block=block, changes=(), account=True))
            await trial.settle()
        assert [(refusal.request, refusal.code) for refusal in trial.of(NotDone)] == [
            (7, "state_refused"),
            (8, "state_refused"),
        ]
        assert trial.of(StateDone) == []
        assert trial.blocks() == [0, 1]

    asyncio.run(main())


def test_an_engine_that_raises_a_cancel_ends_its_session_and_gives_its_slot_back() -> None:
    """Its own, of a loop that it runs inside: whoever waits for its block is not cancelled by that."""

    async def main() -> None:
        engine = CountingEngine()
        trial = bench(engine)
        for session in ("s-1", "s-2"):
            trial.worker.take(Open(session=session, epoch=1, seed=5))
        await trial.settle()

        def cancelled(world: World) -> None:
            raise asyncio.CancelledError("it gave up waiting")

        engine.during_step = cancelled
        trial.inputs(0)
        await trial.settle()
        engine.during_step = lambda world: None
        trial.inputs(0, 1, session="s-2")
        await trial.settle()
        assert [(failed.session, failed.code) for failed in trial.of(Failed)] == [("s-1", "engine_failed")]
        assert [copy.session for copy in trial.copies().copies] == ["s-2"]
        assert (trial.blocks(), trial.copies().slots_free) == ([0, 1], 1)

    asyncio.run(main())


class Odd(Exception):
    """Says what no message can."""

    def __repr__(self) -> str:
        return "\ud800"


@pytest.mark.parametrize("error", [Odd(), UserError("\ud800", code="x" * 3000), MoveRefused("", "\ud800" * 3000)])
def test_whatever_words_an_engine_finds_for_its_failure_a_message_carries_them(error: Exception) -> None:
    """Others would end the link, and with it every world of the worker."""

    async def main() -> None:
        engine = CountingEngine()
        pair = Pair(engines=(engine, CountingEngine()))
        a = pair.benches["a"]
        await pair.open_on_a(1)

        def raises(*_arguments: Any) -> Any:
            raise error

        engine.state = raises  # type: ignore[method-assign, assignment]
        pair.prepare("loopback")
        await pair.hears(Declined)
        engine.open = raises  # type: ignore[method-assign, assignment]
        a.worker.take(Open(session="s-2", epoch=1, seed=6))
        a.worker.take(Describe(session="s-1", request=7))
        engine.during_step = raises
        a.inputs(1)
        await pair.settle()
        await pair.close()
        kinds = [type(msgspec.msgpack.decode(msgspec.msgpack.encode(word), type=ToServer)) for word in a.sent]
        assert (kinds.count(Failed), kinds.count(NotDone)) == (2, 1)

    asyncio.run(main())
