"""What a worker says of a session's state while it is played: its leaves, or a copy of it in a file.

The engine's thread is held for as long as it takes to look, or to copy the state aside. The file is written after
that, by the copy thread, while the session goes on.
"""

import errno
import hashlib
import os
from functools import partial
from typing import Any

from worldmove.engine.base import Engine
from worldmove.errors import UserError, WorldMoveError
from worldmove.limits import MAX_TOLD
from worldmove.move.sayable import said, word
from worldmove.state.capture import Capture
from worldmove.state.digest import state_digest
from worldmove.state.leaf_sizes import LeafSize, largest, leaf_sizes
from worldmove.state.saved_state import Aside, copy_aside, payload
from worldmove.worker.copies import CopyTable
from worldmove.worker.foreign import engine_asked
from worldmove.worker.messages import Describe, Described, NotDone, Save, Saved
from worldmove.worker.progress import Progress
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.states import DIGESTER, capture_still
from worldmove.worker.tools import Tools
from worldmove.worker.turns import Turn

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What the system says where no space is left."""


async def answer(asked: Describe | Save, copies: CopyTable, tools: Tools) -> Described | Saved | NotDone:
    """Do what was asked about a session that is played here; what cannot be met is answered."""
    try:
        if isinstance(asked, Describe):
            return await _describe(asked, copies, tools)
        return await _save(asked, copies, tools)
    except WorldMoveError as error:
        return NotDone(session=asked.session, request=asked.request, code=word(error.code), message=said(str(error)))
    except OSError as error:
        code = "no_space" if error.errno in FULL else "cannot_write"
        why = f"The session {asked.session} is not saved: its file cannot be written ({error.strerror})."
        return NotDone(session=asked.session, request=asked.request, code=code, message=why)


async def _describe(asked: Describe, copies: CopyTable, tools: Tools) -> Described:
    async with tools.turns.take(Turn.OPEN) as engine_thread:
        copy = _played(asked.session, copies)
        with copy.users.one_more():
            capture = await engine_thread(partial(_captured, tools.engine, copy.engine_session))
        block = copy.next_block
    leaves: tuple[LeafSize, ...] = await tools.filing(partial(leaf_sizes, capture.manifest))
    return Described(
        session=asked.session,
        request=asked.request,
        block=block,
        num_leaves=len(leaves),
        num_bytes=sum(leaf.num_bytes for leaf in leaves),
        leaves=await tools.filing(partial(largest, leaves, MAX_TOLD)),
    )


async def _save(asked: Save, copies: CopyTable, tools: Tools) -> Saved:
    async with tools.turns.take(Turn.OPEN) as engine_thread:
        copy = _played(asked.session, copies)
        epoch, block = copy.epoch, copy.next_block
        with copy.users.one_more():
            aside = await engine_thread(partial(_copy, tools.engine, copy.engine_session))
    digest = await tools.filing(partial(_write, aside, asked.path, tools.progress))
    manifest = aside.capture.manifest
    return Saved(
        session=asked.session,
        request=asked.request,
        epoch=epoch,
        block=block,
        state_digest=digest,
        manifest_sha256=hashlib.sha256(manifest.to_bytes()).digest(),
        manifest_bytes=len(manifest.to_bytes()),
        num_bytes=manifest.num_bytes,
        remainders=aside.remainders,
    )


def _played(session: str, copies: CopyTable) -> SessionCopy:
    """Return the copy that is played here. Raises UserError; asked within a turn, so that it stands at a boundary."""
    copy = copies.get(session)
    if copy is None or copy.phase is not CopyPhase.LIVE:
        where = "not here" if copy is None else f"{copy.phase.value} here"
        raise UserError(f"The session {session} is {where}: it is moving; try again.", code="moving")
    return copy


def _captured(engine: Engine[Any], session: Any) -> Capture:
    with engine_asked("give away its state"):
        return capture_still(engine, session)


def _copy(engine: Engine[Any], session: Any) -> Aside:
    return copy_aside(_captured(engine, session))


def _write(aside: Aside, path: str, progress: Progress) -> str:
    """Write a state to a new file, and return its digest. Raises OSError, and then there is no file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for part in payload(aside):
                file.write(part)
                progress.one_more()
    except OSError:
        os.unlink(path)
        raise
    return state_digest(aside.capture, DIGESTER).text
