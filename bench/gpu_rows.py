"""Finding and bringing over what of a large model's attention caches a block has changed, in a device's memory.

Two kinds of boundaries, without a word of the engine's. *At rest*: everything was said and brought over while the
session stood still, so its rows are only compared with what they were then. *One block later*: the rows of the frozen
state are digested, found in what a second slot of the same device holds, moved and pulled there. Times in ms, medians;
after each block the slots are compared byte for byte.

    python -m bench.gpu_rows --out FILE [--preset matrix-game-2] [--repeats 20] [--device cuda]
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import torch

from bench.numbers import spread
from bench.record import Recorder, label
from bench.row_delta import first, following
from worldmove.engine.matrix import presets
from worldmove.engine.matrix.caches import Caches, empty_caches
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.move.reconcile import Difference, reconcile
from worldmove.state import adopt, capture, materialise
from worldmove.state.arena_rows import digests_in, held_in, look_at, move_in
from worldmove.state.device_arena import DeviceArena
from worldmove.state.kits import kit_of
from worldmove.state.memory import Piece
from worldmove.state.rows import MIN_ROW_BYTES, Rows, rows_of

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Bench:
    """A session's caches in one slot, and what is held of them in another."""

    config: MatrixConfig
    caches: Caches
    source: DeviceArena
    destination: DeviceArena
    rows: Rows

    def whole(self) -> None:
        """Copy everything that is used, flat."""
        begin, end = int(self.rows.offsets[0]), int(self.rows.ends[-1])
        piece = Piece(self.source.address + begin, self.destination.address + begin, end - begin)
        self.source.kit.start_copy([piece]).wait()

    def is_equal(self) -> bool:
        """Whether both slots hold the same, compared byte for byte."""
        begin, length = int(self.rows.offsets[0]), int(self.rows.ends[-1] - self.rows.offsets[0])
        views = []
        for arena in (self.source, self.destination):
            view = torch.empty(0, dtype=torch.uint8, device=self.config.device)
            views.append(view.set_(arena.kit.storage(arena.part(begin, length), arena.owner)))
        step = 1 << 26
        return all(torch.equal(views[0][at : at + step], views[1][at : at + step]) for at in range(0, length, step))

    def still(self) -> None:
        if self.config.device != "cpu":
            torch.cuda.synchronize()


class Times:
    """Wall-clock times of the parts."""

    def __init__(self) -> None:
        self.samples: dict[str, list[float]] = {}

    def of(self, name: str, work: Callable[[], T]) -> T:
        begun = perf_counter()
        found = work()
        self.samples.setdefault(name, []).append(1000 * (perf_counter() - begun))
        return found


def main() -> None:
    """Measure, and write one document."""
    options = options_of(None)
    torch.set_num_threads(1)
    recorder, times = Recorder("gpu_rows", options), Times()
    bench = made(options)
    found, are_equal = [], []
    for number in range(options.repeats + 2):
        noted = times if number >= 2 else Times()
        at_rest(bench, noted)
        difference = one_block(bench, noted)
        found.append(difference)
        are_equal.append(bench.is_equal())
    recorder.write(_summary(bench, times, found[-1], all(are_equal)), {"parts_ms": times.samples})


def made(options: argparse.Namespace) -> Bench:
    """Lay full caches into a slot, and make another one beside it."""
    preset = presets.matrix_game_2() if options.preset == "matrix-game-2" else presets.tiny()
    device = "cuda" if options.device.startswith("cuda") else "cpu"
    kit = kit_of(options.device)
    if kit is None:
        raise ValueError("a device is asked for")
    config = replace(preset.config, device=device)
    caches = empty_caches(config, torch.device(device))
    first(config, caches, _draw)
    state = capture(caches, kit=kit)
    source, destination = (DeviceArena(int(1.1 * state.num_bytes) + (1 << 20), name, kit) for name in ("from", "to"))
    placement = adopt(state, source)
    caches = materialise(state.manifest, placement, source)
    rows = rows_of(state.manifest, placement, options.min_row_bytes)
    return Bench(config=config, caches=caches, source=source, destination=destination, rows=rows)


def at_rest(bench: Bench, times: Times) -> None:
    """Hold all of a session that stands still, and find that nothing has changed since. Raises ValueError if not."""
    bench.still()
    bench.whole()
    look = times.of("rest: look", lambda: look_at(bench.source, bench.rows))
    said = times.of("rest: said", look.digests)
    held = held_in(bench.destination, bench.rows)
    lacking = times.of("rest: lacking", lambda: held.unlike(said))
    changed, _ = times.of("rest: rows", look.changes)
    which = np.union1d(changed, lacking)
    match = partial(reconcile, held, bench.rows, said, bench.destination.size, which=which)
    found = times.of("rest: matching", match)
    if len(which) or found.in_place_bytes != bench.rows.num_bytes:
        raise ValueError(f"{len(changed)} rows have changed at rest, and {len(lacking)} were not brought over")


def one_block(bench: Bench, times: Times) -> Difference:
    """Hold a boundary, compute the next, and bring over what differs."""
    bench.still()
    times.of("flat copy", bench.whole)
    held = times.of("held", lambda: held_in(bench.destination, bench.rows))
    following(bench.config, bench.caches, _draw)
    bench.still()
    digests = times.of("rows", lambda: digests_in(bench.source, bench.rows))
    said = times.of("said", lambda: digests.astype("<u8").tobytes())
    wanted = np.frombuffer(said, dtype="<u8")
    times.of("of matching: there, and compared", lambda: held.unlike(wanted))
    times.of("of matching: found", lambda: held.look_for(bench.rows, wanted))
    found = times.of("matching", lambda: reconcile(held, bench.rows, wanted, bench.destination.size))
    times.of("moves", lambda: move_in(bench.destination, found.moves))
    window = bench.destination.lend()
    times.of("pulls", lambda: window.start_copy(bench.source.address, found.pulls).wait())
    window.close()
    return found


def _summary(bench: Bench, times: Times, found: Difference, are_equal: bool) -> dict[str, Any]:
    parts = {name: spread(values) for name, values in times.samples.items()}
    finding, resting = (
        [sum(each) for each in zip(times.samples[f"{kind}rows"], times.samples[f"{kind}matching"], strict=True)]
        for kind in ("", "rest: ")
    )
    return {
        "state_bytes": bench.rows.num_bytes,
        "num_rows": len(bench.rows),
        "in_place_bytes": found.in_place_bytes,
        "moved_bytes": found.moved_bytes,
        "pulled_bytes": found.pulled_bytes,
        "num_moves": len(found.moves),
        "num_pulls": len(found.pulls),
        "finding_ms": spread(finding),
        "finding_at_rest_ms": spread(resting),
        "parts_ms": parts,
        "lands_byte_for_byte": are_equal,
    }


def _draw(tensor: torch.Tensor) -> None:
    tensor.view(torch.uint8).random_(0, 256)


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(prog="python -m bench.gpu_rows", description=__doc__)
    options.add_argument("--preset", default="matrix-game-2", choices=("matrix-game-2", "matrix-tiny"))
    options.add_argument("--device", default="cuda", help="or double, to try it without one")
    options.add_argument("--min-row-bytes", type=int, default=MIN_ROW_BYTES)
    options.add_argument("--repeats", type=int, default=20)
    options.add_argument("--out", default=f"bench/results/gpu_rows-{label()}.json", help="where the result goes")
    return options.parse_args(arguments)


if __name__ == "__main__":
    main()
