"""The block loop of one copy: wait for the next block's list, step, hash the frames, send.

Rules:

1. Nothing here stands between a list's arrival and its step but one hop to the engine's thread.
2. The turn is taken before the last look at the phase: a freeze that was asked while this copy waited for the
   engine is met without a further block.
3. A retired copy sends checks, never blocks; what it computed is kept, since it may have to take over. One that
   follows sends the digests of its frames.
4. An account of the state, for the session's record, is taken when nothing waits (``worker.accounts``).
5. Of an owner's block that others still hash, the next one does not wait: it is promised to the outbox and sent when
   its digests are there, before that next one is sent. Promised, or else hashed, before the turn is let go: whoever has
   the engine next finds the number of the block that its state is before.
6. An engine that raises in mid-step leaves a state that nobody can vouch for: the copy is given up, and no other.
"""

import asyncio
from collections.abc import Callable
from functools import partial

from worldmove.engine.base import KeyChange
from worldmove.errors import WorldMoveError
from worldmove.worker.leeway import MARGIN
from worldmove.worker.line import Line
from worldmove.worker.messages import Replayed
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.states import account_of
from worldmove.worker.step_reports import block_done, check_done, followed, state_done
from worldmove.worker.stepping import Stepped, step
from worldmove.worker.tools import Tools
from worldmove.worker.turns import Turn

_NEVER_TAKEN = (CopyPhase.FOLLOWING, CopyPhase.THROWAWAY)
"""Nobody takes the state of such a copy between two of its blocks: the engine is let go of before they are hashed."""


async def play(copy: SessionCopy, tools: Tools) -> None:
    """Step a copy whenever it can, until its slot may be given back. Raises EngineFailed: it can go on no further."""
    line = Line(copy.wake.set)
    try:
        while copy.phase is not CopyPhase.FREEING:
            copy.wake.clear()
            if line.is_over:
                await line.empty()  # raises where it has failed: that block will never come
            if copy.accounts.is_due(copy.next_block, list_waits=copy.can_step):
                await line.empty()  # an account follows its block
                await _give_account(copy, tools)
            elif not copy.can_step:
                await copy.wake.wait()
            elif copy.is_spare:
                await tools.courtesy.permission(unless=lambda: not copy.is_spare, takes_s=_takes_s(copy, tools))
                await _take_step(copy, tools, Turn.SPARE, line)
            else:
                await _take_step(copy, tools, Turn.OWNER, line)
    finally:
        await line.empty()  # whatever becomes of the copy: what it had computed before that is sent


def _takes_s(copy: SessionCopy, tools: Tools) -> float | None:
    """Return how long a spare block takes, where it is to fit in; None where it is one of a few."""
    follows = copy.phase is CopyPhase.FOLLOWING
    return MARGIN * tools.meter.spare_s if follows else None


async def _take_step(copy: SessionCopy, tools: Tools, turn: Turn, line: Line) -> None:
    copy.step.begin()
    if copy.phase is CopyPhase.LIVE:
        tools.courtesy.owner_began(copy.name)
    loop = asyncio.get_running_loop()
    asked_at = loop.time()
    try:
        async with tools.turns.take(turn) as engine_thread:
            begun_at = max(asked_at, tools.turns.free_since)
            phase, changes = copy.phase, copy.inputs.get(copy.next_block)
            if changes is None or not copy.may_compute or _is_too_late(copy, tools):
                return
            stepped = await engine_thread(_job(copy, tools, changes))
            number = copy.next_block
            is_promised = _is_shown(copy, phase) and not (stepped.pictures.coming is None and line.is_idle)
            if is_promised:
                _promise(copy, tools, stepped)
            elif phase not in _NEVER_TAKEN and (stepped.pictures.coming is not None or not line.is_idle):
                await line.empty()
                stepped = await stepped.hashed()
            if not stepped.state_digest:  # one in a few needs that, and its turn is no other's
                tools.meter.turn(max(0.0, loop.time() - begun_at - stepped.compute_s))
        if is_promised:
            await line.put(_send_hashed(copy, number, stepped))
        else:
            await line.empty()
            _record(copy, tools, await stepped.hashed(), phase)
    finally:
        tools.courtesy.owner_let_go(copy.name)
        copy.step.end()


def _is_too_late(copy: SessionCopy, tools: Tools) -> bool:
    """Whether somebody's block came first, and the time for this one is over."""
    is_to_fit_in = copy.phase is CopyPhase.FOLLOWING and copy.is_spare
    return is_to_fit_in and not tools.courtesy.allows(_takes_s(copy, tools))


def _job(copy: SessionCopy, tools: Tools, changes: tuple[KeyChange, ...]) -> Callable[[], Stepped]:
    """Return what the engine's thread has to do for the next block."""
    return partial(
        step,
        tools.engine,
        copy.engine_session,
        changes,
        tools.clock,
        wants_digest=copy.owes_digest or copy.phase is CopyPhase.RETIRED,
        final=copy.early.final,
        hand=copy.early.handing(copy.next_block),
        taking=tools.taking,
    )


async def _give_account(copy: SessionCopy, tools: Tools) -> None:
    """Send the digests of the state as it is now, unless a list came while this waited for the engine.

    A copy that owns nothing any more gives none. A state that cannot be carried has none, nor has one whose paths are
    longer than a message may be: whatever an engine raises where it is only looked at, its world goes on.
    """
    copy.step.begin()
    try:
        async with tools.turns.take(Turn.OWNER) as engine_thread:
            if not copy.accounts.is_due(copy.next_block, list_waits=copy.can_step):
                return
            copy.accounts.given()
            if copy.phase is CopyPhase.LIVE:
                account = await engine_thread(partial(account_of, tools.engine, copy.engine_session))
                tools.send(state_done(copy, account))
    except WorldMoveError:
        return
    finally:
        copy.step.end()


def _is_shown(copy: SessionCopy, begun_as: CopyPhase) -> bool:
    """Whether what was stepped is an owner's block that nobody has seen."""
    return begun_as is copy.phase is CopyPhase.LIVE and not copy.replays


def _stepped(copy: SessionCopy) -> int:
    """A step has ended: count it, and return its block's number."""
    number = copy.next_block
    copy.next_block = number + 1
    copy.ended_at = asyncio.get_running_loop().time()
    return number


def _promise(copy: SessionCopy, tools: Tools, stepped: Stepped) -> None:
    """An owner's step has ended, and its pictures are being hashed: account for it. It is sent when they are."""
    number = _stepped(copy)
    copy.outbox.promise(number)
    _account_for(copy, tools, stepped, number)


async def _send_hashed(copy: SessionCopy, number: int, stepped: Stepped) -> None:
    copy.outbox.fulfil(block_done(copy, number, await stepped.hashed()))


def _account_for(copy: SessionCopy, tools: Tools, stepped: Stepped, number: int) -> None:
    """Note what a block took that somebody is shown, and that its pictures are on their way."""
    if copy.phase is not CopyPhase.THROWAWAY:
        tools.courtesy.owner_ended(copy.name)
    tools.meter.block(stepped.compute_s)
    copy.accounts.stepped(number)
    if number >= copy.skip_before:
        copy.num_digests_owed = max(0, copy.num_digests_owed - 1)
        tools.on_their_way.sent(copy.name, number)


def _record(copy: SessionCopy, tools: Tools, stepped: Stepped, begun_as: CopyPhase) -> None:
    """A step has ended: account for it, and send what it brought."""
    number = _stepped(copy)
    if begun_as is CopyPhase.FOLLOWING:
        tools.progress.one_more(copy.follows)  # it draws level, for as long as that takes
        tools.send(followed(copy, number, stepped))
        return
    done = block_done(copy, number, stepped)
    if copy.phase is CopyPhase.RETIRED:
        copy.outbox.put(done)
        if copy.attempt:  # none: it was replaced as an owner, in the middle of this step
            tools.send(check_done(copy, number, stepped))
        copy.check_stepped()
        return
    _account_for(copy, tools, stepped, number)
    if number >= copy.skip_before:
        copy.outbox.send(done)
    else:
        frames = copy.outbox.replayed[number] = done.frame_sha256
        tools.send(Replayed(session=copy.name, epoch=copy.epoch, block=number, frame_sha256=frames))
