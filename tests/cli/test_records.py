"""Records and saved worlds of a real server: two workers, two moves, and a replay that never moved."""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from tests.cli.command import Ran, worldmove
from tests.cli.rewriting import entries, rewritten
from tests.serve.test_server import Client, playing
from worldmove.cli.exits import ExitCode
from worldmove.engine.base import KeyChange
from worldmove.serve.house import House
from worldmove.serve.record_entries import BlockEntry, Entry, MoveEntry, StateEntry
from worldmove.serve.server import inhabited
from worldmove.serve.server_config import ServerConfig
from worldmove.worker.config import WorkerConfig
from worldmove.worker.engines import build_engine

ENGINE = "reference:tiny"
CONFIG = ServerConfig(
    port=0, worker=WorkerConfig(engine=ENGINE, log_level="warning"), rest_after_s=60.0, account_every=4
)


@dataclass
class Kept:
    """What a server left behind: a record with two moves, a saved world, and the record of what went on from it."""

    walk: Path
    saved: Path
    later: Path
    num_blocks: int
    """Of ``walk``: at least those before ``saved``."""
    leaves: Ran
    opened: Ran


async def _walked(client: Client, http: httpx.AsyncClient, session: str) -> None:
    """Play, and move twice on the way."""
    await client.press(("up", True))
    for to in ("worker-2", "worker-1"):
        await client.blocks(5)
        await client.press(("up", False), ("right", True))
        moved = await http.post(f"/api/sessions/{session}/move", json={"to": to})
        assert moved.json()["outcome"] == "committed", moved.text
        await client.press(("right", False), ("up", True))
    await client.until(lambda: client.frames and client.frames[-1][0].block >= 16)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("kept")
    found: list[Kept] = []

    async def work(house: House, http: httpx.AsyncClient) -> None:
        async def ran(*arguments: str) -> Ran:
            return await asyncio.to_thread(worldmove, *arguments, "--server", house.url)

        session = (await http.post("/api/sessions", json={"seed": 11})).json()["session"]
        async with playing(house, session) as client:
            await _walked(client, http, session)
            kept = Kept(
                walk=folder / "walk.record",
                saved=folder / "world.saved",
                later=folder / "later.record",
                num_blocks=0,
                leaves=await ran("inspect", session, "--json"),
                opened=Ran(1, "", ""),
            )
            saving = await ran("save", session, "-o", str(kept.saved), "--json")
            assert saving.status == ExitCode.DONE, saving.err
            kept.num_blocks = saving.document["block"] + 1
            recording = await ran("record", session, "-o", str(kept.walk), "--blocks", str(kept.num_blocks))
            assert recording.status == ExitCode.DONE, recording.err
        kept.opened = await ran("open", "--from", str(kept.saved), "--worker", "worker-2", "--json")
        assert kept.opened.status == ExitCode.DONE, kept.opened.err
        again = kept.opened.document["session"]
        async with playing(house, again) as client:
            await client.press(("left", True))
            await client.blocks(9)
            recording = await ran("record", again, "-o", str(kept.later), "--blocks", "8")
            assert recording.status == ExitCode.DONE, recording.err
        found.append(kept)

    with_server(work)
    return found[0]


def with_server(work: Callable[[House, httpx.AsyncClient], Awaitable[None]]) -> None:
    async def serve() -> None:
        async with (
            inhabited(CONFIG, lambda _: None) as house,
            httpx.AsyncClient(base_url=house.url, trust_env=False, timeout=60) as http,
        ):
            await work(house, http)

    asyncio.run(serve())


@pytest.mark.slow
def test_a_record_of_two_moves_is_equal_to_its_replay_on_an_engine_that_never_moved(kept: Kept) -> None:
    ran = worldmove("verify", str(kept.walk))
    assert (ran.status, ran.out) == (ExitCode.DONE, f"equal over {kept.num_blocks} blocks and 2 moves\n")
    document = worldmove("verify", str(kept.walk), "--json").document
    assert (document["equal"], document["num_moves"], document["ending"]) == (True, 2, "whole")
    assert document["num_frames"] == 2 * kept.num_blocks
    states = [entry.block for entry in entries(kept.walk) if isinstance(entry, StateEntry)]
    # A boundary at which the session is frozen for a move has no account of its own: the move's report has its digest.
    assert len(states) >= 3
    assert document["num_states"] == len(states)


def _frame_changed(entry: Entry) -> Entry:
    if isinstance(entry, BlockEntry) and entry.block == 9:
        return msgspec.structs.replace(entry, frame_sha256=(entry.frame_sha256[0], bytes(32)))
    return entry


def _input_changed(entry: Entry) -> Entry:
    if isinstance(entry, BlockEntry) and entry.block == 2:
        return msgspec.structs.replace(entry, changes=((1, "down", True),))
    return entry


def _leaf_changed(entry: Entry) -> Entry:
    if isinstance(entry, StateEntry) and entry.block >= 5:
        return msgspec.structs.replace(entry, leaf_digests=bytes(8) + entry.leaf_digests[8:])
    return entry


def _state_changed(entry: Entry) -> Entry:
    if isinstance(entry, StateEntry) and entry.block >= 5:
        return msgspec.structs.replace(entry, state_digest="xxh3-128:" + "0" * 32)
    return entry


def _move_changed(entry: Entry) -> Entry:
    if isinstance(entry, MoveEntry):
        wrong = msgspec.structs.replace(entry, report=replace(entry.report, destination_digest="another"))
        return wrong if entry.report.epoch == 2 else entry
    return entry


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "block", "what", "says"),
    [
        (_frame_changed, 9, "frame", r"different at block 9, frame 1; equal over the 9 blocks before"),
        (_input_changed, 2, "frame", r"different at block 2, frame 0 \(leaf caches\[0\]\.\S+ after block \d+\)"),
        (_leaf_changed, None, "state", r"different at the state after block \d+ \(leaf caches\[0\]\.\S+\)"),
        (_state_changed, None, "state", r"different at the state after block \d+; equal over the \d+ blocks before"),
        (_move_changed, None, "move", r"different at the move \S+ before block \d+"),
    ],
)
def test_what_was_changed_in_a_record_is_named_by_its_block_and_leaf(
    kept: Kept, tmp_path: Path, change: Callable[[Entry], Entry], block: int | None, what: str, says: str
) -> None:
    changed = rewritten(kept.walk, tmp_path / "changed.record", change)
    ran = worldmove("verify", str(changed))
    assert ran.status == ExitCode.DIFFERENT
    assert re.match(says, ran.out), ran.out
    assert ("only what was shown differs" in ran.err) == (change is _frame_changed)
    found = worldmove("verify", str(changed), "--json").document["difference"]
    assert found["what"] == what
    states = [entry.block for entry in entries(kept.walk) if isinstance(entry, StateEntry) and entry.block >= 5]
    assert found["block"] == (states[0] if what == "state" else block or found["block"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lacks", "num_moves"), [(("destination_digest",), 2), (("source_digest", "destination_digest"), 1)]
)
def test_a_digest_that_an_end_of_a_move_never_said_is_no_difference(
    kept: Kept, tmp_path: Path, lacks: tuple[str, ...], num_moves: int
) -> None:
    unsaid_ones: dict[str, Any] = dict.fromkeys(lacks, "")

    def unsaid(entry: Entry) -> Entry:
        if isinstance(entry, MoveEntry) and entry.report.epoch == 2:
            return msgspec.structs.replace(entry, report=replace(entry.report, **unsaid_ones))
        return entry

    ran = worldmove("verify", str(rewritten(kept.walk, tmp_path / "unsaid.record", unsaid)), "--json")
    assert (ran.status, ran.document["num_moves"]) == (ExitCode.DONE, num_moves), ran.out


@pytest.mark.slow
def test_a_move_is_compared_where_it_began_its_epoch_though_a_copy_has_taken_over_before_it_was_told(
    kept: Kept, tmp_path: Path
) -> None:
    def told_later(entry: Entry) -> Entry:
        if isinstance(entry, MoveEntry):
            return msgspec.structs.replace(entry, report=replace(entry.report, epoch=entry.report.epoch + 1))
        return entry

    ran = worldmove("verify", str(rewritten(kept.walk, tmp_path / "later.record", told_later)))
    assert (ran.status, ran.out) == (ExitCode.DONE, f"equal over {kept.num_blocks} blocks and 2 moves\n")


@pytest.mark.slow
def test_a_saved_world_goes_on_bit_for_bit_as_the_original_would_have(kept: Kept) -> None:
    ran = worldmove("verify", str(kept.later), "--from", str(kept.saved))
    assert (ran.status, ran.out) == (ExitCode.DONE, "equal over 8 blocks and 0 moves\n")
    engine = build_engine(ENGINE, 1)
    original = engine.open(11)
    walk = {entry.block: entry for entry in entries(kept.walk) if isinstance(entry, BlockEntry)}
    later = [entry for entry in entries(kept.later) if isinstance(entry, BlockEntry)]
    first = later[0].block
    assert first > 0
    for entry in [*(walk[block] for block in range(first)), *later]:
        changes = [KeyChange(number=number, key=key, down=down) for number, key, down in entry.changes]
        block = engine.step(original, changes)
        assert tuple(hashlib.sha256(frame.data).digest() for frame in block.frames) == entry.frame_sha256
    released = [key for _, key, down in later[0].changes if not down]
    assert "up" in released  # whoever held it is not there


@pytest.mark.slow
def test_a_record_that_went_on_needs_the_world_it_went_on_from(kept: Kept) -> None:
    ran = worldmove("verify", str(kept.later))
    assert ran.status == ExitCode.USAGE
    assert "name that file with --from" in ran.err
    assert worldmove("verify", str(kept.later), "--from", str(kept.walk)).status == ExitCode.USAGE


@pytest.mark.slow
def test_inspect_explains_a_record_a_saved_world_and_a_live_one(kept: Kept) -> None:
    record = worldmove("inspect", str(kept.walk))
    assert f"{kept.num_blocks} blocks from block 0 on" in record.out
    assert re.search(r"committed +done", record.out)
    saved, live = worldmove("inspect", str(kept.saved)), kept.leaves.document
    assert "caches[0]" in saved.out
    assert re.search(r"keys down +up", saved.out)
    document = worldmove("inspect", str(kept.saved), "--json").document
    assert [leaf["path"] for leaf in live["leaves"]] == [leaf["path"] for leaf in document["leaves"]]
    assert live["num_bytes"] == sum(leaf["num_bytes"] for leaf in live["leaves"])


@pytest.mark.slow
def test_a_saved_world_that_is_damaged_anywhere_is_refused_in_one_sentence(kept: Kept, tmp_path: Path) -> None:
    whole = kept.saved.read_bytes()
    damaged = tmp_path / "damaged.saved"
    for at in (0, 5, 20, 40, len(whole) // 2, len(whole) - 1):
        damaged.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        ran = worldmove("inspect", str(damaged))
        assert (ran.status, len(ran.err.splitlines())) == (ExitCode.USAGE, 1), (at, ran.err)
    for size in (0, 3, 13, 30, len(whole) - 1):
        damaged.write_bytes(whole[:size])
        assert worldmove("inspect", str(damaged)).status == ExitCode.USAGE


@pytest.mark.slow
@pytest.mark.parametrize(("name", "field"), [("CountingEngine", "geometry"), ("wayward:Cold", "name")])
def test_a_record_of_another_engine_is_not_damaged_and_the_fields_that_differ_are_said(
    kept: Kept, name: str, field: str
) -> None:
    module = name if ":" in name else f"counting:{name}"
    ran = worldmove("verify", str(kept.walk), "--engine", f"python:tests.worker.{module}", "--json")
    assert ran.document["error"]["code"] == "environment"
    assert f"engine.{field} is " in ran.document["error"]["message"]
    assert "damaged" not in ran.out + ran.err
