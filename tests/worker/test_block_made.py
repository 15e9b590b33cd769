"""A block is looked at before anybody is sent it: what the engine has not said that it makes ends its session."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.move.virtual import run as run_virtually
from tests.worker.bench_worker import bench
from tests.worker.counting import CountingEngine
from worldmove.engine.base import Block
from worldmove.errors import EngineFailed
from worldmove.worker.messages import BlockDone, Failed, Open
from worldmove.worker.picture_threads import PictureThreads
from worldmove.worker.pictures import Taking, taken
from worldmove.worker.stepping import Stepped, step

Change = Callable[[Block], Any]


def framed(change: Callable[[Any], Any]) -> Change:
    return lambda block: replace(block, frames=change(block.frames))


def noted(change: Callable[[Any], Any]) -> Change:
    return lambda block: replace(block, notes=change(block.notes))


class OwnArray(np.ndarray[Any, Any]):
    """An array that is never to be asked for anything."""

    def __getitem__(self, key: Any) -> Any:
        raise KeyboardInterrupt

    def tobytes(self, order: Any = "C") -> bytes:
        raise KeyboardInterrupt


OTHER: dict[str, Change] = {
    "no block": lambda block: None,
    "no frames": framed(lambda frames: None),
    "a tensor": framed(torch.from_numpy),
    "a list": framed(lambda frames: frames.tolist()),
    "bytes": framed(lambda frames: frames.tobytes()),
    "floats": framed(lambda frames: frames.astype(np.float64)),
    "signed": framed(lambda frames: frames.astype(np.int8)),
    "objects": framed(lambda frames: frames.astype(object)),
    "none of them": framed(lambda frames: frames[:0]),
    "one too few": framed(lambda frames: frames[:1]),
    "one too many": framed(lambda frames: np.concatenate([frames, frames[:1]])),
    "wider": framed(lambda frames: np.zeros((2, 2, 3, 3), np.uint8)),
    "another shape of as many bytes": framed(lambda frames: frames.reshape(2, 4, 1, 3)),
    "flat": framed(lambda frames: frames.reshape(-1)),
    "one number": framed(lambda frames: np.uint8(3)),
    "with alpha": framed(lambda frames: np.zeros((2, 2, 2, 4), np.uint8)),
    "grey": framed(lambda frames: frames[..., 0]),
    "no notes": noted(lambda notes: None),
    "empty notes": noted(lambda notes: ()),
    "a note too few": noted(lambda notes: notes[:1]),
    "a note too many": noted(lambda notes: notes * 2),
    "notes without end": noted(lambda notes: iter(lambda: notes[0], None)),
}
SAME: dict[str, Change] = {
    "as it is": framed(lambda frames: frames),
    "in another order": framed(np.asfortranarray),
    "read-only": framed(lambda frames: np.frombuffer(frames.tobytes(), np.uint8).reshape(frames.shape)),
    "every other one": framed(lambda frames: np.repeat(frames, 2, axis=0)[::2]),
    "an array of its own kind": framed(lambda frames: frames.view(OwnArray)),
}


class Changing(CountingEngine):
    """Makes something else of each block while ``change`` is set."""

    change: Change | None = None

    def step(self, session: Any, changes: Any) -> Block:
        block = super().step(session, changes)
        return block if self.change is None else self.change(block)


def stepped(change: Change, taking: Taking = taken) -> Stepped:
    engine = Changing()
    engine.change = change
    return step(engine, engine.open(1), (), lambda: 0.0, wants_digest=False, taking=taking)


@pytest.mark.parametrize("found", OTHER)
def test_a_block_that_is_not_the_engines_is_refused(found: str) -> None:
    with pytest.raises(EngineFailed):
        stepped(OTHER[found])


def test_what_is_wrong_with_it_is_said_in_numbers() -> None:
    with pytest.raises(EngineFailed, match="frames are float64 of 2x2x2x3, and the engine's are uint8 of 2x2x2x3"):
        stepped(OTHER["floats"])
    with pytest.raises(EngineFailed, match="a block has 2 frames, and 1 notes"):
        stepped(OTHER["a note too few"])
    with pytest.raises(EngineFailed, match="are of type Tensor, and no array of numpy"):
        stepped(OTHER["a tensor"])


@pytest.mark.parametrize("found", SAME)
@pytest.mark.parametrize("num_threads", [1, 3])
def test_how_a_block_lies_in_memory_makes_no_difference(found: str, num_threads: int) -> None:
    threads = PictureThreads(num_threads, large_frame_bytes=1)
    try:
        pictures = stepped(SAME[found], threads).pictures
    finally:
        threads.close()
    assert bytes(pictures.frames) == bytes(stepped(SAME["as it is"]).pictures.frames)


@pytest.mark.parametrize("found", OTHER)
def test_its_session_ends_with_a_reason_and_its_neighbour_plays_on(found: str) -> None:
    async def trial() -> None:
        engine = Changing()
        worker = bench(engine)
        for session in ("s-1", "s-2"):
            worker.worker.take(Open(session=session, epoch=1, seed=5))
        await worker.settle()
        worker.inputs(0)
        await worker.settle()
        engine.change = OTHER[found]
        worker.inputs(1)
        await worker.settle()
        engine.change = None
        worker.inputs(0, session="s-2")
        await worker.settle()
        assert [(done.session, done.block) for done in worker.of(BlockDone)] == [("s-1", 0), ("s-2", 0)]
        assert [(failed.session, failed.code) for failed in worker.of(Failed)] == [("s-1", "engine_failed")]
        await worker.background.stop()

    run_virtually(trial())
