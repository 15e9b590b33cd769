"""A small procedural tile world: what the page is shown where no model is wanted.

64x64 RGB, 8x8 tiles of 8x8 px, a white crosshair on tile (4, 4); arrow keys walk, ``flag`` plants or lifts.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Pixels: TypeAlias = NDArray[np.uint8]
Place: TypeAlias = tuple[int, int]

KEYS = ("up", "down", "left", "right", "flag")
STEPS: dict[str, Place] = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}
OPPOSITE = {"up": "down", "down": "up", "left": "right", "right": "left"}
TILE_PX = 8
VIEW_TILES = 8
CENTRE = 4

# Ground from low to high: colour, colour of its speckles.
GROUNDS = (
    ((36, 84, 152), (48, 100, 168)),
    ((80, 156, 204), (112, 180, 220)),
    ((232, 212, 148), (212, 188, 120)),
    ((116, 176, 80), (96, 156, 64)),
    ((140, 192, 88), (252, 216, 72)),
    ((52, 120, 60), (28, 84, 44)),
    ((136, 132, 128), (96, 92, 90)),
    ((236, 240, 244), (208, 216, 224)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What one frame came from: see the play wire."""

    pose: Place
    action: str
    number: int


@dataclass(slots=True, kw_only=True)
class FakeWorld:
    """One world. A tap is one step; a held key repeats each frame, from the block after its press on."""

    seed: int
    pose: Place = (0, 0)
    flags: set[Place] = field(default_factory=set)
    held: list[str] = field(default_factory=list)
    waiting: list[tuple[int, str, bool]] = field(default_factory=list)
    number: int = 0
    remembered: dict[Place, Pixels] = field(default_factory=dict)
    """Tiles that are given instead of made: all that a copy begun from a picture knows."""

    def step(self, changes: Sequence[tuple[int, str, bool]]) -> list[tuple[Pixels, Note]]:
        """Advance by one block of two frames."""
        self.waiting.extend(changes)
        repeats = tuple(self.held)
        return [self._frame(repeats) for _ in range(2)]

    def digest(self) -> str:
        """Stands for a state digest."""
        return f"xxh3-128:{zlib.crc32(repr((self.seed, self.pose, sorted(self.flags), self.number)).encode()):08x}" * 4

    def remember(self, view: Pixels) -> None:
        """Begin from a picture alone, seen from here."""
        for i in range(VIEW_TILES):
            for j in range(VIEW_TILES):
                tile = view[i * TILE_PX : (i + 1) * TILE_PX, j * TILE_PX : (j + 1) * TILE_PX]
                self.remembered[self.pose[0] + i - CENTRE, self.pose[1] + j - CENTRE] = tile

    def view(self) -> Pixels:
        """The picture from where the world stands, crosshair included."""
        places = [
            [(self.pose[0] + i - CENTRE, self.pose[1] + j - CENTRE) for j in range(VIEW_TILES)]
            for i in range(VIEW_TILES)
        ]
        picture = np.concatenate([np.concatenate([self._tile(p) for p in row], axis=1) for row in places])
        return with_crosshair(picture)

    def _frame(self, repeats: Sequence[str]) -> tuple[Pixels, Note]:
        action = self._next_action(repeats)
        if action == "flag":
            self.flags ^= {self.pose}
        dy, dx = STEPS.get(action, (0, 0))
        self.pose = (self.pose[0] + dy, self.pose[1] + dx)
        return self.view(), Note(pose=self.pose, action=action, number=self.number)

    def _next_action(self, repeats: Sequence[str]) -> str:
        action = None
        while self.waiting and (action is None or not self.waiting[0][2]):
            self.number, key, down = self.waiting.pop(0)
            if not down:
                self.held = [held for held in self.held if held != key]
            elif key not in self.held:
                self.held.append(key)
                action = key
        return action or next((key for key in reversed(self.held) if key in STEPS and key in repeats), "stay")

    def _tile(self, place: Place) -> Pixels:
        if place in self.remembered:
            return self.remembered[place]
        tile = ground(self.seed, place)
        return with_flag(tile) if place in self.flags else tile


def ground(seed: int, place: Place) -> Pixels:
    """One tile without flag or crosshair."""
    y, x = place
    phase = seed % 97
    height = np.sin(0.31 * x + phase) + np.cos(0.27 * y - 0.6 * phase) + 0.7 * np.sin(0.53 * (x + y) + 1.7 * phase)
    colour, speckle = GROUNDS[int(np.clip((height + 2.4) / 4.8 * len(GROUNDS), 0, len(GROUNDS) - 1))]
    tile = np.empty((TILE_PX, TILE_PX, 3), np.uint8)
    tile[:] = colour
    spots = np.random.default_rng([seed, y & 0xFFFF, x & 0xFFFF]).random((TILE_PX, TILE_PX)) < 0.14
    tile[spots] = speckle
    return tile


def with_flag(tile: Pixels) -> Pixels:
    """A pink flag on a white pole."""
    tile = tile.copy()
    tile[1:7, 3] = 255
    tile[1:4, 4:7] = (232, 40, 120)
    tile[6, 2:5] = (56, 44, 56)
    return tile


def with_crosshair(view: Pixels) -> Pixels:
    """White corners on the tile in the middle."""
    start, end = CENTRE * TILE_PX, (CENTRE + 1) * TILE_PX - 1
    for y in (start, end):
        for x in (start, end):
            inward_y, inward_x = (1 if y == start else -1), (1 if x == start else -1)
            view[y, x] = view[y + inward_y, x] = view[y, x + inward_x] = 255
    return view
