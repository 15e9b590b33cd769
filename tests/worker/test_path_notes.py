"""What a probe has found of paths: kept for a while, by the devices' own identity; workers go by it."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from worldmove.fleet.path_health import available
from worldmove.worker.path_notes import PathNote, read_notes, trusted, write_notes

OWN = {"peer_bytes_per_s": 100.0, "tcp_bytes_per_s": 10.0, "block_s": 1.0}


def note(**changes: Any) -> PathNote:
    known: dict[str, Any] = {
        "transport": "peer",
        "source": "gpu-a",
        "destination": "gpu-b",
        "source_name": "cuda:0",
        "destination_name": "cuda:1",
        "measured_at": 1.0,
        "until": 50.0,
        "rates": {"4096": 5.0, "1048576": 80.0},
    }
    return PathNote(**known | changes)


def test_notes_are_read_as_they_were_written_until_their_time_is_over(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "paths.json"
    back = note(source="gpu-b", destination="gpu-a", until=20.0)
    write_notes(file, [note(), back], 2.0)
    assert read_notes(file, 19.0) == (note(), back)
    assert read_notes(file, 20.0) == (note(),)
    assert read_notes(file, 50.0) == ()


def test_a_note_of_a_time_that_is_long_to_come_does_not_count_since_a_clock_was_set_back(tmp_path: Path) -> None:
    file = tmp_path / "paths.json"
    write_notes(file, [note()], 2.0)
    assert read_notes(file, -10.0) == (note(),)
    assert read_notes(file, -60.0) == ()


def test_a_newer_note_takes_the_place_of_the_one_of_its_path_and_direction(tmp_path: Path) -> None:
    file = tmp_path / "paths.json"
    write_notes(file, [note(), note(source="gpu-b", destination="gpu-a")], 2.0)
    write_notes(file, [note(why="of 4,096 bytes that arrived, byte 0 is another one")], 3.0)
    assert [bool(found.why) for found in read_notes(file, 4.0)] == [True, False]


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff" * 100, b'{"version":2,"paths":[]}'])
def test_a_file_that_is_none_of_ours_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "paths.json"
    assert read_notes(file, 0.0) == ()
    file.write_bytes(content)
    assert read_notes(file, 0.0) == ()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_has_the_files_name_and_is_none_holds_nobody_up(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    make(tmp_path / "paths.json")
    assert read_notes(tmp_path / "paths.json", 2.0) == ()


@pytest.mark.parametrize("rate", [-1.0, 0.0])
def test_a_rate_that_none_can_be_is_no_note(tmp_path: Path, rate: float) -> None:
    write_notes(tmp_path / "paths.json", [note(rates={"4096": rate})], 2.0)
    assert read_notes(tmp_path / "paths.json", 2.0) == ()


def test_a_path_that_lied_is_none_that_a_worker_of_its_device_has_and_the_verified_one_is_taken() -> None:
    lied = note(why="of 4,096 bytes that arrived, byte 0 is another one")
    assert trusted(OWN, [lied], "gpu-b") == {"tcp_bytes_per_s": 10.0, "block_s": 1.0}
    assert available("peer", OWN, trusted(OWN, [lied], "gpu-b")) == "tcp"
    assert trusted(OWN, [lied], "gpu-c") == OWN


def test_of_two_paths_that_lied_neither_is_taken_and_of_one_the_other_is() -> None:
    own = {"staged_bytes_per_s": 50.0, **OWN}
    lied = [note(transport=name, why="byte 0 is another one") for name in ("peer", "staged")]
    assert available("peer", own, trusted(own, lied[:1], "gpu-b")) == "staged"
    assert available("peer", own, trusted(own, lied, "gpu-b")) == "tcp"


def test_a_worker_says_no_higher_rate_than_its_device_was_seen_to_have() -> None:
    slow = note(source="gpu-b", destination="gpu-b", rates={"4096": 5.0, "1048576": 60.0})
    assert trusted(OWN, [note(), slow], "gpu-b")["peer_bytes_per_s"] == 60.0
    assert trusted(OWN, [note(rates={})], "gpu-a") == OWN
