"""A record's moves that no block stands before, that share a boundary, or that no block follows are compared too."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

import httpx
import msgspec
import pytest

from tests.cli.command import Ran, worldmove
from tests.cli.rewriting import entries, written
from tests.cli.test_records import with_server
from tests.serve.test_server import playing
from worldmove.cli.exits import ExitCode
from worldmove.cli.recorded_moves import recorded_moves
from worldmove.fleet.reports import MoveReport, Outcome
from worldmove.serve.house import House
from worldmove.serve.record_entries import BlockEntry, EndEntry, Entry, MoveEntry


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A world that is moved before its first block, played, and moved once more."""
    to = tmp_path_factory.mktemp("walk") / "walk.record"

    async def work(house: House, http: httpx.AsyncClient) -> None:
        session = (await http.post("/api/sessions", json={"seed": 12, "worker": "worker-1"})).json()["session"]

        async def move(worker: str) -> None:
            report = (await http.post(f"/api/sessions/{session}/move", json={"to": worker})).json()
            assert report["outcome"] == "committed", report

        await move("worker-2")
        async with playing(house, session) as client:
            await client.press(("up", True))
            await client.blocks(6)
            await move("worker-1")
        ran = await asyncio.to_thread(worldmove, "record", session, "-o", str(to), "--now", "--server", house.url)
        assert ran.status == ExitCode.DONE, ran.err

    with_server(work)
    return to


def at_the_end(walk: Path) -> list[Entry]:
    """What the record is where no block of the second move's epoch had been shown yet."""
    return [entry for entry in entries(walk) if isinstance(entry, MoveEntry) or is_of(entry, 2)]


def without_a_block(walk: Path) -> list[Entry]:
    """What it is where no block was shown at all, and the world was moved there twice."""
    return twice(walk)[:2]


def twice(walk: Path) -> list[Entry]:
    """What it is where it was moved twice before its first block, and never since."""
    (first, *_) = [entry for entry in entries(walk) if isinstance(entry, MoveEntry)]
    back = replace(first.report, attempt="00000002-back", epoch=3, epoch_before=2)
    blocks = [msgspec.structs.replace(entry, epoch=3) for entry in entries(walk) if is_of(entry, 2)]
    return [first, msgspec.structs.replace(first, report=back), *blocks]


def is_of(entry: Entry, epoch: int) -> TypeGuard[BlockEntry]:
    return isinstance(entry, BlockEntry) and entry.epoch == epoch


def whole(walk: Path) -> list[Entry]:
    return [entry for entry in entries(walk) if not isinstance(entry, EndEntry)]


def verified(walk: Path, told: list[Entry]) -> Ran:
    return worldmove("verify", str(written(walk, walk.parent / "told.record", told)))


KINDS = (whole, at_the_end, without_a_block, twice)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_moves_before_the_first_block_after_the_last_and_at_one_boundary_are_compared(
    walk: Path, kind: Callable[[Path], list[Entry]]
) -> None:
    told = kind(walk)
    num_blocks = sum(isinstance(entry, BlockEntry) for entry in told)
    assert is_of(next(entry for entry in whole(walk) if isinstance(entry, BlockEntry)), 2)  # a move before block 0
    ran = verified(walk, told)
    assert (ran.status, ran.out, ran.err) == (ExitCode.DONE, f"equal over {num_blocks} blocks and 2 moves\n", "")


def struck(told: list[Entry], index: int, **fields: Any) -> list[Entry]:
    """Return a record's entries, with one of its moves told otherwise."""
    at = [place for place, entry in enumerate(told) if isinstance(entry, MoveEntry)][index]
    move = told[at]
    assert isinstance(move, MoveEntry)
    changed = msgspec.structs.replace(move, report=replace(move.report, **fields))
    return [*told[:at], changed, *told[at + 1 :]]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["source_digest", "destination_digest"])
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_a_digest_that_an_end_of_any_of_them_has_said_wrongly_is_named_by_its_move(
    walk: Path, kind: Callable[[Path], list[Entry]], index: int, end: str
) -> None:
    told = struck(kind(walk), index, **{end: "another"})
    attempts = [entry.report.attempt for entry in told if isinstance(entry, MoveEntry)]
    at_first = index == 0 or kind in (twice, without_a_block)
    block = 0 if at_first else sum(is_of(entry, 2) for entry in whole(walk))
    ran = verified(walk, told)
    assert ran.status == ExitCode.DIFFERENT
    assert ran.out.startswith(f"different at the move {attempts[index]} before block {block}"), ran.out


@pytest.mark.slow
@pytest.mark.parametrize("index", [0, 1])
def test_an_epoch_that_no_move_of_the_record_began_is_said_not_to_be_compared(walk: Path, index: int) -> None:
    ran = verified(walk, struck(twice(walk), index, outcome=Outcome.IN_DOUBT))
    assert ran.status == ExitCode.DONE
    assert ran.out.endswith(" and 1 move\n")
    said = " ".join(ran.err.split())
    assert said.startswith("Block 0 is the first of epoch 3, and of the epochs up to it 1 began without a committed")


@pytest.mark.slow
def test_where_no_end_of_a_move_before_the_first_block_has_said_a_digest_that_is_said(walk: Path) -> None:
    ran = verified(walk, struck(whole(walk), 0, source_digest="", destination_digest=""))
    assert ran.status == ExitCode.DONE
    assert ran.out.endswith(" and 1 move\n")
    assert "has said a digest: only what was shown is compared" in " ".join(ran.err.split())


def report_of(epoch_before: int, outcome: Outcome = Outcome.COMMITTED) -> MoveReport:
    return MoveReport(
        session="s", attempt=f"{epoch_before}", source="a", destination="b", outcome=outcome, reason="", detail="",
        epoch=epoch_before + 5, tries=1, transport="shm", epoch_before=epoch_before, started_at=0.0, took_s=0.0,
    )  # fmt: skip


def test_every_committed_move_is_at_one_boundary_and_each_epoch_without_one_is_counted() -> None:
    moves = recorded_moves([report_of(7), report_of(1), report_of(2, Outcome.ABORTED), report_of(3)])
    shown = [None, 1, 3, 4, 9]
    found = [moves.between(before, now) for before, now in zip(shown, [*shown[1:], None], strict=True)]
    assert [[report.attempt for report in part] for part in found] == [[], ["1"], ["3"], ["7"], []]
    assert [moves.num_unexplained(before, now) for before, now in ((None, 1), (1, 3), (3, 4), (4, 9))] == [0, 1, 0, 4]
    assert (moves.num_ended, len(moves.committed)) == (4, 3)
    assert moves.num_unexplained(None, 1 << 61) == (1 << 61) - 1 - 3  # whatever a file says
