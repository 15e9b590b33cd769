"""A contact sheet of the island world, drawn by the shipped engine: what to look at before believing figures.

Four places: invented, a flag planted, left for 12 tiles and visited again; one of them again with its memory wiped at
the turning point; and one world at every 50th of 300 frames.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from bench.island_player import BACK, Frames, Player
from worldmove.engine.reference.engine import ReferenceEngine
from worldmove.engine.reference.presets import island

DISTANCE = 12
SCALE = 2
MARGIN = 4
LABEL = 14
INK = (40, 40, 40)


def main() -> None:
    """Draw and write."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=Path("docs/images/island-contact-sheet.png"))
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args()
    engine = ReferenceEngine(island())
    rows = [errand(engine, chosen.seed + index, list(BACK)[index], wiped=False) for index in range(4)]
    rows.append(errand(engine, chosen.seed + 3, list(BACK)[3], wiped=True))
    rows.append(long_walk(engine, chosen.seed + 9))
    labels = [f"flag planted, {DISTANCE} tiles {key}, and back" for key in BACK]
    labels += [
        f"the same as above, memory wiped {DISTANCE} tiles out",
        "one walk: frames 1, 51, 101, 151, 201, 251, 301",
    ]
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    sheet(rows, labels).save(chosen.out, optimize=True)


def errand(engine: ReferenceEngine, seed: int, key: str, *, wiped: bool) -> list[Frames]:
    """Seven pictures of a way out and back: the first and the last show one place."""
    player = Player(engine, seed)
    player.block()
    player.block("flag")
    player.fly(key, DISTANCE)
    if wiped:
        player.forget()
    player.fly(BACK[key], DISTANCE)
    return [player.shown[index] for index in range(3, 4 + 2 * DISTANCE, DISTANCE // 3)]


def long_walk(engine: ReferenceEngine, seed: int) -> list[Frames]:
    """A spiral outwards, so that new country keeps coming."""
    player = Player(engine, seed)
    ways = ("right", "down", "left", "up")
    turn = 0
    while len(player.shown) < 301:
        player.fly(ways[turn % 4], 2 * (turn // 2 + 2))
        turn += 1
    return player.shown[:301:50]


def sheet(rows: Sequence[Sequence[Frames]], labels: Sequence[str]) -> Image.Image:
    """Rows of pictures, each under its label."""
    height, width = (SCALE * side for side in rows[0][0].shape[:2])
    size = (MARGIN + max(map(len, rows)) * (width + MARGIN), MARGIN + len(rows) * (LABEL + height + MARGIN))
    paper = Image.new("RGB", size, "white")
    pen = ImageDraw.Draw(paper)
    for line, (row, label) in enumerate(zip(rows, labels, strict=True)):
        top = MARGIN + line * (LABEL + height + MARGIN)
        pen.text((MARGIN, top), label, fill=INK)
        for column, frame in enumerate(row):
            picture = Image.fromarray(np.repeat(np.repeat(frame, SCALE, axis=0), SCALE, axis=1))
            paper.paste(picture, (MARGIN + column * (width + MARGIN), top + LABEL))
    return paper


if __name__ == "__main__":
    main()
