"""A block's pictures hashed beside the next one, in virtual time: *hashed* is an event of its own."""

import asyncio
import random

import numpy as np
from numpy.typing import NDArray

from tests.simulation.net import Wire
from worldmove.worker.pictures import Digests, Pictures, Taking, taken

HASHING = "hashing"
"""What a mask calls it: a kept seed of before there was such a thing does what it did without it."""
HASH_S = (0.0005, 0.2)
"""From well within a block's step to longer than three of them."""


class SimHashing:
    """A ``Taking``: pictures are copied at once, and hashed some time later, by nobody who is waited for."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._dice = wire.weather.dice("hash")

    def __call__(self, frames: NDArray[np.uint8]) -> Pictures:
        loop, copy = self._wire.loop, frames.copy()
        ended: asyncio.Future[Digests] = loop.create_future()

        def end() -> None:
            if not ended.done():
                ended.set_result(taken(copy).frame_sha256)

        self._wire.trace.count("blocks hashed beside")
        loop.call_later(self._dice.between(*HASH_S), end)

        async def hashed() -> Digests:
            return await asyncio.shield(ended)

        return Pictures(frames=copy.tobytes(), coming=hashed)


def taking_of(wire: Wire) -> Taking:
    """Return how pictures are taken under a seed: in half of them beside the next block, unless that is masked."""
    is_beside = HASHING not in wire.weather.mask and random.Random(f"hashing:{wire.weather.seed}").random() < 0.5
    return SimHashing(wire) if is_beside else taken
