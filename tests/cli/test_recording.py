"""A record on its way into a file, however it ends: the file is a whole record, or there is none."""

import io
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.serve.test_record_file import HEADER, encoded
from worldmove.cli.client import Client
from worldmove.cli.files import beside, whole_file
from worldmove.cli.no_answer import Unreachable
from worldmove.cli.recording import record_to
from worldmove.cli.termination import ToldToEnd
from worldmove.errors import FileRefused, UserError
from worldmove.serve.record_entries import BlockEntry, EndEntry, Entry
from worldmove.serve.record_file import Ending, Progress, RecordReader

ENTRIES: list[Entry] = [BlockEntry(HEADER.first_block + at, 1, "w", (), (bytes(32),) * 2) for at in range(4)]
OPEN = encoded(ENTRIES)
WHOLE = encoded([*ENTRIES, EndEntry("closed", 4, 0)])


def pieces(data: bytes, error: BaseException | None = None) -> Iterator[bytes]:
    for at in range(0, len(data), 50):
        yield data[at : at + 50]
    if error is not None:
        raise error


def read(path: Path) -> Progress:
    data = path.read_bytes()
    reader = RecordReader(io.BytesIO(data), len(data))
    for _ in reader:
        pass
    return reader.progress


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    return tmp_path / "walk.record"


def test_a_record_that_ends_by_itself_is_kept_as_it_came(path: Path) -> None:
    assert record_to(path, pieces(WHOLE)).num_blocks == 4
    assert path.read_bytes() == WHOLE


def test_ctrl_c_in_the_middle_of_an_entry_drops_that_entry_and_says_why_the_record_ends(path: Path) -> None:
    progress = record_to(path, pieces(OPEN[:-5], KeyboardInterrupt()))
    assert (progress.num_blocks, progress.why, progress.num_bytes) == (3, "it was stopped", path.stat().st_size)
    assert (read(path).ending, read(path).num_blocks, read(path).why) == (Ending.WHOLE, 3, "it was stopped")


def test_what_came_before_the_server_went_away_is_kept_and_the_error_is_told(path: Path) -> None:
    with pytest.raises(Unreachable):
        record_to(path, pieces(OPEN, Unreachable("http://x", "reset")))
    assert (read(path).ending, read(path).num_blocks, read(path).why) == (Ending.WHOLE, 4, "the server went away")


def test_what_is_no_record_leaves_no_file(path: Path) -> None:
    with pytest.raises(FileRefused):
        record_to(path, pieces(b"an error page"))
    with pytest.raises(FileRefused):
        record_to(path, pieces(OPEN[:20], KeyboardInterrupt()))
    assert list(path.parent.iterdir()) == []


TOLD = (signal.SIGTERM, signal.SIGHUP)


def told(data: bytes, number: signal.Signals) -> Iterator[bytes]:
    """What comes, until this process is told to end."""
    yield from pieces(data)
    os.kill(os.getpid(), number)
    yield b""


@pytest.mark.parametrize("number", TOLD)
def test_a_signal_that_would_end_the_process_ends_the_record_as_ctrl_c_does(path: Path, number: signal.Signals) -> None:
    progress = record_to(path, told(OPEN[:-5], number))
    assert (progress.num_blocks, progress.why) == (3, "it was stopped")
    assert (read(path).ending, list(path.parent.iterdir())) == (Ending.WHOLE, [path])
    assert signal.getsignal(number) is signal.SIG_DFL


@pytest.mark.parametrize("number", TOLD)
def test_a_file_that_is_not_whole_when_a_signal_comes_is_not_there(path: Path, number: signal.Signals) -> None:
    with suppress(ToldToEnd), whole_file(path) as file:
        file.write(OPEN)
        os.kill(os.getpid(), number)
        file.write(OPEN)
    assert list(path.parent.iterdir()) == []


def test_a_signal_that_comes_again_while_the_record_is_ended_does_not_lose_it(path: Path) -> None:
    with beside(path) as part, suppress(KeyboardInterrupt):
        part.write_bytes(OPEN)
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGHUP)
        part.write_bytes(WHOLE)
    assert path.read_bytes() == WHOLE


def test_a_signal_that_is_ignored_stays_so(path: Path) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert record_to(path, told(WHOLE, signal.SIGHUP)).num_blocks == 4
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def write_record(path: Path) -> None:
    record_to(path, pieces(OPEN))


def write_saved(path: Path) -> None:
    with whole_file(path) as file:
        file.write(OPEN)


@pytest.mark.parametrize("write", [write_record, write_saved])
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half(path: Path, write: Callable[[Path], None]) -> None:
    """The limit on a file's size stands for the disk's."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(OPEN) - 30, hard))
    try:
        with pytest.raises(UserError) as full:
            write(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert full.value.code == "no_space"
    if write is write_saved:
        assert str(full.value) == f"No space is left for {path}; nothing was written."
        assert list(path.parent.iterdir()) == []
    else:
        assert str(full.value) == f"No space is left for {path}; it has the first 3 blocks."
        assert (read(path).num_blocks, os.listdir(path.parent)) == (3, [path.name])


def test_a_file_is_replaced_only_by_a_whole_one(path: Path) -> None:
    path.write_bytes(b"before")
    with suppress(ZeroDivisionError), whole_file(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert path.read_bytes() == b"before"
    with whole_file(path) as file:
        file.write(b"after")
    assert (path.read_bytes(), os.listdir(path.parent)) == (b"after", [path.name])


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written") as refused, whole_file(tmp_path / "no" / "x"):
        pass
    assert refused.value.code == "cannot_write"


@pytest.mark.parametrize("name", ["/", ".", "", "x" * 300])
def test_what_can_be_no_name_of_a_file_is_said(name: str) -> None:
    with pytest.raises(UserError, match=r"is no name of a file|cannot be written") as refused, whole_file(Path(name)):
        pass
    assert refused.value.code == "cannot_write"
    with pytest.raises(UserError, match=r"is no name of a file|cannot be written"):
        record_to(Path(name), pieces(WHOLE))


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/stderr", "/dev/fd/1", "/proc/self/fd/2", "link", "link of it"])
def test_a_descriptor_is_no_place_of_a_file_whatever_lies_behind_it(tmp_path: Path, name: str) -> None:
    """A log that standard error goes to was replaced by the file, and its words were lost."""
    (tmp_path / "link").symlink_to("/dev/stdout")
    (tmp_path / "link of it").symlink_to("link")
    log = tmp_path / "log"
    script = (
        "import sys; from pathlib import Path; from worldmove.cli.files import whole_file\n"
        "with whole_file(Path(sys.argv[1])) as file: file.write(b'x')"
    )
    with log.open("ab") as file:
        file.write(b"old words\n")
        file.flush()
        ran = subprocess.run((sys.executable, "-c", script, name), cwd=tmp_path, stdout=file, stderr=file, check=False)
    assert ran.returncode == 1
    said = log.read_text(encoding="utf-8")
    assert said.startswith("old words\n")
    assert "it is a descriptor of a process, and no file" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "link of it", "log"]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_no_file_keeps_its_place(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    place = tmp_path / "x"
    make(place)
    before = place.lstat()
    with pytest.raises(UserError, match="it is no file") as refused, whole_file(place) as file:
        file.write(b"x")
    assert refused.value.code == "cannot_write"
    with pytest.raises(UserError, match="it is no file"):
        record_to(place, pieces(WHOLE))
    assert (place.lstat().st_ino, [each.name for each in tmp_path.iterdir()]) == (before.st_ino, ["x"])


def test_a_link_to_a_file_stays_one_and_the_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to(tmp_path / "file")
    for text in (b"first", b"second"):
        with whole_file(tmp_path / "x") as file:
            file.write(text)
        assert (tmp_path / "x").is_symlink()
        assert (tmp_path / "file").read_bytes() == text
    assert len(list(tmp_path.iterdir())) == 2


def test_an_address_with_half_a_bracket_is_no_address() -> None:
    with pytest.raises(UserError, match="is no address of a server"):
        Client("http://[")
