"""What inspect says of each kind of file, and of what is none."""

import json
import os
import struct
from math import nan
from pathlib import Path

import msgspec
import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.cli.command import worldmove
from tests.serve.test_record_file import HEADER, encoded
from worldmove.cli.exits import ExitCode
from worldmove.engine.reference.weights import FOLDER
from worldmove.serve.record_entries import BlockEntry

ROOT = Path(__file__).parents[2]


def test_a_cut_record_is_explained_up_to_its_cut(tmp_path: Path) -> None:
    path = tmp_path / "cut.record"
    path.write_bytes(encoded([BlockEntry(3, 1, "w", (), (bytes(32),) * 2)] * 1) + b"\1\2\3")
    ran = worldmove("inspect", str(path))
    assert ran.status == ExitCode.DONE
    assert "1 blocks from block 3 on" in ran.out
    assert "The record was cut: its last 3 bytes are no whole entry, and were dropped." in ran.out
    assert worldmove("inspect", str(path), "--json").document["num_bytes_dropped"] == 3


def test_weights_are_listed_by_size_and_known_if_they_are_pinned(tmp_path: Path) -> None:
    ran = worldmove("inspect", str(FOLDER / "island.safetensors"))
    assert "the ones that reference:island pins" in ran.out
    path = tmp_path / "x.safetensors"
    save_file({"small": np.zeros(2, np.float32), "large": np.zeros((4, 4), np.float32)}, path)
    ran = worldmove("inspect", str(path))
    assert "2 tensors, 72 B, not pinned" in ran.out
    assert ran.out.index("large") < ran.out.index("small")


def test_a_benchs_result_is_shown_by_its_summary() -> None:
    result = next((ROOT / "bench" / "results").glob("soak-*.json"))
    ran = worldmove("inspect", str(result))
    assert ran.status == ExitCode.DONE
    assert "what the bench soak found" in ran.out


def _weights(header: str) -> bytes:
    return struct.pack("<Q", len(header)) + header.encode()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"PK\x03\x04zip", "This is no file of WorldMove: it begins with b'PK"),
        (b"", "This is no file of WorldMove"),
        (b"SQLite format 3\0" + bytes(200), "is an SQLite file, and no ledger"),
        (b"{}", "is JSON, and no bench's result"),
        (b"[1]", "This is no file of WorldMove"),
        (b'{"name": [' * 50, "is JSON, and no bench's result"),
        (struct.pack("<Q", 1 << 60) + b"{}", "These weights end inside their header"),
        (struct.pack("<Q", 2) + b"{}" + b"x", "These weights are damaged: 1 bytes follow"),
        (struct.pack("<Q", 8) + b'{"a": 1}', "These weights are damaged: their header cannot be read"),
        (_weights('{"a": {"dtype": "F", "shape": [1e999], "data_offsets": [0, 0]}}'), "their header cannot be read"),
        (b'{"name": "x", "summary": [1], "command": 1, "begun_at": 2}', "is JSON, and no bench's result"),
        (b'{"name": "x", "summary": {}, "command": 1, "begun_at": 2, "commit": "a"}', "is JSON, and no bench's result"),
        (b"WMRC\x01\x00", "This record ends inside its header"),
        (b"WMSS\x02\x00" + bytes(20), "This saved world is of format 2"),
    ],
)
def test_what_is_none_of_ours_is_said_in_one_sentence(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    ran = worldmove("inspect", str(path))
    assert ran.status == ExitCode.USAGE
    assert says in ran.err
    assert len(ran.err.splitlines()) == 1
    assert json.loads(worldmove("inspect", str(path), "--json").out)["error"]["code"] == "bad_file"


def test_what_no_terminal_can_write_is_spelled_out(tmp_path: Path) -> None:
    path = tmp_path / "odd.safetensors"
    path.write_bytes(_weights('{"\\ud800": {"dtype": "F", "shape": [1], "data_offsets": [0, 0]}}'))
    ran = worldmove("inspect", str(path))
    assert ran.status == ExitCode.DONE
    assert "\\xd800" in ran.out


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.pipe")
    for command in (("inspect",), ("verify",), ("open", "--from")):
        ran = worldmove(*command, str(tmp_path / "a.pipe"))
        assert ran.status == ExitCode.USAGE
        assert "is no regular file." in ran.err


def test_a_file_that_is_not_there_is_said_to_be_not_there(tmp_path: Path) -> None:
    for command in (("inspect",), ("verify",), ("open", "--from")):
        ran = worldmove(*command, str(tmp_path / "no.record"))
        assert ran.status == ExitCode.USAGE
        assert "no.record cannot be read (No such file or directory)." in ran.err


def test_a_record_of_another_machine_or_of_a_foreign_engine_is_refused_before_it_is_computed(tmp_path: Path) -> None:
    path = tmp_path / "other.record"
    path.write_bytes(encoded([]))
    ran = worldmove("verify", str(path))
    assert ran.status == ExitCode.REFUSED
    assert "Not verified: this machine would compute something else." in ran.err
    assert "and was 2" in ran.err  # the field torch
    path.write_bytes(encoded([], msgspec.structs.replace(HEADER, engine="python:os:abort")))
    ran = worldmove("verify", str(path))
    assert ran.status == ExitCode.USAGE
    assert "name it with --engine if you trust it" in ran.err


@pytest.mark.parametrize(
    "wrong",
    [
        {"frames_per_block": 9},
        {"frames_per_s": 7.0},
        {"frames_per_s": nan},
        {"num_threads": 0},
        {"num_threads": 1 << 40},
    ],
)
def test_a_record_whose_header_is_not_that_of_its_engine_is_refused_in_one_sentence(
    tmp_path: Path, wrong: dict[str, float]
) -> None:
    path = tmp_path / "wrong.record"
    path.write_bytes(encoded([], msgspec.structs.replace(HEADER, **wrong)))
    ran = worldmove("verify", str(path))
    assert ran.status == ExitCode.USAGE
    assert "This record is damaged" in ran.err


@pytest.mark.parametrize("command", ["verify", "inspect"])
def test_nothing_in_a_file_is_obeyed_by_a_terminal(tmp_path: Path, command: str) -> None:
    path = tmp_path / "evil.record"
    evil = "\x1b[2J\r\x9b1m\u202e"
    header = msgspec.structs.replace(HEADER, engine=evil, session=evil, environment={evil: evil + "\n"})
    path.write_bytes(encoded([], header))
    ran = worldmove(command, str(path))
    said = ran.out + ran.err
    assert "\\x1b[2J" in said
    assert all(character == "\n" or character.isprintable() for character in said)
