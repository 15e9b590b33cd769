"""Opening a session in a slot, from a seed or from one picture."""

from functools import partial
from typing import Any

import numpy as np

from worldmove.engine.base import Engine
from worldmove.errors import ArenaFull, MoveRefused, StateRefused, UserError, WorldMoveError
from worldmove.state.digest import state_digest
from worldmove.worker.copies import CopyTable
from worldmove.worker.loop import Tools
from worldmove.worker.messages import Failed, Open, Opened
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.slots import SlotState
from worldmove.worker.states import DIGESTER, open_in
from worldmove.worker.turns import Turn

EXPECTED = (ArenaFull, MoveRefused, StateRefused, UserError)


async def open_session(asked: Open, copies: CopyTable, tools: Tools) -> Opened | Failed:
    """Open a session and let it play. What cannot be met is answered, and leaves nothing behind."""
    try:
        copy = copies.add(asked.session, SlotState.BOUND, 0)
    except MoveRefused as error:
        return _failed(asked, error, error.reason)
    try:
        async with tools.turns.take(Turn.OPEN) as engine_thread:
            opened = await engine_thread(partial(_open, asked, copy, tools.engine))
    except EXPECTED as error:
        copy.enter(CopyPhase.FREEING)
        return _failed(asked, error, error.code)
    copy.epoch = asked.epoch
    copy.enter(CopyPhase.LIVE if asked.picture is None else CopyPhase.THROWAWAY)
    return opened


def _open(asked: Open, copy: SessionCopy, engine: Engine[Any]) -> Opened:
    session = engine.open(asked.seed) if asked.picture is None else _recover(engine, asked.picture, asked.seed)
    copy.engine_session, captured = open_in(engine, session, copy.slot.arena)
    return Opened(
        session=asked.session,
        epoch=asked.epoch,
        num_bytes=captured.num_bytes,
        num_leaves=len(captured.manifest.leaves),
        state_digest=state_digest(captured, DIGESTER).text,
    )


def _recover(engine: Engine[Any], picture: bytes, seed: int) -> Any:
    recover = getattr(engine, "recover", None)  # the contract Recovers is optional
    spec = engine.spec
    if recover is None:
        raise UserError(f"the engine {spec.name} cannot begin a world from a picture", code="cannot_recover")
    if len(picture) != spec.height * spec.width * 3:
        raise UserError(f"a picture has {spec.height}x{spec.width} RGB pixels, not {len(picture)} bytes")
    pixels = np.array(np.frombuffer(picture, dtype=np.uint8)).reshape(spec.height, spec.width, 3)
    return recover(pixels, seed)


def _failed(asked: Open, error: WorldMoveError, code: str) -> Failed:
    return Failed(session=asked.session, code=code, message=str(error))
