"""Saved worlds on their way through the server's folder."""

import asyncio
import gc
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from worldmove.errors import UserError
from worldmove.serve import spool as spool_file
from worldmove.serve.spool import PREFIX, CutOffError, Pieces, Spool
from worldmove.serve.state_folder import SAVED


def test_whoever_writes_a_file_that_nobody_waits_for_any_more_cannot(tmp_path: Path) -> None:
    spool = Spool(tmp_path / SAVED)
    with spool.file() as file:
        file.path.write_bytes(b"in time")
    with pytest.raises(FileNotFoundError):
        file.path.open("xb")
    with spool.file() as again:
        again.path.write_bytes(b"another")
        assert again.path != file.path
    spool.close()


async def _all(pieces: Pieces) -> bytes:
    return b"".join([piece async for piece in pieces])


def test_no_more_files_are_there_at_one_time_than_there_may_be_read_or_not(tmp_path: Path) -> None:
    """Each is as large as a world, and those who read it as slowly as they like are many."""
    spool = Spool(tmp_path / SAVED, most_files=2)
    sent: list[Pieces] = []
    for _ in range(2):
        with spool.file() as file:
            file.path.write_bytes(b"world")
            sent.append(file.send(b"header "))
    with pytest.raises(UserError, match="try again"), spool.file():
        pass
    assert asyncio.run(_all(sent[0])) == b"header world"
    with spool.file(), pytest.raises(UserError, match="try again"), spool.file():
        pass
    sent.clear()  # a client that has vanished
    gc.collect()
    with spool.file(), spool.file():
        pass
    with pytest.raises(ZeroDivisionError), spool.file():
        raise ZeroDivisionError
    with spool.file(), spool.file():
        pass
    spool.close()


def test_what_a_killed_server_has_left_goes_with_the_next_one(tmp_path: Path) -> None:
    killed = Spool(tmp_path / SAVED)
    with killed.file() as file:
        left = file.path.parents[1]
        assert left.name.startswith(PREFIX)
        file.path.write_bytes(b"world")
        spool = Spool(tmp_path / SAVED)
        assert not left.exists()
        left.mkdir()  # for the one that was killed, which removes its file's folder here
        file.path.parent.mkdir()
    with spool.file() as another:
        assert another.path.parents[1] != left
    for each in (spool, killed):
        each.close()
    assert list(tmp_path.iterdir()) == []


def test_where_somebody_has_cleaned_up_the_folder_is_made_anew(tmp_path: Path) -> None:
    spool = Spool(tmp_path / SAVED)
    with spool.file() as file:
        folder = file.path.parents[1]
    shutil.rmtree(folder)
    with spool.file() as file:
        file.path.write_bytes(b"world")
        assert file.path.parents[1] == (tmp_path / SAVED).readlink()
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_whose_folder_is_cleaned_away_under_it_gives_its_place_back() -> None:
    spool = Spool(most_files=1)
    for _ in range(3):
        with spool.file() as file:
            shutil.rmtree(file.path.parents[1])
    spool.close()


def test_a_link_that_says_otherwise_is_not_followed(tmp_path: Path) -> None:
    mine, link = tmp_path / "mine", tmp_path / SAVED
    mine.mkdir()
    link.symlink_to(mine)
    Spool(link).close()
    assert mine.exists()
    assert not link.is_symlink()


def test_who_reads_too_slowly_keeps_no_place_that_another_wants(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(spool_file, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(spool_file, "PIECE_BYTES", 1 << 20)
    spool, sent = Spool(most_files=2), list[Pieces]()
    for _ in range(2):
        with spool.file() as file:
            file.path.write_bytes(bytes(8 << 20))
            sent.append(file.send(b""))

    async def read(pieces: Pieces, num_pieces: int) -> int:
        return sum([len(await anext(pieces)) for _ in range(num_pieces)])

    now[0] = 9.0  # nobody is judged yet
    with pytest.raises(UserError, match="try again"), spool.file():
        pass
    now[0] = 11.0
    assert asyncio.run(read(sent[0], 4)) == 4 << 20
    with spool.file() as file:
        file.path.write_bytes(b"another's")
    with pytest.raises(CutOffError):
        asyncio.run(read(sent[1], 1))
    assert asyncio.run(read(sent[0], 4)) == 4 << 20
    spool.close()


def test_who_is_cut_off_in_the_middle_of_a_read_hears_the_same() -> None:
    """The file is closed beneath a thread that reads it."""

    class Cutting(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            pieces.cut()
            return super().read(size)

    pieces = Pieces(b"", Cutting(b"content"), lambda: None)
    with pytest.raises(CutOffError):
        asyncio.run(anext(pieces))


def _removed(place: Path) -> None:
    shutil.rmtree(place)


def _a_file(place: Path) -> None:
    shutil.rmtree(place)
    place.write_bytes(b"")


@pytest.mark.parametrize("harm", [_removed, _a_file])
def test_where_there_is_no_temporary_folder_that_is_said_each_time_and_every_place_is_given_back(
    harm: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    spool = Spool(tmp_path / SAVED, most_files=1)
    with spool.file():
        harm(place)
    for _ in range(3):
        with pytest.raises(UserError, match="cannot be kept") as refused, spool.file():
            pass
        assert (refused.value.code, refused.value.status) == ("cannot_write", 507)
    place.unlink(missing_ok=True)
    place.mkdir()
    with spool.file() as file:
        file.path.write_bytes(b"world")
    spool.close()
    assert list(place.iterdir()) == []


def test_a_world_that_is_cleaned_away_on_its_way_is_said_and_gives_its_place_back() -> None:
    async def nothing() -> AsyncIterator[bytes]:
        yield b""

    spool = Spool(most_files=1)
    for ask in (
        lambda file: file.send(b"header"),
        lambda file: file.open(),
        lambda file: asyncio.run(spool.write(file.path, nothing(), 0)),
    ):
        with spool.file() as file:
            _removed(file.path.parent)
            with pytest.raises(UserError, match="cannot be kept") as refused:
                ask(file)
        assert refused.value.code == "cannot_write"
    with spool.file():
        pass
    spool.close()


def test_what_has_the_links_name_and_is_none_is_let_be_and_worlds_pass_all_the_same(tmp_path: Path) -> None:
    (tmp_path / SAVED).mkdir()
    spool = Spool(tmp_path / SAVED)
    with spool.file() as file:
        file.path.write_bytes(b"world")
    spool.close()
    assert (tmp_path / SAVED).is_dir()


@pytest.mark.parametrize("name", [b"\xff", b"/".join([b"x" * 200] * 11)])
def test_a_folder_whose_name_no_worker_can_be_told_ends_no_link(
    name: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    place.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    spool = Spool(most_files=1)
    for _ in range(2):
        with pytest.raises(UserError, match="TMPDIR") as refused, spool.file():
            pass
        assert refused.value.code == "cannot_write"
    spool.close()
