"""The cost of being movable, and what a part of the work on pictures takes of it."""

import argparse
import asyncio
from collections.abc import Iterator

import numpy as np
import pytest

from bench.movable import loop_of, measure, options_of, samples_of, summary_of
from bench.movable_less import ALL, WAYS, Less, Lessened, less_of
from worldmove.worker.picture_threads import PictureThreads
from worldmove.worker.pictures import taken

FRAMES = np.arange(3 * 4 * 5 * 3, dtype=np.uint8).reshape(3, 4, 5, 3)


@pytest.fixture
def threads() -> Iterator[PictureThreads]:
    made = PictureThreads(2, large_frame_bytes=1)
    yield made
    made.close()


def test_all_of_it_is_what_a_worker_does(threads: PictureThreads) -> None:
    pictures = Lessened(threads, ALL)(FRAMES)
    assert bytes(pictures.frames) == FRAMES.tobytes()
    assert asyncio.run(pictures.hashed()) == taken(FRAMES).frame_sha256


@pytest.mark.parametrize("way", [way for way in WAYS if not way.is_hashed], ids=lambda way: way.name)
def test_what_is_not_hashed_has_zeros_which_come_as_digests_do(threads: PictureThreads, way: Less) -> None:
    pictures = Lessened(threads, way)(FRAMES)
    assert bytes(pictures.frames) == FRAMES.tobytes()
    assert np.shares_memory(np.frombuffer(pictures.frames, np.uint8), FRAMES) is not way.is_copied
    assert pictures.coming is not None
    assert asyncio.run(pictures.hashed()) == (bytes(32),) * 3


def test_a_way_is_compared_with_the_bare_loop_beside_it() -> None:
    found = less_of({"not sent": [[100.0, 102.0], [200.0, 208.0], [100.0, 103.0]]}, 4)
    assert found == {"not sent": {"runs": 3, "ratio": 1.03, "more_ms_a_block": 0.75}}


def options(*words: str) -> argparse.Namespace:
    small = ("--pairs", "2", "--runs", "1", "--run-blocks", "2", "--warm", "1", "--less", "1")
    return options_of([*small, "--engine", "python:bench.picture_double:engine", *words])


def test_every_way_is_played_and_the_frames_are_the_bare_loops() -> None:
    given = options("--pictures", "2")
    pairs, parts, runs, less = asyncio.run(measure(given))
    assert len(pairs) == 2
    assert len(runs) == 1
    assert [(name, len(found)) for name, found in less.items()] == [(way.name, 1) for way in WAYS]
    assert summary_of(pairs, parts, 1.01)["pairs"] == 2
    assert loop_of(runs, given)["blocks"] == 2
    assert len(samples_of(pairs, parts)["pairs"]) == 2
