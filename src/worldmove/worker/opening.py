"""Opening a session in a slot: from a seed, from one picture, or from a saved world."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from worldmove.engine.base import Engine
from worldmove.errors import FileRefused, MoveRefused, StateRefused, UserError, WorldMoveError
from worldmove.move.sayable import said, word
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.device_arena import DeviceArena
from worldmove.state.digest import state_digest
from worldmove.state.saved import SavedHeader
from worldmove.state.saved_state import load
from worldmove.worker.copies import CopyTable
from worldmove.worker.foreign import engine_asked, engine_trusted
from worldmove.worker.installing import Built, install_tree, open_in, tree_of
from worldmove.worker.messages import Failed, Open, Opened
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.slots import SlotState
from worldmove.worker.states import DIGESTER
from worldmove.worker.tools import Tools
from worldmove.worker.turns import Turn


async def open_session(asked: Open, copies: CopyTable, tools: Tools) -> Opened | Failed:
    """Open a session and let it play. What cannot be met is answered, and leaves nothing behind."""
    try:
        copy = copies.add(asked.session, SlotState.BOUND, 0)
    except MoveRefused as error:
        return _failed(asked, error.detail, error.reason)
    with copy.users.one_more():
        try:
            opened = await (_go_on(asked, copy, tools) if asked.saved else _begin(asked, copy, tools))
            if copy.is_freeing:
                raise UserError("the session was closed while it was opened", code="closed")
        except WorldMoveError as error:
            copy.end()
            return _failed(asked, str(error), error.code)
    copy.epoch = asked.epoch
    copy.enter(CopyPhase.LIVE if asked.picture is None else CopyPhase.THROWAWAY)
    return opened


async def _begin(asked: Open, copy: SessionCopy, tools: Tools) -> Opened:
    async with tools.turns.take(Turn.OPEN) as engine_thread:
        return await engine_thread(partial(_open, asked, copy, tools.engine))


async def _go_on(asked: Open, copy: SessionCopy, tools: Tools) -> Opened:
    """Read a saved world beside whatever plays; then install it, and see that what will be played is what was saved.

    Its tree is made beside, too: one that was made up may have as many leaves and generators as a manifest can say,
    and that took the engine's thread 4 s, again and again. Of a slot on a device the engine's thread makes it, whose
    context that is. Raises FileRefused, ArenaFull, StateRefused.
    """
    header, make = await tools.filing(partial(_load, asked.saved, copy.slot.arena, tools))
    async with tools.turns.take(Turn.OPEN) as engine_thread:
        copy.engine_session, captured = await engine_thread(partial(_take_up, tools.engine, make))
        digest = await engine_thread(partial(state_digest, captured, DIGESTER))
    if digest.text != header.state_digest:
        raise StateRefused("", f"installed it is {digest.text}, and {header.state_digest} was saved")
    copy.next_block = header.block
    copy.inputs.forget_before(header.block)
    return _opened(asked, captured, digest.text)


def _load(path: str, arena: AnyArena, tools: Tools) -> tuple[SavedHeader, Callable[[], Built]]:
    """Return a file's header, and what gives the tree of its state."""
    try:
        with Path(path).open("rb") as file:
            header, manifest, placement = load(file, arena, DIGESTER, gets_on=tools.progress.one_more)
    except OSError as error:
        raise FileRefused(f"The saved world cannot be read here ({error.strerror}).") from error
    make = partial(tree_of, tools.types, manifest, placement, arena)
    if isinstance(arena, DeviceArena):
        return header, make
    built = make()
    return header, lambda: built


def _take_up(engine: Engine[Any], make: Callable[[], Built]) -> tuple[Any, Capture]:
    with engine_asked("take up the saved state"):  # whoever wrote it, it ends nothing but this opening
        return install_tree(engine, make())


def _open(asked: Open, copy: SessionCopy, engine: Engine[Any]) -> Opened:
    with engine_trusted("open a session"):
        session = engine.open(asked.seed) if asked.picture is None else _recover(engine, asked.picture, asked.seed)
        copy.engine_session, captured = open_in(engine, session, copy.slot.arena)
    return _opened(asked, captured, state_digest(captured, DIGESTER).text)


def _opened(asked: Open, captured: Capture, digest: str) -> Opened:
    return Opened(
        session=asked.session,
        epoch=asked.epoch,
        num_bytes=captured.num_bytes,
        num_leaves=len(captured.manifest.leaves),
        state_digest=digest,
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


def _failed(asked: Open, why: str, code: str) -> Failed:
    return Failed(session=asked.session, code=word(code), message=said(why))
