"""The destination of a move without a server: pulls, installs and verifies. In a process of its own."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

from worldmove.cli.benches.copies import copy_ms
from worldmove.cli.benches.direct_end import NEAR, STILL, Asked, Clock, End, proof_of, serving
from worldmove.errors import WorldMoveError
from worldmove.move.copying import Copying
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
        copying = end.path.copying(end.arena)
        if copying is None:
            return copy_ms(num_bytes, kit_of(end.engine.spec.device))
        copying.start([Extent(offset=0, length=num_bytes)])
        copying.wait()
        copying.close()
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


def _go_through(end: End, offered: Offered, copying: Copying | None) -> None:
    """The freeze is near: go once through what comes then, lay out what may come early, and say so."""
    if offered.rehearsal is not None:
        practise(end.engine, offered.rehearsal)
    end.path.look_ahead()
    if copying is not None and offered.early:
        copying.make_ready(offered.early)
    end.peer.send("ready")


def _take(end: End, beside: ThreadPoolExecutor, number: int, clock: Clock) -> int:
    """Move once: rehearse, pull, build, install, verify; return the bytes. Raises WorldMoveError at a difference."""
    offered = _offered(end)
    copying, told = end.path.copying(end.arena, offered.nonce), end.peer.recv()
    if told == NEAR:
        _go_through(end, offered, copying)
        told = end.peer.recv()
    if told == STILL:
        if copying is not None:
            copying.begin()
            clock.mark("begun")
        told = end.peer.recv()
    clock.mark("told")
    *said, moved = told
    manifest, placement = hear(offered.preview, *said)
    if offered.preview is None or placement != offered.preview.places:
        check_placement(manifest, placement, end.arena.size)
    clock.mark("read")
    wanted = extents(manifest, placement)
    if copying is not None and copying.has_begun and offered.preview is not None:
        wanted = offered.preview.rest(manifest, placement, moved)
    arrival = Arrival(end, beside, wanted, copying, clock)
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
        self, end: End, beside: ThreadPoolExecutor, wanted: Sequence[Extent], copying: Copying | None, clock: Clock
    ) -> None:
        """``copying``: None where the path starts nothing at once. What it has begun is not wanted any more."""
        self._end = end
        self._wanted = wanted
        self._copying = copying
        self._clock = clock
        if copying is not None:
            copying.start(wanted)
        if copying is None or not copying.has_begun:
            clock.mark("begun")
        self.is_started = copying is not None
        """What the device is asked to begin comes after it."""
        self._bringing = beside.submit(self._bring)

    def landed(self) -> None:
        """Return when every byte is there. Raises TransportError."""
        self._bringing.result()

    def _bring(self) -> None:
        if self._copying is None:
            self._end.path.pull(self._wanted, self._end.arena)
        else:
            self._copying.wait()
            self._copying.close()
        self._clock.mark("landed")
        self._end.peer.send("landed")
