"""The pictures of the island world: 11 kinds of country in 4 textures, with or without a flag.

Drawn by rule from a fixed seed, so that training, evaluation and readers see the same 88 pictures.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

TILE = 8
VIEW = 8
CLASSES = ("deep", "shallow", "sand", "grass", "meadow", "forest", "rock", "snow", "path", "house", "barn")
NUM_TEXTURES = 4
NUM_PLAIN = len(CLASSES) * NUM_TEXTURES
CROSSHAIR = (4, 4)
"""Row and column of the view's tile that carries the crosshair: flags are planted there."""

Picture = NDArray[np.uint8]
Colour = tuple[int, int, int]
GRASS: Colour = (104, 164, 76)


def pictures() -> Picture:
    """All tiles: uint8 [2 * NUM_PLAIN, 8, 8, 3]. Tile ``class * 4 + texture``; with a flag, plus NUM_PLAIN."""
    plain = [
        DRAW[name](texture, np.random.default_rng([7, kind, texture]))
        for kind, name in enumerate(CLASSES)
        for texture in range(NUM_TEXTURES)
    ]
    return np.stack([*plain, *(with_flag(tile) for tile in plain)])


def with_flag(tile: Picture) -> Picture:
    """A red flag on a dark pole with a white edge."""
    flagged = tile.copy()
    flagged[1:8, 2] = (36, 32, 36)
    flagged[0:5, 3:7] = (250, 250, 250)
    flagged[1:4, 3:6] = (226, 30, 44)
    return flagged


def with_crosshair(tiles: Picture) -> Picture:
    """White corners over a tile, or over each of many: [..., 8, 8, 3]."""
    marked = tiles.copy()
    for row in (0, -1):
        marked[..., row, [0, 1, -2, -1], :] = 255
        marked[..., [0, 1, -2, -1], row, :] = 255
    return marked


def ground(colour: Colour) -> Picture:
    return np.full((TILE, TILE, 3), colour, dtype=np.uint8)


def dashes(base: Colour, mark: Colour) -> Callable[[int, np.random.Generator], Picture]:
    """Water: short level strokes."""

    def draw(texture: int, rng: np.random.Generator) -> Picture:
        tile = ground(base)
        for row in range(texture % 2, TILE, 2):
            start = int(rng.integers(0, TILE))
            tile[row, (start + np.arange(4)) % TILE] = mark
        return tile

    return draw


def speckles(base: Colour, marks: tuple[Colour, ...], count: int) -> Callable[[int, np.random.Generator], Picture]:
    """Sand, grass and meadows: scattered points. A texture has its own places, and its own colour if there are more."""

    def draw(texture: int, rng: np.random.Generator) -> Picture:
        tile = ground(base)
        places = rng.choice(TILE * TILE, size=count, replace=False)
        tile.reshape(-1, 3)[places] = marks[texture % len(marks)]
        return tile

    return draw


def facets(base: Colour, light: Colour, dark: Colour) -> Callable[[int, np.random.Generator], Picture]:
    """Rock and snow: a ridge that runs another way in every texture."""
    y, x = np.mgrid[0:TILE, 0:TILE] - 3.5
    ridges = (x + y, x - y, x + 0.4 * y + 1, y - 0.4 * x + 1)

    def draw(texture: int, rng: np.random.Generator) -> Picture:
        tile = ground(base)
        height = ridges[texture]
        tile[(height > 0) & (height < 3)] = dark
        tile[(height <= 0) & (height > -2.5)] = light
        tile.reshape(-1, 3)[rng.choice(TILE * TILE, size=4, replace=False)] = dark
        return tile

    return draw


def tree(texture: int, rng: np.random.Generator) -> Picture:
    """Forest: round crowns, placed differently in each texture."""
    tile = speckles((40, 92, 50), ((30, 74, 42),), 12)(texture, rng)
    y, x = np.mgrid[0:TILE, 0:TILE]
    centres = (((2, 2, 2.3), (5, 6, 2.0)), ((2, 5, 2.3), (6, 1, 1.8)), ((4, 3, 3.0),), ((5, 5, 2.6), (1, 1, 1.5)))
    for cy, cx, radius in centres[texture]:
        away = np.hypot(y - cy, x - cx)
        tile[away <= radius] = (70, 138, 66)
        tile[np.hypot(y - cy + 0.8, x - cx + 0.8) <= radius * 0.45] = (122, 180, 96)
    return tile


def building(roofs: tuple[Colour, ...]) -> Callable[[int, np.random.Generator], Picture]:
    """Houses and barns: a roof with a bright and a dark side, on grass."""

    def draw(texture: int, rng: np.random.Generator) -> Picture:
        tile = speckles(GRASS, ((76, 136, 58),), 10)(texture, rng)
        roof = np.array(roofs[texture])
        body = np.zeros((TILE, TILE, 3), dtype=np.uint8)
        body[1:4, 1:7] = np.minimum(roof + 36, 255)
        body[4:7, 1:7] = roof * 3 // 4
        body[4, 1:7] = roof // 3
        body[5:7, 3 + texture % 2] = (48, 34, 30)
        body = body.transpose(1, 0, 2) if texture % 2 else body
        inside = body.any(axis=-1)
        tile[inside] = body[inside]
        return tile

    return draw


DRAW: dict[str, Callable[[int, np.random.Generator], Picture]] = {
    "deep": dashes((22, 58, 116), (62, 110, 178)),
    "shallow": dashes((56, 142, 190), (122, 194, 222)),
    "sand": speckles((228, 208, 150), ((186, 158, 102),), 20),
    "grass": speckles(GRASS, ((64, 122, 52),), 22),
    "meadow": speckles((142, 192, 92), ((250, 246, 236), (246, 214, 70), (236, 140, 172), (168, 130, 214)), 13),
    "forest": tree,
    "rock": facets((130, 124, 118), (170, 164, 158), (88, 82, 80)),
    "snow": facets((234, 240, 246), (255, 255, 255), (182, 202, 226)),
    "path": speckles((190, 152, 106), ((142, 106, 72),), 18),
    "house": building(((186, 62, 48), (206, 104, 44), (196, 170, 110), (92, 92, 140))),
    "barn": building(((112, 78, 54), (148, 124, 110), (84, 40, 44), (126, 108, 30))),
}
