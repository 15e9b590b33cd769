"""What of a large world model's attention caches differs between two block boundaries, found by content alone.

The caches have the matrix engine's shapes and its way of rolling, in host memory; what a model would have written is
drawn, since only where it lies and whether it is new decides here. Checked at the end: what was held, with the moves
and pulls that were found, is what is wanted, byte for byte.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import torch

from bench.record import Recorder, parser
from worldmove.engine.matrix import presets
from worldmove.engine.matrix.caches import CROSS, ROLLING, Caches, empty_caches, num_working
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.transformer import places_of
from worldmove.move.reconcile import Difference, reconcile
from worldmove.state import Arena, adopt, capture, materialise
from worldmove.state.held import Held
from worldmove.state.row_digests import row_digests
from worldmove.state.row_moves import apply
from worldmove.state.rows import MIN_ROW_BYTES, rows_of

T = TypeVar("T")
Draw = Callable[[torch.Tensor], None]
"""Fills a tensor with what a model would have written."""


def main() -> None:
    """Measure and file."""
    options = _parser().parse_args()
    recorder = Recorder("row_delta", options)
    torch.set_num_threads(1)
    preset = presets.matrix_game_2() if options.preset == "matrix-game-2" else presets.tiny()
    config = replace(preset.config, device="cpu")
    draw = partial(_drawn, np.random.default_rng(options.seed))
    caches = empty_caches(config, torch.device("cpu"))
    first(config, caches, draw)
    state = capture(caches)
    arena = Arena(state.num_bytes + 512 * len(state.storages), "caches")
    placement = adopt(state, arena)
    manifest, num_bytes = state.manifest, state.num_bytes
    caches = materialise(manifest, placement, arena)
    del state

    times: dict[str, float] = {}
    rows = _timed(times, "rows_s", lambda: rows_of(manifest, placement, options.min_row_bytes))
    held_memory = arena.memory.copy()
    held_digests = _timed(times, "held_digests_s", lambda: row_digests(held_memory, rows))
    held = _timed(times, "index_s", lambda: Held(rows, held_digests))
    following(config, caches, draw)
    wanted = rows_of(manifest, placement, options.min_row_bytes)
    digests = _timed(times, "wanted_digests_s", lambda: row_digests(arena.memory, wanted))
    found = _timed(times, "reconcile_s", lambda: reconcile(held, wanted, digests, arena.size))
    spare = bytearray(found.moves.spare_bytes)
    _timed(times, "moves_s", lambda: apply(found.moves, held_memory.data, memoryview(spare)))
    for pull in found.pulls:
        held_memory[pull.offset : pull.end] = arena.memory[pull.offset : pull.end]
    used = slice(int(wanted.offsets[0]), int(wanted.ends[-1]))
    is_equal = np.array_equal(held_memory[used], arena.memory[used])
    recorder.write(_summary(found, num_bytes, len(rows), times, is_equal=is_equal), {"seconds": times})


def _summary(
    found: Difference, num_bytes: int, num_rows: int, times: dict[str, float], *, is_equal: bool
) -> dict[str, Any]:
    return {
        "state_bytes": num_bytes,
        "num_rows": num_rows,
        "digest_bytes": 8 * num_rows,
        "in_place_bytes": found.in_place_bytes,
        "moved_bytes": found.moved_bytes,
        "pulled_bytes": found.pulled_bytes,
        "pulled_share": round(found.pulled_bytes / num_bytes, 4),
        "num_moves": len(found.moves),
        "num_waves": int(found.moves.waves[-1]) + 1 if len(found.moves) else 0,
        "num_pulls": len(found.pulls),
        "digests_gb_per_s": round(num_bytes / times["wanted_digests_s"] / 1e9, 2),
        "reconcile_ms": round(1e3 * times["reconcile_s"], 1),
        "lands_byte_for_byte": is_equal,
    }


def first(config: MatrixConfig, caches: Caches, draw: Draw) -> None:
    """Fill every cache that is used: a window that is full."""
    for kind in (*ROLLING, CROSS):
        for cache in caches[kind][: num_working(config, kind)]:
            for name in ("k", "v"):
                draw(cache[name])


def following(config: MatrixConfig, caches: Caches, draw: Draw) -> None:
    """Roll every rolling cache by a block, and write the block's rows."""
    for kind, place in places_of(config, config.window).items():
        for cache in caches[kind][: num_working(config, kind)]:
            for name in ("k", "v"):
                cache[name][:, : place.start] = cache[name][:, place.shift : place.shift + place.start].clone()
                new = torch.empty_like(cache[name][:, place.start :], memory_format=torch.contiguous_format)
                draw(new)
                cache[name][:, place.start :] = new
            for index in ("global_end_index", "local_end_index"):
                cache[index].add_(1)


def _drawn(random: np.random.Generator, tensor: torch.Tensor) -> None:
    memory = tensor.view(torch.uint8)
    memory.copy_(torch.from_numpy(random.integers(0, 256, memory.numel(), dtype=np.uint8)).view(memory.shape))


def _timed(times: dict[str, float], name: str, work: Callable[[], T]) -> T:
    begun = perf_counter()
    found = work()
    times[name] = perf_counter() - begun
    return found


def _parser() -> Any:
    made = parser("row_delta", __doc__ or "")
    made.add_argument("--preset", default="matrix-game-2", choices=("matrix-game-2", "matrix-tiny"))
    made.add_argument("--min-row-bytes", type=int, default=MIN_ROW_BYTES)
    made.add_argument("--seed", type=int, default=5)
    return made


if __name__ == "__main__":
    main()
