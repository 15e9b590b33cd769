"""The destination of a move without a server: pulls, installs and verifies. In a process of its own."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

from worldmove.cli.benches.copies import copy_ms
from worldmove.cli.benches.direct_end import NEAR, STILL, Asked, Clock, End, proof_of, serving
from worldmove.cli.benches.path_here import Early
from worldmove.errors import WorldMoveError
from worldmove.state.digest import Pass
from worldmove.state.extent import Extent
from worldmove.state.kits import kit_of
from worldmove.state.layout import Layout
from worldmove.state.placement import check_placement, extents
from worldmove.state.preview import Preview, hear
from worldmove.state.proof import MoveProof
from worldmove.state.rehearsal import Rehearsal
from worldmove.worker.installing import install_begun, installs_ahead, practise, rehearse_in, tree_in
from worldmove.worker.states import DIGESTER


def destination(asked: Asked, peer: Connection, parent: Connection) -> None:
    """Take what is frozen, as often as it comes."""
    with serving(asked, peer) as end, ThreadPoolExecutor(1) as beside:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """What an offer has told, and what was made ready for it."""

    nonce: bytes
    digest: bytes
    preview: Preview | None
    rehearsal: Rehearsal | None
    early: tuple[Extent, ...]
    """What may be pulled before the boundary is told."""


def _offered(end: End) -> Offered:
    """Make ready for what is offered next, and say so."""
    encoded, nonce = end.peer.recv()
    layout = Layout.from_bytes(encoded)
    end.arena.poison()
    rehearsal = rehearse_in(end.engine, layout, end.arena)
    preview, digest = Preview.of(layout), layout.digest
    end.prepare_key(nonce, digest)
    early = () if preview is None else preview.early_extents
    end.peer.send("ready")
    return Offered(nonce=nonce, digest=digest, preview=preview, rehearsal=rehearsal, early=early)


def _take(end: End, beside: ThreadPoolExecutor, number: int, clock: Clock) -> int:
    """Move once: rehearse, pull, build, install, verify; return the bytes. Raises WorldMoveError at a difference."""
    offered = _offered(end)
    told, early, begin_early = end.peer.recv(), None, None
    if told == NEAR:
        if offered.rehearsal is not None:
            practise(end.engine, offered.rehearsal)
        end.path.look_ahead()
        begin_early = end.path.ready_early(offered.early, end.arena, offered.nonce) if offered.early else None
        end.peer.send("ready")
        told = end.peer.recv()
    if told == STILL:
        early = None if begin_early is None else begin_early()
        clock.mark("begun")
        told = end.peer.recv()
    clock.mark("told")
    *said, moved = told
    manifest, placement = hear(offered.preview, *said)
    if offered.preview is None or placement != offered.preview.places:
        check_placement(manifest, placement, end.arena.size)
    clock.mark("read")
    wanted = extents(manifest, placement)
    if early is not None and offered.preview is not None:
        wanted = offered.preview.rest(manifest, placement, moved)
    arrival = Arrival(end, beside, wanted, offered.nonce, early, clock)
    built = tree_in(end.engine, manifest, placement, end.arena, offered.rehearsal)
    clock.mark("built")
    if not (arrival.is_started and installs_ahead(end.engine, built)):
        arrival.landed()
    begin = partial(Pass, digester=DIGESTER, nonce=offered.nonce, layout_digest=offered.digest)
    _, captured, begun = install_begun(end.engine, built, begin)
    clock.mark("installed")
    ours = proof_of(captured, offered.nonce, offered.digest, number, begun)
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
        if early is None:
            clock.mark("begun")
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
