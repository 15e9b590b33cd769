"""What both ends of a move compute in Python between the freeze and the comparison, for a state of full size, on a CPU.

The state has the true geometry of matrix-game-2 (496 leaves, 2.7 GB of memory that nobody touches) and stands for one
on a device: copies and kernels are ordered and do nothing, so what is left is the host's own work. CPU time of one
thread, in ms, medians; nothing else waits for Python's lock.

    python -m bench.hot_path [--repeats 30] [--scope latents] [--case scattered] [--profile freeze]
"""

import argparse
import cProfile
import gc
import pstats
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from bench.numbers import spread
from bench.record import Recorder, label
from worldmove.engine.base import Tree
from worldmove.engine.matrix import presets
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.likeness import Likeness
from worldmove.engine.matrix.session import Session, adopt, export, new_session, take_values
from worldmove.state import wmf1
from worldmove.state.capture import Capture
from worldmove.state.cuda_pending import CudaDigests
from worldmove.state.cuda_plan import PartedPlan
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_digests import prepare, prepare_key
from worldmove.state.digest import Pass, Xxh3Digester
from worldmove.state.double_copying import Done
from worldmove.state.extent import Extent
from worldmove.state.gathering import begin_gather, gather
from worldmove.state.kernels import Copies, CopyPlan, Fingerprints, Tuning
from worldmove.state.kit_double import DoubleKit
from worldmove.state.layout import Layout
from worldmove.state.manifest import Manifest
from worldmove.state.memory import Behind, Numbers, Part, Pieces, Shifts
from worldmove.state.placement import Placement, extents, foreseen
from worldmove.state.preview import Preview, hear, tell
from worldmove.state.proof import MoveProof, prove
from worldmove.state.recapture import Known, recapture, recapture_begun, remember
from worldmove.state.rehearsal import Rehearsal, rehearse
from worldmove.state.ways_to_copy import ways_to_copy
from worldmove.units import round_up

DIGESTER = Xxh3Digester()
NONCE = b"n" * 32
CASES = ("resident", "scattered")
BESIDE = ("resolve", "second pass")
"""What lies beside the copies and passes of the devices; the rest is one chain."""


class NoCall:
    """A program that is started, and does nothing."""

    def start(self, stream: int) -> None:
        """Do nothing."""


class NoLauncher:
    """An H200's shape, and no device."""

    num_processors = 132

    def call(self, program: str, *, blocks: int, threads: int, shared_bytes: int, arguments: Sequence[int]) -> NoCall:
        """Prepare nothing."""
        return NoCall()


class OrdersOnly(DoubleKit):
    """A kit whose plans are a GPU's, and whose copies and kernels do nothing."""

    def __init__(self) -> None:
        super().__init__(least_bytes=1, generators=True)
        device = torch.device("cpu")
        self._prints = Fingerprints(device, copies=Copies(device, tuning=Tuning(), launcher_=NoLauncher()))
        self._copying: CopyPlan | None = None

    def start_copy(self, pieces: Pieces) -> Done:
        """Plan a launch, as for scattered pieces, and copy nothing."""
        scattered = ways_to_copy(pieces).by_launch
        if len(scattered):
            self._copying = self._prints.copies.pointed(self._copying, scattered)
        return Done()

    def plan(self, groups: Sequence[Sequence[Part]], early: Sequence[int] | Numbers = ()) -> object:
        """Lay the groups out for launches."""
        return PartedPlan.of(groups, early, self._prints)

    def replan(self, plan: object, shifts: Shifts) -> object:
        """Give some groups other addresses."""
        assert isinstance(plan, PartedPlan)
        plan.shift(shifts)
        return plan

    def begin_fingerprints(  # type: ignore[override]
        self, plan: object, key: bytes, behind: Behind | None = None
    ) -> CudaDigests:
        """Launch nothing; the digests are whatever lies where they would."""
        assert isinstance(plan, PartedPlan)
        return CudaDigests(plan, [self._prints.launch(each, wmf1.Table.of(key)) for each in plan.plans])


class Pool:
    """Memory outside slots, at multiples of 512 like torch's on a GPU; begun anew each time it is taken from."""

    def __init__(self, kit: OrdersOnly, num_bytes: int) -> None:
        self._kit = kit
        self._halves = [kit.allocate(num_bytes) for _ in range(2)]
        self._used = 0

    def turn(self) -> None:
        """Take from the other half, from its beginning on."""
        self._halves.reverse()
        self._used = 0

    def like(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a contiguous tensor of the same shape, whose bytes nobody has written."""
        part = Part(self._halves[0].address + self._used, tensor.nbytes)
        self._used += round_up(tensor.nbytes, 512)
        whole = torch.empty(0, dtype=tensor.dtype)
        return whole.set_(self._kit.storage(part, self._halves[0].owner), 0, tensor.shape, tensor.stride())


@dataclass(slots=True, kw_only=True)
class Bench:
    """One state, in a slot of its own, moved again and again to another."""

    config: MatrixConfig
    kit: OrdersOnly
    source: DeviceArena
    destination: DeviceArena
    session: Session
    pool: Pool
    scattered: bool
    likeness: Likeness

    def state(self) -> Tree:
        return export(self.session)

    def step(self) -> None:
        """Do to the state what a block does: cursors and the pose move, and what a block rebinds is bound anew."""
        self.session.frame += self.config.frames_per_block
        y, x = self.session.stand.pose
        self.session.stand = replace(self.session.stand, number=self.session.stand.number + 1, pose=(y, x + 1))
        torch.rand(1, generator=self.session.generator)
        self.pool.turn()
        self.session.features = [self.pool.like(each) for each in self.session.features]
        if self.scattered:
            for caches in self.session.caches.values():
                for cache in caches:
                    moved = {name: self.pool.like(value) for name, value in cache.items() if torch.is_tensor(value)}
                    cache.update(moved)


@dataclass(slots=True, kw_only=True)
class Times:
    """CPU time of each part, ms."""

    samples: dict[str, list[float]]
    profiles: dict[str, cProfile.Profile]
    profiled: str | None
    inside_ms: float = 0.0
    """What parts within the one that is timed have taken."""

    def of(self, name: str, work: Callable[[], Any]) -> Any:
        """Time a part, without the parts in it."""
        profile = self.profiles.setdefault(name, cProfile.Profile()) if name == self.profiled else None
        outer, self.inside_ms = self.inside_ms, 0.0
        begin = time.thread_time()
        found = profile.runcall(work) if profile is not None else work()
        taken = 1000 * (time.thread_time() - begin)
        self.samples.setdefault(name, []).append(taken - self.inside_ms)
        self.inside_ms = outer + taken
        return found


def main() -> None:
    """Measure, and write one document."""
    options = options_of(None)
    torch.set_num_threads(1)
    gc.set_threshold(50_000, 20, 100)
    recorder = Recorder("hot_path", options)
    times = Times(samples={}, profiles={}, profiled=options.profile)
    bench = made(options.scope, scattered=options.case == "scattered")
    for number in range(options.repeats + 3):
        one_move(bench, times if number >= 3 else Times(samples={}, profiles={}, profiled=None))
    for profile in times.profiles.values():
        pstats.Stats(profile, stream=sys.stderr).sort_stats("tottime").print_stats(25)
    found = {name: spread(values) for name, values in times.samples.items()}
    whole = [sum(parts) for parts in zip(*times.samples.values(), strict=True)]
    chained = [values for name, values in times.samples.items() if not name.startswith(BESIDE)]
    chain = [sum(parts) for parts in zip(*chained, strict=True)]
    summary = {"whole_ms": spread(whole), "chain_ms": spread(chain), "parts_ms": found}
    recorder.write(summary, {"parts_ms": times.samples})


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    options = argparse.ArgumentParser(prog="python -m bench.hot_path", description=__doc__)
    options.add_argument("--repeats", type=int, default=30)
    options.add_argument("--scope", choices=("latents", "complete"), default="complete")
    options.add_argument("--case", choices=CASES, default="resident")
    options.add_argument("--out", default=f"bench/results/hot_path-{label()}.json", help="where the result goes")
    options.add_argument("--profile", help="a part whose calls are listed, on standard error")
    return options.parse_args(arguments)


def made(scope: str, *, scattered: bool) -> Bench:
    """Lay a session of full size into a slot."""
    preset = presets.matrix_game_2() if scope == "complete" else presets.without_decoder(presets.matrix_game_2())
    config, kit = preset.config, OrdersOnly()
    session = new_session(config, 1, torch.device("cpu"))
    first = remember(export(session), {}, kit).capture
    layout = Layout.of(first.manifest)
    arenas = [DeviceArena(int(layout.arena_bytes * 1.25), "bench", kit) for _ in range(2)]
    placement = gather(first, arenas[0])
    tree = rehearse(first.manifest, placement, arenas[0], {}).built
    return Bench(
        config=config,
        kit=kit,
        source=arenas[0],
        destination=arenas[1],
        session=adopt(config, tree, torch.device("cpu")),
        pool=Pool(kit, int(layout.arena_bytes * 1.25)),
        scattered=scattered,
        likeness=Likeness(),
    )


def one_move(bench: Bench, times: Times) -> None:
    """Make ready, as an offer, a reservation and a source that stands still do; time what lies within the pause."""
    bench.step()
    known = remember(bench.state(), {}, bench.kit)
    prepare(known.capture)
    layout = Layout.of(
        known.capture.manifest, arena_bytes=bench.source.size, places=foreseen(known.capture, bench.source)
    )
    preview = Preview.of(layout)
    if preview is None:
        raise RuntimeError("the state is too large to be told ahead")
    offered = Preview.of(layout)
    rehearsal = rehearse(preview.manifest, preview.places, bench.destination, {})
    rehearsal.session = adopt(bench.config, rehearsal.built, torch.device("cpu"), bench.likeness)
    prepare_key(bench.kit, NONCE, layout.digest)
    bench.step()
    known = recapture(known, bench.state())
    practise(bench, rehearsal)
    captured, placement, begun = _leave(bench, times, known, layout.digest)
    told = times.of("told", lambda: tell(offered, captured.manifest, placement))
    manifest, placement = times.of("heard", lambda: hear(preview, *told))
    times.of("pull", lambda: _pull(bench, extents(manifest, placement)))
    first = _proof(captured, layout.digest, begun)
    _, ours = _arrive(bench, times, rehearsal, manifest, placement, layout.digest)
    times.of("resolve anew, beside the transfer", lambda: _anew(bench, known))
    second = times.of("second pass", lambda: _proof(captured, layout.digest))
    times.of("compare", lambda: (first.compare(second, manifest), ours.compare(second, manifest)))


def practise(bench: Bench, rehearsal: Rehearsal) -> None:
    """Go once through what the boundary will ask for, as a destination does when the freeze is near."""
    tree = rehearsal.tree(rehearsal.manifest, rehearsal.placement, {})
    take_values(bench.config, rehearsal.session, tree, torch.device("cpu"))
    rehearsal.known = recapture(rehearsal.known, export(rehearsal.session))


def _leave(bench: Bench, times: Times, known: Known, digest: bytes) -> tuple[Capture, Placement, Pass]:
    """Do what a freeze does of a session that was resolved as it stood: begin to gather it and to read it."""
    gathered = times.of("gather", lambda: begin_gather(known.capture, bench.source))
    first = times.of("first pass", lambda: Pass(known.capture, DIGESTER, NONCE, digest))
    return known.capture, gathered.placement, first


def _anew(bench: Bench, known: Known) -> None:
    """Resolve what is frozen anew, beside the transfer."""
    apart = replace(known, capture=replace(known.capture, plans=[]))
    if recapture(apart, bench.state()).capture.manifest != known.capture.manifest:
        raise RuntimeError("it is not as it was known")


def _pull(bench: Bench, wanted: tuple[Extent, ...]) -> None:
    window = bench.destination.lend()
    window.start_copy(bench.source.address, wanted)
    window.seal()
    window.close()


def _arrive(
    bench: Bench, times: Times, rehearsal: Rehearsal, manifest: Manifest, placement: Placement, digest: bytes
) -> tuple[Capture, MoveProof]:
    tree = times.of("build", lambda: rehearsal.tree(manifest, placement, {}))
    if tree is None:
        raise RuntimeError("the rehearsal did not foresee where the state lies")
    times.of("take values", lambda: take_values(bench.config, rehearsal.session, tree, torch.device("cpu")))
    begun: list[Pass] = []

    def begin(capture: Capture) -> Pass:
        begun.append(times.of("verify", lambda: Pass(capture, DIGESTER, NONCE, digest)))
        return begun[0]

    captured, _ = times.of(
        "resolve there, beside the pass",
        lambda: recapture_begun(rehearsal.known, lambda: export(rehearsal.session), begin),
    )
    proof = times.of("prove", lambda: _proof(captured, digest, begun[0]))
    return captured, proof


def _proof(captured: Capture, layout_digest: bytes, begun: Pass | None = None) -> MoveProof:
    return prove(
        captured,
        DIGESTER,
        attempt="bench",
        epoch=1,
        boundary=1,
        nonce=NONCE,
        layout_digest=layout_digest,
        begun=begun,
    )


if __name__ == "__main__":
    main()
