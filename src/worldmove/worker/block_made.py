"""Whether a block is what its engine says that it makes: any other can be shown to nobody, and its world stands."""

from collections.abc import Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from worldmove.engine.base import Block, EngineSpec, FrameNote
from worldmove.errors import EngineFailed
from worldmove.limits import MAX_BLOB_BYTES


def frames_of(block: Block, spec: EngineSpec) -> NDArray[np.uint8]:
    """Return a block's frames as a plain array, C-contiguous. Raises EngineFailed where they are not the engine's."""
    if not isinstance(block.frames, np.ndarray):
        raise EngineFailed(f"a block's frames are of type {type(block.frames).__name__}, and no array of numpy")
    frames = np.asarray(block.frames)  # whatever an array of another kind does in its own way, this one does not
    shape = (spec.frames_per_block, spec.height, spec.width, 3)
    if frames.dtype != np.uint8 or frames.shape != shape:
        found = f"{frames.dtype} of {_said(frames.shape)}"
        raise EngineFailed(f"a block's frames are {found}, and the engine's are uint8 of {_said(shape)}")
    if frames.nbytes > MAX_BLOB_BYTES:
        raise EngineFailed(f"a block has {frames.nbytes:,} bytes of pictures, more than {MAX_BLOB_BYTES:,}")
    return np.ascontiguousarray(frames)


def notes_of(block: Block, spec: EngineSpec) -> tuple[FrameNote, ...]:
    """Return what is said of its frames, one by one. Raises EngineFailed where there are more, or fewer."""
    notes = tuple(islice(block.notes, spec.frames_per_block + 1))
    if len(notes) != spec.frames_per_block:
        said = "more" if len(notes) > spec.frames_per_block else str(len(notes))
        raise EngineFailed(f"a block has {spec.frames_per_block} frames, and {said} notes")
    return notes


def _said(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "one number"
