"""The two ends of a move without a server, each in a process of its own: the calls of a worker, one after another."""

import gc
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from worldmove.cli.benches.copies import copy_ms
from worldmove.cli.benches.path_here import Early, PathHere
from worldmove.engine.base import Engine
from worldmove.errors import WorldMoveError
from worldmove.move.second_pass import LOOK_S, latch_of
from worldmove.state.arena import AnyArena, new_arena
from worldmove.state.capture import Capture
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_window import joined
from worldmove.state.digest import Pass, prepare_key
from worldmove.state.extent import Extent
from worldmove.state.kits import kit_of
from worldmove.state.manifest import Layout, Manifest
from worldmove.state.memory import MemoryKit
from worldmove.state.placement import Placement, check_placement, extents, extents_of, in_place_bytes
from worldmove.state.preview import Preview, hear, tell
from worldmove.state.proof import MoveProof, prove
from worldmove.state.rehearsal import Rehearsal
from worldmove.worker.engines import build_engine
from worldmove.worker.freezing import freeze_in, layout_in
from worldmove.worker.installing import install_tree, installs_ahead, open_in, rehearse_in, tree_in
from worldmove.worker.process import DEVICE_SWITCH_INTERVAL_S, GC_THRESHOLDS, SWITCH_INTERVAL_S
from worldmove.worker.states import DIGESTER
from worldmove.worker.warm_up import warm_up

STILL = "still"
"""What lies in the source's slot is written no more: it may be pulled, before it is known what of the state lies
elsewhere. That is brought into the slot after it, told at the boundary, and pulled then.
"""


@dataclass(slots=True, kw_only=True)
class Clock:
    """Instants by name, one a move."""

    instants: dict[str, list[float]] = field(default_factory=dict)

    def mark(self, name: str) -> None:
        """Note that something has just ended."""
        self.instants.setdefault(name, []).append(time.perf_counter())


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One process: an engine, a slot for a session of it, its end of the path, and the line to the other end."""

    engine: Engine[Any]
    arena: AnyArena
    path: PathHere
    peer: Connection


class Asked(NamedTuple):
    """Which engine's session, how often, and by which path; None for the fastest that a worker has."""

    engine: str
    threads: int
    repeats: int
    path: str | None


def source(asked: Asked, peer: Connection, parent: Connection) -> None:
    """Play and freeze, and say what was frozen."""
    with _end(asked, peer) as end:
        session, captured = open_in(end.engine, end.engine.open(1), end.arena)
        peer.send(end.path.export(end.arena))
        clock = Clock()
        for number in range(-1, asked.repeats):  # the first one is a trial
            end.engine.step(session, ())
            captured = _give(end, session, number, clock if number >= 0 else Clock())
        peer.recv()  # the destination has let go of the path
        num_storages = len(captured.manifest.storages)
        parent.send({"instants": clock.instants, "num_bytes": captured.num_bytes, "num_storages": num_storages})


def destination(asked: Asked, peer: Connection, parent: Connection) -> None:
    """Take what is frozen, as often as it comes."""
    with _end(asked, peer) as end, ThreadPoolExecutor(1) as beside:
        end.path.connect(peer.recv())
        clock, copies = Clock(), list[float]()
        for number in range(-1, asked.repeats):
            num_bytes = _take(end, beside, number, clock if number >= 0 else Clock())
            if number >= 0:
                copies.append(_flat_copy_ms(end, num_bytes))
            peer.send("next")
        end.path.disconnect()
        peer.send("end")
        parent.send({"instants": clock.instants, "copy_ms": copies})


def _flat_copy_ms(end: End, num_bytes: int) -> float:
    """Copy as many bytes along the same way, flat: from the source's slot, where the path begins at once."""
    took_ms = 0.0
    for _ in range(2):
        begin = time.perf_counter()
        landed = end.path.start_pull([Extent(offset=0, length=num_bytes)], end.arena)
        if landed is None:
            return copy_ms(num_bytes, kit_of(end.engine.spec.device))
        landed()
        took_ms = (time.perf_counter() - begin) * 1000
    return took_ms


def _give(end: End, session: Any, number: int, clock: Clock) -> Capture:
    """Move once: offer, play on, freeze, two passes, proof. Raises WorldMoveError if the two passes differ."""
    nonce = os.urandom(32)
    layout, known = layout_in(end.engine, session, end.arena)
    preview, digest = Preview.of(layout), layout.digest
    _prepare_key(end, nonce, digest)
    end.peer.send((layout.to_bytes(), nonce))
    end.peer.recv()
    is_early = 2 * in_place_bytes(known.capture, end.arena) > known.capture.num_bytes
    end.engine.step(session, ())  # it is played on until the boundary
    clock.mark("begin")
    begin = partial(Pass, digester=DIGESTER, nonce=nonce, layout_digest=digest)

    def when_still() -> None:
        clock.mark("still")
        if is_early:
            end.peer.send(STILL)

    still = freeze_in(end.engine, session, end.arena, known, begin=begin, when_still=when_still)
    captured = still.capture
    clock.mark("frozen")
    end.peer.send((*tell(preview, captured.manifest, still.placement), still.moved))
    first = _proof(captured, nonce, digest, number, still.first)
    clock.mark("digested")
    second = _second(end, captured, (nonce, digest, number), clock)
    if first.compare(second, captured.manifest):
        raise WorldMoveError("the engine wrote after its block boundary")
    end.peer.recv()
    return captured


def _second(end: End, captured: Capture, of: tuple[bytes, bytes, int], clock: Clock) -> MoveProof:
    """Take the second pass after all was read, and send it, as ``move.second_pass`` does."""
    nonce, digest, number = of
    latch = latch_of(end.arena, captured, nonce)
    has_landed = latch is None and bool(end.peer.recv())
    begun = Pass(captured, DIGESTER, nonce, digest, latch)
    clock.mark("ordered")
    try:
        while latch is not None and not latch.wait(LOOK_S):
            if end.peer.poll():
                has_landed = bool(end.peer.recv())
                latch.open()
    finally:
        if latch is not None:
            latch.open()
    if latch is not None and latch.was_given_up:
        has_landed, begun = has_landed or bool(end.peer.recv()), Pass(captured, DIGESTER, nonce, digest)
    second = _proof(captured, nonce, digest, number, begun)
    clock.mark("digested again")
    end.peer.send(second)
    if not has_landed:
        end.peer.recv()
    return second


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What an offer has told, and what was made ready for it."""

    nonce: bytes
    digest: bytes
    preview: Preview | None
    rehearsal: Rehearsal | None
    foretold: tuple[Extent, ...]
    """Where all of it would lie."""

    def wanted(self, manifest: Manifest, placement: Placement, moved: Sequence[int]) -> tuple[Extent, ...]:
        """Return what is to be pulled after all of this was: what has changed since, or all where it lies otherwise."""
        is_foreseen = self.preview is not None and placement == self.preview.places
        if not is_foreseen or self.preview is None or manifest.storages != self.preview.manifest.storages:
            return extents(manifest, placement)
        return extents_of(manifest, placement, moved)


def _offered(end: End) -> Offered:
    """Make ready for what is offered next, and say so."""
    encoded, nonce = end.peer.recv()
    layout = Layout.from_bytes(encoded)
    end.arena.poison()
    rehearsal = rehearse_in(end.engine, layout, end.arena)
    preview, digest = Preview.of(layout), layout.digest
    _prepare_key(end, nonce, digest)
    foretold = () if preview is None else extents(preview.manifest, preview.places)
    joined(foretold)
    end.peer.send("ready")
    return Offered(nonce=nonce, digest=digest, preview=preview, rehearsal=rehearsal, foretold=foretold)


def _take(end: End, beside: ThreadPoolExecutor, number: int, clock: Clock) -> int:
    """Move once: rehearse, pull, build, install, verify; return the bytes. Raises WorldMoveError at a difference."""
    offered = _offered(end)
    told, early = end.peer.recv(), None
    if told == STILL:
        early = end.path.start_early(offered.foretold, end.arena, offered.nonce)
        clock.mark("begun")
        told = end.peer.recv()
    clock.mark("told")
    *said, moved = told
    manifest, placement = hear(offered.preview, *said)
    if offered.preview is None or placement != offered.preview.places:
        check_placement(manifest, placement, end.arena.size)
    clock.mark("read")
    wanted = extents(manifest, placement) if early is None else offered.wanted(manifest, placement, moved)
    arrival = Arrival(end, beside, wanted, offered.nonce, early, clock)
    built = tree_in(end.engine, manifest, placement, end.arena, offered.rehearsal)
    clock.mark("built")
    if not (arrival.is_started and installs_ahead(end.engine, built)):
        arrival.landed()
    _, captured = install_tree(end.engine, built)
    clock.mark("installed")
    begun = Pass(captured, DIGESTER, offered.nonce, offered.digest)
    ours = _proof(captured, offered.nonce, offered.digest, number, begun)
    clock.mark("verified")
    arrival.landed()  # for the window, and for what no device orders
    theirs: MoveProof = end.peer.recv()
    clock.mark("proof came")
    differences = ours.compare(theirs, manifest)
    if differences or captured.manifest != manifest:
        raise WorldMoveError(f"what landed is not what was frozen: {differences}")
    clock.mark("matched")
    return captured.num_bytes


class Arrival:
    """Bytes on their way: begun at once where the path can, and waited for by a thread, which says when they are there.

    Neither end's pass waits for that where the devices keep the order.
    """

    def __init__(
        self,
        end: End,
        beside: ThreadPoolExecutor,
        wanted: Sequence[Extent],
        nonce: bytes,
        early: Early | None,
        clock: Clock,
    ) -> None:
        """``early``: begins the rest of what has begun before; None where nothing has."""
        self._end = end
        self._clock = clock
        started = end.path.start_pull(wanted, end.arena, nonce) if early is None else early(wanted)
        self.is_started = started is not None
        """What the device is asked to begin comes after it."""
        self._bringing = beside.submit(self._bring, started or partial(end.path.pull, wanted, end.arena))

    def landed(self) -> None:
        """Return when every byte is there. Raises TransportError."""
        self._bringing.result()

    def _bring(self, wait: Callable[[], None]) -> None:
        wait()
        self._clock.mark("landed")
        self._end.peer.send("landed")


@contextmanager
def _end(asked: Asked, peer: Connection) -> Iterator[End]:
    """Build and warm an engine, make a slot for a session of it, and serve a path, while inside."""
    engine = build_engine(asked.engine, asked.threads)
    warm, kit = warm_up(engine, time.perf_counter), kit_of(engine.spec.device)
    arena = new_arena(warm.arena_bytes, "worldmove-bench", kit)
    with (
        TemporaryDirectory(prefix="worldmove-bench-") as folder,
        PathHere(Path(folder) / "path", kit, random.Random(1), asked.path) as path,
    ):
        _settle(kit)
        yield End(engine=engine, arena=arena, path=path, peer=peer)


def _settle(kit: MemoryKit | None) -> None:
    """Let collections and other threads interrupt as little, or as soon, as in a worker's process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL_S if kit is None else DEVICE_SWITCH_INTERVAL_S)


def _prepare_key(end: End, nonce: bytes, layout_digest: bytes) -> None:
    if isinstance(end.arena, DeviceArena):
        prepare_key(end.arena.kit, nonce, layout_digest)


def _proof(captured: Capture, nonce: bytes, layout_digest: bytes, number: int, begun: Pass | None = None) -> MoveProof:
    return prove(
        captured,
        DIGESTER,
        attempt="bench",
        epoch=1,
        boundary=number + 1,
        nonce=nonce,
        layout_digest=layout_digest,
        begun=begun,
    )
