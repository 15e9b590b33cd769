"""Two workers in one process, over loopback, with the ledger's rules and nothing else between them."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.worker.bench_worker import Bench, bench, inline
from tests.worker.counting import CountingEngine
from worldmove.engine.base import Engine
from worldmove.fleet.ledger_memory import MemoryLedger
from worldmove.move.ledger_messages import CloseAttempt, OpenAttempt
from worldmove.move.ledger_row import Facts, Row
from worldmove.move.messages import (
    CONTROLLER,
    Begin,
    Cancel,
    Declined,
    Ended,
    MoveMessage,
    Offer,
    Prepare,
    Prepared,
    Reserved,
    Start,
)
from worldmove.state.device_arena import DeviceArena
from worldmove.transport.base import Blocking, Transport
from worldmove.transport.loopback import Loopback, LoopbackChannel
from worldmove.worker.messages import (
    Acknowledge,
    BlockDone,
    CheckDone,
    Close,
    Failed,
    LedgerAnswer,
    LedgerAsk,
    Open,
    Replayed,
    TakeOver,
)
from worldmove.worker.threads import OneThread

ATTEMPT, LATER = "00000001-x", "00000002-x"
HEAD = {"sender": CONTROLLER, "incarnation": 0, "session": "s-1", "attempt": ATTEMPT, "epoch": 1}


class Pair:
    """Workers ``a`` and ``b``; what they say to each other and to the ledger is carried at once."""

    def __init__(
        self,
        *,
        engines: Sequence[Engine[Any]] = (),
        transports: Mapping[str, Transport] | None = None,
        arena_bytes: int = 1 << 14,
        environments: Mapping[str, Mapping[str, str]] | None = None,
        engine_threads: Callable[[str], Blocking] = lambda name: inline,
        heard_of: Callable[[BlockDone], None] = lambda done: None,
        loses: Callable[[Any], bool] = lambda message: False,
        **host: Any,
    ) -> None:
        """``heard_of``: a block has come to the server. ``loses``: which words between the workers never come."""
        self.heard_of = heard_of
        self.loses = loses
        tokens = iter(range(1000))
        path = Loopback(blocking=inline, tokens=lambda: next(tokens).to_bytes(32, "big"))
        self.ledger = MemoryLedger()
        self.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=0)
        self.strategy = "boundary copy"
        self.silent = False
        """The ledger's answers are lost."""
        self.heard: list[MoveMessage] = []
        self.benches: dict[str, Bench] = {}
        self.tasks: list[asyncio.Task[None]] = []
        for name, engine in zip(("a", "b"), engines or (CountingEngine(), CountingEngine()), strict=True):
            self.benches[name] = bench(
                engine,
                worker=name,
                transports=transports or {"loopback": path},
                send=self._sender(name),
                arena_bytes=arena_bytes,
                engine_thread=engine_threads(name),
                environment=dict((environments or {}).get(name, {"field": "value"})),
                **host,
            )

    def _sender(self, name: str) -> Callable[[Any], None]:
        def send(message: Any) -> None:
            self.benches[name].sent.append(message)
            if isinstance(message, BlockDone):
                self.heard_of(message)
            if isinstance(message, LedgerAsk):
                self.tasks.append(asyncio.ensure_future(self._ask(name, message)))
            elif isinstance(message, MoveMessage):
                if message.to == CONTROLLER:
                    self.heard.append(message)
                elif not self.loses(message):
                    carried: Any = message
                    asyncio.get_running_loop().call_soon(self.benches[message.to].worker.take, carried)

        return send

    async def _ask(self, name: str, message: LedgerAsk) -> None:
        _, answer = await self.ledger.ask(message.operation, self.facts)
        if answer is not None and not self.silent:
            self.benches[name].worker.take(LedgerAnswer(request=message.request, answer=answer))

    async def close(self) -> None:
        """End every task, as a worker's process does: once cancelled is not always enough before Python 3.13."""
        for each in self.benches.values():
            await each.background.stop()
        await asyncio.gather(*self.tasks)
        for arena in (arena for each in self.benches.values() for arena in each.arenas):
            if isinstance(arena, DeviceArena) and arena.gate is not None:
                arena.gate.release()  # whoever is dropped with it is let go of in the midst of another test

    async def settle(self) -> None:
        for each in self.benches.values():
            await each.settle()

    async def hears(self, kind: type[MoveMessage], count: int = 1) -> Any:
        """Return the newest message of a kind to the controller, once there are so many."""
        for _ in range(500):
            found = [message for message in self.heard if isinstance(message, kind)]
            if len(found) >= count:
                return found[-1]
            await asyncio.sleep(0.005)
        raise AssertionError(f"{kind.__name__} was not heard")

    async def open_on_a(self, num_blocks: int) -> None:
        await self.ledger.create(Row(session="s-1", owner="a", incarnation=1, epoch=1))
        self.benches["a"].worker.take(Open(session="s-1", epoch=1, seed=5))
        await self.settle()
        self.benches["a"].inputs(*range(num_blocks))
        await self.settle()
        self.acknowledge("a", num_blocks - 1)

    def acknowledge(self, name: str, block: int) -> None:
        done = Acknowledge(session="s-1", epoch=1, block=block, server_life=1)
        self.benches[name].worker.take(done)

    def prepare(self, transport: str) -> None:
        self.benches["a"].worker.take(Prepare(to="a", transport=transport, **HEAD))  # type: ignore[arg-type]

    async def start_move(self, transport: str = "loopback") -> None:
        """Conduct the move up to its start, as a controller would."""
        await self.open_attempt(transport)
        self.start()

    def start(self) -> None:
        start = Start(to="a", destination="b", destination_incarnation=1, nonce=bytes(32), **HEAD)  # type: ignore[arg-type]
        self.benches["a"].worker.take(start)

    def begin(self, *, patience_s: float = 10.0) -> None:
        """Have both ends do what comes before the boundary."""
        head, about = HEAD, {"destination": "b", "destination_incarnation": 1, "nonce": bytes(32), "lease_s": 5.0}
        for end in ("a", "b"):
            begin = Begin(to=end, patience_s=patience_s, strategy=self.strategy, **about, **head)  # type: ignore[arg-type]
            self.benches[end].worker.take(begin)

    async def open_attempt(self, transport: str = "loopback") -> None:
        """Conduct the move until the ledger has opened it."""
        await self.offer(transport)
        await self.hears(Reserved)
        about = {"session": "s-1", "attempt": HEAD["attempt"], "epoch": 1}
        opened = OpenAttempt(destination="b", destination_incarnation=1, **about)  # type: ignore[arg-type]
        await self.ledger.ask(opened, self.facts)

    async def offer(self, transport: str) -> None:
        self.prepare(transport)
        self.offer_again(transport, await self.hears(Prepared))

    def offer_again(self, transport: str, prepared: Prepared, **other: str) -> None:
        """Offer what was prepared, once more or with another attempt's name."""
        head = HEAD | other
        self.benches["b"].worker.take(
            Offer(
                to="b",
                layout=prepared.layout,
                environment=prepared.environment,
                ticket=prepared.ticket,
                nonce=bytes(32),
                source="a",
                source_incarnation=1,
                transport=transport,
                strategy=self.strategy,
                lease_s=5.0,
                **head,  # type: ignore[arg-type]
            )
        )


def moved(trial: Callable[[Pair], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        pair = Pair()
        try:
            await pair.open_on_a(3)
            await trial(pair)
        finally:
            await pair.close()
        assert pair.benches["a"].failures == pair.benches["b"].failures == []

    asyncio.run(run())


def test_a_moved_session_goes_on_at_the_other_worker_and_its_retired_copy_agrees() -> None:
    async def trial(pair: Pair) -> None:
        pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=3)
        await pair.start_move()
        ended: Ended = await pair.hears(Ended)
        assert ended.outcome == "committed"
        a, b = pair.benches["a"], pair.benches["b"]
        for each in (a, b):
            each.inputs(3, 4)
        await b.rest()
        assert b.blocks() == [3, 4]
        pair.facts = Facts(owner="b", incarnation=1, epoch=2, owner_gone=False, next_block=5)
        for name in ("a", "b"):
            pair.acknowledge(name, 4)
        await a.rest()
        await a.rest()
        assert a.checks() == [3, 4]
        checks = [(done.frame_sha256, done.state_digest) for done in a.sent if type(done).__name__ == "CheckDone"]
        assert checks == [(d.frame_sha256, d.state_digest) for d in b.sent if type(d).__name__ == "BlockDone"]
        assert a.copies().copies == ()
        assert a.copies().slots_free == 2

    moved(trial)


def test_a_closed_attempt_leaves_the_source_playing_and_the_destinations_slot_free() -> None:
    async def trial(pair: Pair) -> None:
        a, b = pair.benches["a"], pair.benches["b"]
        await pair.start_move()
        await pair.ledger.ask(
            CloseAttempt(session="s-1", attempt=ATTEMPT, epoch=1, worker=CONTROLLER, incarnation=0, boundary=0),
            pair.facts,
        )
        await pair.hears(Ended, 2)
        await a.rest()
        a.inputs(3)
        await a.settle()
        assert a.blocks() == [0, 1, 2, 3]
        assert (b.copies().copies, b.copies().slots_free, b.copies().slots_quarantined) == ((), 2, 0)

    moved(trial)


def test_an_offer_while_an_earlier_one_is_served_is_declined_aloud_and_changes_nothing() -> None:
    """Silence would be waited for."""

    async def trial(pair: Pair) -> None:
        await pair.offer("loopback")
        await pair.hears(Reserved)
        pair.offer_again("loopback", await pair.hears(Prepared), attempt=LATER)
        declined: Declined = await pair.hears(Declined)
        assert (declined.attempt, declined.reason) == (LATER, "copy_held")
        pair.offer_again("loopback", await pair.hears(Prepared))
        reserved: Reserved = await pair.hears(Reserved, 2)  # the first is served on
        assert reserved.attempt == ATTEMPT
        assert [copy.phase for copy in pair.benches["b"].copies().copies] == ["shadow"]

    moved(trial)


class HeldPath(Loopback):
    """Its channels are let go of when the test says so."""

    def __init__(self) -> None:
        tokens = iter(range(100))
        super().__init__(blocking=inline, tokens=lambda: next(tokens).to_bytes(32, "big"))
        self.may_close = asyncio.Event()

    async def connect(self, ticket: bytes) -> LoopbackChannel:
        channel = await super().connect(ticket)
        close = channel.close

        async def closed() -> None:
            await self.may_close.wait()
            await close()

        channel.close = closed  # type: ignore[method-assign]
        return channel


def offered_while_letting_go(then: Callable[[Pair], None]) -> Pair:
    """Offer a session while the destination of an earlier offer still holds its path; it lets go after ``then``."""

    async def run() -> Pair:
        path = HeldPath()
        pair = Pair(transports={"loopback": path})
        try:
            await pair.open_on_a(3)
            await pair.offer("loopback")
            await pair.hears(Reserved)
            pair.benches["b"].worker.take(Cancel(to="b", **HEAD))  # type: ignore[arg-type]
            await pair.hears(Ended)
            await pair.settle()
            assert pair.benches["b"].copies().copies == ()  # and yet its path is still held
            pair.offer_again("loopback", await pair.hears(Prepared), attempt=LATER)
            await pair.settle()
            then(pair)
            path.may_close.set()
            await pair.settle()
            await asyncio.sleep(0.05)
            await pair.settle()
        finally:
            path.may_close.set()
            await pair.close()
        assert not [message for message in pair.heard if isinstance(message, Declined)]
        return pair

    return asyncio.run(run())


def test_an_offer_that_comes_while_the_one_before_lets_go_of_its_path_is_taken_once_it_has() -> None:
    pair = offered_while_letting_go(lambda pair: None)
    assert [message.attempt for message in pair.heard if isinstance(message, Reserved)] == [ATTEMPT, LATER]


def test_an_offer_that_waits_is_forgotten_where_it_is_cancelled_or_its_session_closed() -> None:
    for ends in (Cancel(to="b", **HEAD | {"attempt": LATER}), Close(session="s-1")):  # type: ignore[arg-type]
        pair = offered_while_letting_go(lambda pair, ends=ends: pair.benches["b"].worker.take(ends))  # type: ignore[misc]
        assert [message.attempt for message in pair.heard if isinstance(message, Reserved)] == [ATTEMPT]
        assert pair.benches["b"].copies().slots_free == 2


def test_a_session_that_is_closed_while_its_destination_is_in_doubt_leaves_its_slot_free() -> None:
    async def trial(pair: Pair) -> None:
        a, b = pair.benches["a"], pair.benches["b"]
        pair.silent = True
        await pair.start_move()
        await pair.hears(Ended)
        for each in (a, b):
            each.worker.take(Close(session="s-1"))
        await pair.ledger.forget("s-1")
        for _ in range(500):  # its question to the ledger may still be under way
            await asyncio.sleep(0.01)
            if b.copies().slots_free == 2:
                break
        assert [(each.copies().copies, each.copies().slots_free) for each in (a, b)] == [((), 2), ((), 2)]

    moved(trial)


def test_a_saved_world_that_comes_slowly_holds_up_no_move_at_either_end(tmp_path: Path) -> None:
    slow = {name: tmp_path / name for name in ("a", "b")}
    for path in slow.values():
        os.mkfifo(path)  # to open it waits for whoever writes

    async def run(threads: dict[str, OneThread]) -> None:
        pair = Pair(copy_thread=threads["copy"], file_thread=threads["file"])
        await pair.open_on_a(3)
        for name, path in slow.items():
            pair.benches[name].worker.take(Open(session="s-2", epoch=1, seed=5, saved=str(path)))
        await pair.settle()
        try:
            await pair.start_move()
            ended: Ended = await pair.hears(Ended)
            assert ended.outcome == "committed"
            assert [each.of(Failed) for each in pair.benches.values()] == [[], []]
        finally:
            for path in slow.values():
                await asyncio.to_thread(path.write_bytes, b"")
            for each in pair.benches.values():
                while not each.of(Failed):  # noqa: ASYNC110
                    await asyncio.sleep(0.001)
            await pair.close()

    threads = {name: OneThread(name) for name in ("copy", "file")}
    asyncio.run(run(threads))
    for thread in threads.values():
        thread.close()


def test_a_retired_copy_that_is_told_to_take_over_plays_on_from_the_block_that_is_due() -> None:
    async def trial(pair: Pair) -> None:
        a = pair.benches["a"]
        await pair.start_move()
        await pair.hears(Ended)
        pair.facts = Facts(owner="b", incarnation=1, epoch=2, owner_gone=False, next_block=4)
        a.inputs(3, 4, 5)
        await a.rest()
        await a.rest()
        assert a.copies().copies[0].phase == "retired"
        a.worker.take(TakeOver(session="s-1", epoch=3, block=4))
        await a.rest()
        sent = [(done.block, done.epoch) for done in a.sent if type(done).__name__ == "BlockDone"]
        assert sent == [(0, 1), (1, 1), (2, 1), (4, 3), (5, 3)]

    moved(trial)


def test_what_a_retired_copy_has_stepped_as_checks_is_compared_before_it_plays_on() -> None:
    async def trial(pair: Pair) -> None:
        a = pair.benches["a"]
        await pair.start_move()
        await pair.hears(Ended)
        pair.facts = Facts(owner="b", incarnation=1, epoch=2, owner_gone=False, next_block=5)
        a.worker.take(Acknowledge(session="s-1", epoch=2, block=3, server_life=1))
        a.inputs(3, 4, 5)
        await a.rest()
        checks = {done.block: done.frame_sha256 for done in a.of(CheckDone)}
        assert list(checks) == [3]
        a.worker.take(TakeOver(session="s-1", epoch=3, block=5))
        await a.rest()
        told = [done for done in a.sent if isinstance(done, Replayed | BlockDone)][-3:]
        assert [(type(done), done.block, done.epoch) for done in told] == [
            (Replayed, 3, 3),
            (Replayed, 4, 3),
            (BlockDone, 5, 3),
        ]
        assert told[0].frame_sha256 == checks[3]

    moved(trial)
