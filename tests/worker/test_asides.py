"""What a worker says of a session's state: accounts between blocks, its leaves, a saved copy, and the way back."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pytest
import torch

from tests.state.test_saved import saved as write_saved
from tests.worker.bench_worker import Bench, bench
from tests.worker.counting import CountingEngine, World
from worldmove.engine.base import Block, KeyChange
from worldmove.errors import NoMemory, StateRefused
from worldmove.state.capture import Capture, capture
from worldmove.state.digest import state_digest_of_bytes
from worldmove.state.leaf import GeneratorRecord
from worldmove.state.manifest import Manifest
from worldmove.state.saved import SavedHeader, pack_header
from worldmove.transport.base import Blocking
from worldmove.worker import asides
from worldmove.worker.accounts import PATIENCE, Accounts
from worldmove.worker.messages import (
    BlockDone,
    Change,
    Describe,
    Described,
    Failed,
    Inputs,
    NotDone,
    Open,
    Opened,
    Save,
    Saved,
    StateDone,
    ToServer,
)
from worldmove.worker.source_copy import SourceOfMove
from worldmove.worker.states import DIGESTER, account_of, digest_of

T = TypeVar("T")


def opened(run: Callable[[Bench], Awaitable[None]], engine: CountingEngine | None = None, **host: Any) -> Bench:
    async def main() -> Bench:
        trial = bench(engine, **host)
        trial.worker.take(Open(session="s-1", epoch=1, seed=5))
        await trial.settle()
        await run(trial)
        await trial.settle()
        return trial

    return asyncio.run(main())


def lists(trial: Bench, *blocks: int, account_after: int | None = None, session: str = "s-1") -> None:
    for block in blocks:
        changes = tuple(Change(number=block, key="up", down=True) for _ in range(block % 2))
        trial.worker.take(Inputs(session=session, block=block, changes=changes, account=block == account_after))


def unmoved(num_blocks: int) -> tuple[str, bytes]:
    """Return state and leaf digests of the bare engine after so many blocks."""
    engine = CountingEngine()
    session = engine.open(5)
    for block in range(num_blocks):
        engine.step(session, [Change(number=block, key="up", down=True) for _ in range(block % 2)])  # type: ignore[misc]
    account = account_of(engine, session)
    return account.state_digest, account.leaf_digests


def test_an_account_follows_its_block_and_says_what_the_bare_engine_has_there() -> None:
    async def run(trial: Bench) -> None:
        for block in range(4):
            lists(trial, block, account_after=2)
            await trial.settle()

    trial = opened(run)
    (account,) = trial.of(StateDone)
    assert (account.block, (account.state_digest, account.leaf_digests)) == (2, unmoved(3))
    assert account.paths == ("numbers", "generator", "block", "number")
    order = [message.block for message in trial.sent if isinstance(message, BlockDone | StateDone)]
    assert order == [0, 1, 2, 2, 3]


def test_an_account_is_put_off_while_lists_wait_and_says_of_which_block_it_is() -> None:
    async def run(trial: Bench) -> None:
        lists(trial, *range(5), account_after=1)
        await trial.settle()

    (account,) = opened(run).of(StateDone)
    assert (account.block, account.state_digest) == (4, unmoved(5)[0])


def test_an_account_is_not_put_off_for_ever() -> None:
    accounts = Accounts()
    accounts.ask(3)
    assert not accounts.is_due(3, list_waits=False)
    accounts.stepped(3)
    assert accounts.is_due(4, list_waits=False)
    assert not accounts.is_due(4, list_waits=True)
    assert not accounts.is_due(3 + PATIENCE, list_waits=True)
    assert accounts.is_due(4 + PATIENCE, list_waits=True)
    accounts.given()
    assert not accounts.is_due(99, list_waits=False)


def test_a_state_that_cannot_be_carried_has_no_account_and_the_session_plays_on() -> None:
    async def run(trial: Bench) -> None:
        lists(trial, 0, account_after=0)
        trial.engine.state = lambda session: {"number": object()}
        await trial.settle()
        lists(trial, 1)

    trial = opened(run)
    assert (trial.of(StateDone), trial.blocks()) == ([], [0, 1])


def test_what_was_asked_of_an_earlier_owner_is_not_owed_by_the_next() -> None:
    accounts = Accounts()
    accounts.ask(3)
    accounts.ask(7)
    accounts.forget_before(5)
    accounts.stepped(5)
    assert not accounts.is_due(6, list_waits=False)
    accounts.stepped(7)
    assert accounts.is_due(8, list_waits=False)


def test_leaves_are_described_while_the_session_goes_on() -> None:
    async def run(trial: Bench) -> None:
        lists(trial, 0)
        await trial.settle()
        trial.worker.take(Describe(session="s-1", request=4))

    (described,) = opened(run).of(Described)
    assert (described.request, described.block) == (4, 1)
    assert (described.leaves[0].path, described.leaves[0].num_bytes) == ("numbers", 16)
    assert described.num_leaves == len(described.leaves)
    assert described.num_bytes == sum(leaf.num_bytes for leaf in described.leaves)


def test_of_more_leaves_than_are_told_the_largest_are_and_the_rest_is_summed_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever a client's world consists of, nobody's answer grows with it."""
    monkeypatch.setattr(asides, "MAX_TOLD", 1)

    async def run(trial: Bench) -> None:
        lists(trial, 0)
        await trial.settle()
        trial.worker.take(Describe(session="s-1", request=4))

    (described,) = opened(run).of(Described)
    (leaf,) = described.leaves
    assert leaf.path == "generator"
    assert described.num_leaves > 1
    assert described.num_bytes >= leaf.num_bytes + 16  # those of the numbers


def header_of(saved: Saved, environment: dict[str, str]) -> SavedHeader:
    return SavedHeader(
        worldmove="0",
        engine="none",
        num_threads=1,
        session="s-1",
        worker="w-1",
        epoch=saved.epoch,
        seed=5,
        block=saved.block,
        number=1,
        down=(),
        environment=environment,
        state_digest=saved.state_digest,
        manifest_sha256=saved.manifest_sha256,
        manifest_bytes=saved.manifest_bytes,
        num_bytes=saved.num_bytes,
        remainders=saved.remainders,
    )


def test_a_saved_session_goes_on_beside_the_original_with_the_same_blocks(tmp_path: Path) -> None:
    async def run(trial: Bench) -> None:
        lists(trial, 0, 1, 2)
        await trial.settle()
        spool = tmp_path / "1.saved"
        trial.worker.take(Save(session="s-1", request=1, path=str(spool)))
        await trial.settle()
        (saved,) = trial.of(Saved)
        manifest = Manifest.from_bytes(spool.read_bytes()[: saved.manifest_bytes])
        with spool.open("rb") as file:
            file.seek(saved.manifest_bytes)
            assert state_digest_of_bytes(manifest, file.read, DIGESTER).text == saved.state_digest == unmoved(3)[0]
        whole = tmp_path / "world.saved"
        whole.write_bytes(pack_header(header_of(saved, {})) + spool.read_bytes())
        trial.worker.take(Open(session="s-2", epoch=1, seed=5, saved=str(whole)))
        await trial.settle()
        for session in ("s-1", "s-2"):
            lists(trial, 3, 4, 5, session=session)
            await trial.settle()

    trial = opened(run)
    assert [message.state_digest for message in trial.of(Opened)][1] == unmoved(3)[0]
    blocks = {(done.session, done.block): done.frame_sha256 for done in trial.of(BlockDone)}
    assert [blocks["s-2", block] for block in (3, 4, 5)] == [blocks["s-1", block] for block in (3, 4, 5)]
    assert ("s-2", 2) not in blocks
    copies = [trial.worker.copies.get(session) for session in ("s-1", "s-2")]
    assert len({digest_of(trial.engine, copy.engine_session) for copy in copies if copy is not None}) == 1


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:-1] + bytes([data[-1] ^ 1])])
def test_a_damaged_saved_session_is_not_opened_and_its_slot_is_free_again(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    async def run(trial: Bench) -> None:
        spool, whole = tmp_path / "1.saved", tmp_path / "world.saved"
        trial.worker.take(Save(session="s-1", request=1, path=str(spool)))
        await trial.settle()
        whole.write_bytes(damage(pack_header(header_of(trial.of(Saved)[0], {})) + spool.read_bytes()))
        trial.worker.take(Open(session="s-2", epoch=1, seed=5, saved=str(whole)))

    trial = opened(run)
    (failed,) = trial.of(Failed)
    assert (failed.session, failed.code) == ("s-2", "bad_file")
    assert trial.copies().slots_free == 1


def test_what_cannot_be_met_is_answered_and_leaves_no_file(tmp_path: Path) -> None:
    async def run(trial: Bench) -> None:
        trial.worker.take(Save(session="s-9", request=1, path=str(tmp_path / "a")))
        trial.worker.take(Save(session="s-1", request=2, path=str(tmp_path / "no folder" / "b")))
        await trial.settle()
        copy = trial.worker.copies.get("s-1")
        assert copy is not None
        await SourceOfMove(copy, trial.worker.tools, trial.worker.copies.snapshot).freeze()
        trial.worker.take(Describe(session="s-1", request=3))
        await asyncio.sleep(trial.engine.spec.period_s)  # while it is frozen nobody else has a turn, for a while

    trial = opened(run)
    assert [(answer.request, answer.code) for answer in trial.of(NotDone)] == [
        (1, "moving"),
        (2, "cannot_write"),
        (3, "moving"),
    ]
    assert "frozen here" in trial.of(NotDone)[-1].message
    assert list(tmp_path.iterdir()) == []


def test_a_state_for_which_there_is_no_memory_aside_is_not_saved_and_its_session_plays_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(captured: object) -> None:
        raise NoMemory("all is taken")

    async def run(trial: Bench) -> None:
        monkeypatch.setattr(asides, "copy_aside", none)
        trial.worker.take(Save(session="s-1", request=1, path=str(tmp_path / "a")))
        await trial.settle()
        lists(trial, 0)
        await trial.settle()

    trial = opened(run)
    assert [(answer.request, answer.code) for answer in trial.of(NotDone)] == [(1, "no_memory")]
    assert trial.blocks() == [0]
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_is_whole_and_makes_no_session_ends_nothing_but_its_opening(tmp_path: Path) -> None:
    """Its digests are right, but its generator's state is one that torch refuses."""

    async def run(trial: Bench) -> None:
        engine = CountingEngine()
        state = capture(engine.state(engine.open(5)))
        parts = state.manifest
        wrong = [GeneratorRecord(record.kind, bytes(len(record.state))) for record in parts.generators]
        manifest = Manifest.of(parts.structure, parts.paths(), [leaf.content for leaf in parts.leaves], wrong)
        lie = Capture(manifest=manifest, storages=state.storages)
        for number, lying in enumerate((lie, capture({"another": "engine's"})), 2):
            path = tmp_path / f"{number}.saved"
            write_saved(lying, path)
            trial.worker.take(Open(session=f"s-{number}", epoch=1, seed=5, saved=str(path)))
            await trial.settle()
        lists(trial, 0)

    trial = opened(run)
    assert [(failed.session, failed.code) for failed in trial.of(Failed)] == [
        ("s-2", "bad_manifest"),
        ("s-3", "state_refused"),
    ]
    assert trial.blocks() == [0]
    assert trial.copies().slots_free == 1


def many_views(num: int) -> Capture:
    """A state of one small tensor, seen again and again."""
    memory = torch.zeros(4)
    return capture({"views": [memory[n % 4 :] for n in range(num)]})


def many_generators(num: int) -> Capture:
    """A state of generators whose seeds are long and whose pools are large, as far as they may be."""
    seeds = [np.random.SeedSequence(entropy=2 ** (8 * 3000) + n, pool_size=64) for n in range(num)]
    return capture({"generators": [np.random.Generator(np.random.PCG64(seed)) for seed in seeds]})


@pytest.mark.parametrize("made_up", [partial(many_views, 30_000), partial(many_generators, 300)])
def test_what_a_saved_state_was_made_up_of_takes_the_engines_thread_next_to_nothing(
    tmp_path: Path, made_up: Callable[[], Capture]
) -> None:
    """Everybody's blocks wait for that one, and for no other."""
    took = {"engine": 0.0, "file": 0.0}

    def timed(thread: str) -> Blocking:
        async def run(function: Callable[[], T]) -> T:
            await asyncio.sleep(0)
            begin = time.thread_time()
            try:
                return function()
            finally:
                took[thread] += time.thread_time() - begin

        return run

    async def run(trial: Bench) -> None:
        write_saved(made_up(), tmp_path / "world.saved")
        took.update(engine=0.0, file=0.0)
        trial.worker.take(Open(session="s-2", epoch=1, seed=5, saved=str(tmp_path / "world.saved")))
        await trial.settle()

    trial = opened(run, engine_thread=timed("engine"), file_thread=timed("file"))
    (failed,) = trial.of(Failed)
    assert failed.code == "state_refused"
    assert took["file"] > 0.1
    assert took["engine"] < took["file"] / 10
    assert trial.copies().slots_free == 1


@pytest.mark.parametrize("name", ["\ud800", "x" * 512])
def test_why_a_saved_state_is_refused_is_a_message_whatever_the_file_says(tmp_path: Path, name: str) -> None:
    class Quoting(CountingEngine):
        def install(self, state: dict[str, Any], into: World | None = None) -> World:
            if name in state:
                raise StateRefused(name * 9, "this engine has no such leaf")
            return super().install(state, into)

    async def run(trial: Bench) -> None:
        write_saved(capture({name: 1}), tmp_path / "world.saved")
        trial.worker.take(Open(session="s-2", epoch=1, seed=5, saved=str(tmp_path / "world.saved")))

    (failed,) = opened(run, Quoting()).of(Failed)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(failed), type=ToServer) == failed
    assert failed.code == "state_refused"


class Faithful(CountingEngine):
    """Says the number that stands in its state, as the reference engine does."""

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        block, number = super().step(session, ()), session.number
        return replace(block, notes=tuple(replace(note, number=number) for note in block.notes))


COUNTED = {
    "negative": {"number": -1},
    "too far": {"number": 1 << 62},
    "64 bits": {"number": 1 << 64},
    "thousands of digits": {"number": 1 << 9999},
    "far away": {"block": 1 << 31},
}


@pytest.mark.parametrize("counted", COUNTED.values(), ids=COUNTED)
def test_a_world_that_counts_what_no_message_can_say_ends_alone(tmp_path: Path, counted: dict[str, int]) -> None:
    """Its state is whole and its engine takes it; only what the engine then says of a frame cannot be sent."""

    async def run(trial: Bench) -> None:
        engine = CountingEngine()
        write_saved(capture({**engine.state(engine.open(5)), **counted}), tmp_path / "world.saved")
        trial.worker.take(Open(session="s-2", epoch=1, seed=5, saved=str(tmp_path / "world.saved")))
        await trial.settle()
        for block in (9, 10):
            lists(trial, block - 9)
            trial.worker.take(Inputs(session="s-2", block=block, changes=()))
            await trial.settle()

    trial = opened(run, Faithful())
    for message in trial.sent:
        msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=ToServer)
    assert [(failed.session, failed.code) for failed in trial.of(Failed)] == [("s-2", "engine_failed")]
    assert trial.blocks() == [0, 1]
