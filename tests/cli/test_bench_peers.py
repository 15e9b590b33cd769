"""The ways that a move is measured against."""

from pathlib import Path
from typing import Any

import pytest
import torch

from worldmove.cli import bench_peers
from worldmove.cli.bench_peers import measure_peers, medians


def nothing(_: str) -> None:
    pass


def test_every_way_brings_the_bytes_and_is_timed_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Any] = []
    load = torch.load
    monkeypatch.setattr(torch, "load", lambda *args, **options: loaded.append(load(*args, **options)))
    times = measure_peers([4096, 0, 17], "cpu", nothing)
    assert {name: len(found) for name, found in times.items()} == {
        "one flat copy": bench_peers.REPEATS,
        "one copy for each tensor": bench_peers.REPEATS,
        "torch.save and torch.load through memory": bench_peers.FILE_REPEATS,
        "safetensors through memory": bench_peers.FILE_REPEATS,
    }
    assert [len(tensor) for tensor in loaded[0]] == [4096, 17]
    assert all(isinstance(found, float) and found > 0 for found in medians(times).values())


def test_a_way_that_cannot_be_taken_says_why_and_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(bench_peers, "MEMORY_FOLDER", tmp_path / "is not there")
    found = medians(measure_peers([64], "cpu", nothing))
    assert "is not there" in str(found["safetensors through memory"])
    assert isinstance(found["one flat copy"], float)
