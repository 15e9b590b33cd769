"""A player of the island world who knows what he wants: keys in, tiles out, all through the engine's contract."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from training.scenes import nearest, tiles_of_frames
from training.tiles import NUM_PLAIN, NUM_TEXTURES
from worldmove.engine.base import KeyChange
from worldmove.engine.reference.config import ReferenceConfig
from worldmove.engine.reference.engine import ReferenceEngine
from worldmove.engine.reference.pictures import to_patches
from worldmove.engine.reference.presets import island

Frames = NDArray[np.uint8]
Tiles = NDArray[np.int64]
BACK = {"up": "down", "down": "up", "left": "right", "right": "left"}
CONFIG: ReferenceConfig = island().config


@dataclass(slots=True)
class Player:
    """One session, and every frame it has shown."""

    engine: ReferenceEngine
    seed: int
    number: int = 0
    shown: list[Frames] = field(default_factory=list)
    session: Any = None

    def __post_init__(self) -> None:
        self.session = self.engine.open(self.seed)

    def block(self, *taps: str) -> None:
        """One block in which keys are tapped: each acts for one frame, in order."""
        changes = []
        for key in taps:
            for down in (True, False):
                self.number += 1
                changes.append(KeyChange(number=self.number, key=key, down=down))
        self.shown.extend(self.engine.step(self.session, changes).frames)

    def fly(self, key: str, distance: int) -> None:
        """So many steps, two a block. ``distance`` is even."""
        for _ in range(distance // 2):
            self.block(key, key)

    def forget(self) -> None:
        """Lose all memory and nothing else: place, generator and frame stay."""
        state = self.engine.state(self.session)
        for cache in state["caches"]:
            for rows in cache.values():
                rows.zero_()
        self.session = self.engine.install(state | {"filled": [0] * len(state["filled"])})


def tiles_of(frames: Sequence[Frames]) -> Tiles:
    """The tile nearest to each place: [frames, tiles]."""
    found: Tiles = tiles_of_frames(CONFIG, torch.from_numpy(np.stack(frames))).numpy()
    return found


def distances_of(frames: Sequence[Frames]) -> NDArray[np.float32]:
    """RMS distance of each place to its nearest tile, range -1..1: [frames, tiles]."""
    _, distance = nearest(CONFIG, to_patches(CONFIG, torch.from_numpy(np.stack(frames))))
    found: NDArray[np.float32] = distance.numpy()
    return found


def kinds_of(tiles: Tiles) -> Tiles:
    """The kind of country, whatever its texture and flag."""
    return tiles % NUM_PLAIN // NUM_TEXTURES


def flagged(tiles: Tiles) -> NDArray[np.bool_]:
    return tiles >= NUM_PLAIN
