"""The source of a move without a server: plays, freezes, and says what was frozen. In a process of its own."""

import os
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from worldmove.cli.benches.direct_end import NEAR, STILL, Asked, Clock, End, proof_of, serving
from worldmove.errors import WorldMoveError
from worldmove.move.second_pass import LOOK_S, latch_of
from worldmove.state.capture import Capture
from worldmove.state.digest import Pass
from worldmove.state.gate import Latch
from worldmove.state.preview import Preview, tell
from worldmove.state.proof import MoveProof
from worldmove.worker.ahead import ahead_in, resolved_in
from worldmove.worker.freezing import freeze_in, layout_in, resolved_anew
from worldmove.worker.installing import open_in
from worldmove.worker.states import DIGESTER


def source(asked: Asked, peer: Connection, parent: Connection) -> None:
    """Play and freeze, and say what was frozen."""
    with serving(asked, peer) as end:
        session, captured = open_in(end.engine, end.engine.open(1), end.arena)
        peer.send(end.path.export(end.arena))
        clock = Clock()
        for number in range(-1, asked.repeats):  # the first one is a trial
            end.engine.step(session, ())
            captured = _give(end, session, number, clock if number >= 0 else Clock())
        peer.recv()  # the destination has let go of the path
        num_storages = len(captured.manifest.storages)
        parent.send({"instants": clock.instants, "num_bytes": captured.num_bytes, "num_storages": num_storages})


def _give(end: End, session: Any, number: int, clock: Clock) -> Capture:
    """Move once: offer, play on, freeze, two passes, proof. Raises WorldMoveError if the two passes differ."""
    nonce = os.urandom(32)
    layout, known = layout_in(end.engine, session, end.arena)
    preview, digest = Preview.of(layout), layout.digest
    end.prepare_key(nonce, digest)
    end.peer.send((layout.to_bytes(), nonce))
    end.peer.recv()
    end.engine.step(session, ())  # it is played on until the boundary
    end.peer.send(NEAR)
    early = preview.early if preview else ()  # meanwhile, as in a worker
    ahead = ahead_in(end.arena, resolved_in(end.engine, session, known), number, early)
    end.peer.recv()
    clock.mark("begin")
    begin = partial(Pass, digester=DIGESTER, nonce=nonce, layout_digest=digest)

    def when_still() -> None:
        clock.mark("still")
        if preview is not None and ahead.comes_early(preview):
            end.peer.send(STILL)

    still = freeze_in(
        end.engine, session, end.arena, begin=begin, when_still=when_still, says_rolled=False, ahead=ahead
    )
    captured = still.capture
    clock.mark("frozen")
    end.peer.send((*tell(preview, captured.manifest, still.placement), still.moved))
    is_parted = preview is not None and preview.keeps_early(captured.manifest, still.placement, still.moved)
    latch = latch_of(end.arena, captured, nonce, is_parted=is_parted)
    behind = None if latch is None else Pass(captured, DIGESTER, nonce, digest, latch)
    clock.mark("ordered")
    # Beside the first pass: a worker's engine thread does this while others wait for the device.
    if resolved_anew(end.engine, session, ahead.known) is not captured:
        raise WorldMoveError("the state is not what it was before the freeze")
    clock.mark("resolved")
    first = proof_of(captured, nonce, digest, number, still.first)
    clock.mark("digested")
    second = _second(end, captured, (nonce, digest, number), clock, latch, behind)
    if first.compare(second, captured.manifest):
        raise WorldMoveError("the engine wrote after its block boundary")
    end.peer.recv()
    return captured


def _second(
    end: End,
    captured: Capture,
    of: tuple[bytes, bytes, int],
    clock: Clock,
    latch: Latch | None,
    behind: Pass | None,
) -> MoveProof:
    """Take the second pass after all was read, and send it, as ``move.second_pass`` does. Raises WorldMoveError.

    ``behind``: it, ordered behind the gate, where there is one.
    """
    nonce, digest, number = of
    has_landed = latch is None and bool(end.peer.recv())
    begun = behind or Pass(captured, DIGESTER, nonce, digest)
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
    second = proof_of(captured, nonce, digest, number, begun)
    clock.mark("digested again")
    end.peer.send(second)
    if not has_landed:
        end.peer.recv()
    return second
