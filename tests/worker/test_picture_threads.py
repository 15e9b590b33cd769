"""A block's pictures, copied and hashed by several threads."""

import asyncio
import hashlib

import numpy as np
import pytest
from numpy.typing import NDArray

from worldmove.worker import picture_threads
from worldmove.worker.config import LARGE_FRAME_BYTES
from worldmove.worker.picture_threads import PictureThreads
from worldmove.worker.pictures import Digests, Pictures, taken

LARGE = (2, LARGE_FRAME_BYTES // 2, 1)


def frames_of(shape: tuple[int, ...], num_frames: int) -> NDArray[np.uint8]:
    return np.random.default_rng(num_frames).integers(0, 256, (num_frames, *shape), dtype=np.uint8)


def parts(pictures: Pictures) -> tuple[bytes, Digests]:
    async def hashed() -> Digests:
        return await pictures.hashed()

    return pictures.frames, asyncio.run(hashed())


@pytest.mark.parametrize("num_frames", [1, 2, 3, 12])
@pytest.mark.parametrize("num_threads", [-1, 1, 2, 5])
@pytest.mark.parametrize("shape", [(3, 4, 3), LARGE])
def test_they_are_what_one_thread_makes_of_them(shape: tuple[int, ...], num_threads: int, num_frames: int) -> None:
    taking, frames = PictureThreads(num_threads), frames_of(shape, num_frames)
    raw, digests = parts(taking(frames))
    taking.close()
    assert (raw, digests) == parts(taken(frames))
    assert [hashlib.sha256(frame.tobytes()).digest() for frame in frames] == list(digests)


def test_an_engine_that_writes_its_pictures_again_changes_none_that_were_taken() -> None:
    taking, frames = PictureThreads(3), frames_of(LARGE, 4)
    pictures = taking(frames)
    frames[:] = 0
    raw, digests = parts(pictures)
    taking.close()
    size = len(raw) // 4
    assert [hashlib.sha256(raw[at : at + size]).digest() for at in range(0, len(raw), size)] == list(digests)
    with pytest.raises(TypeError):
        raw[0] = 1  # type: ignore[index]


def test_what_fails_in_a_thread_fails_for_who_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def torn(data: object) -> object:
        raise MemoryError("no page for it")

    taking = PictureThreads(2)
    monkeypatch.setattr(picture_threads, "sha256", torn)
    with pytest.raises(MemoryError):
        parts(taking(frames_of(LARGE, 2)))
    taking.close()


def test_frames_of_any_size_are_hashed_beside_where_that_is_asked_for() -> None:
    taking, frames = PictureThreads(2, 0), frames_of((3, 4, 3), 1)
    pictures = taking(frames)
    assert (pictures.coming is not None, pictures.frame_sha256) == (True, ())
    assert parts(pictures) == parts(taken(frames))
    taking.close()
