"""The ways that a move is measured against."""

from pathlib import Path
from typing import Any

import pytest
import torch

from worldmove.cli.benches import peers
from worldmove.cli.benches.nccl import between_two
from worldmove.cli.benches.peers import measure_peers, medians


def nothing(_: str) -> None:
    pass


def test_every_way_brings_the_bytes_and_is_timed_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Any] = []
    load = torch.load
    monkeypatch.setattr(torch, "load", lambda *args, **options: loaded.append(load(*args, **options)))
    times = dict(measure_peers([4096, 0, 17], "cpu", nothing, file_repeats=3))
    for name in ("one flat copy to another GPU", "one copy for each tensor, to another GPU"):
        assert times.pop(name) == "fewer than two GPUs are here"
    assert {name: len(found) for name, found in times.items()} == {
        "one flat copy": peers.REPEATS,
        "one copy for each tensor": peers.REPEATS,
        "torch.save and torch.load through memory": 3,
        "safetensors through memory": 3,
    }
    assert [len(tensor) for tensor in loaded[0]] == [4096, 17]
    assert all(isinstance(found, float) and found > 0 for found in medians(times).values())


def test_a_way_that_cannot_be_taken_says_why_and_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(peers, "MEMORY_FOLDER", tmp_path / "is not there")
    found = medians(measure_peers([64], "cpu", nothing, file_repeats=1))
    assert "is not there" in str(found["safetensors through memory"])
    assert isinstance(found["one flat copy"], float)


@pytest.mark.slow
def test_send_and_receive_is_timed_between_two_processes() -> None:
    """With a backend for CPUs: the same calls as between two GPUs."""
    found = between_two([4096, 0, 17], "gloo", ("cpu", "cpu"), repeats=3)
    assert {name: len(times) for name, times in found.items()} == {"GLOO, one flat tensor": 3, "GLOO, each tensor": 3}
    assert all(took > 0 for times in found.values() for took in times)
