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
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from worldmove.engine.base import Block, Engine, Follows, KeyChange, Streams
from worldmove.errors import EngineFailed, MessageError, StateRefused
from worldmove.move.message import MAX_BLOB_BYTES, MAX_HANDED_BYTES
from worldmove.transport.base import Blocking
from worldmove.worker.courtesy import Courtesy
from worldmove.worker.foreign import engine_asked, engine_trusted
from worldmove.worker.line import Line
from worldmove.worker.message import Notes
from worldmove.worker.messages import BlockDone, CheckDone, Followed, Note, Replayed, StateDone, ToServer
from worldmove.worker.meter import Meter
from worldmove.worker.on_their_way import OnTheirWay
from worldmove.worker.pictures import Pictures, Taking, taken
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.states import Account, account_of, digest_of
from worldmove.worker.turns import Turn, Turns

MARGIN = 1.1
"""How much longer than the longest of late a block may take that is to be over in time."""

_NOTES = msgspec.msgpack.Decoder(Notes)
_NEVER_TAKEN = (CopyPhase.FOLLOWING, CopyPhase.THROWAWAY)
"""Nobody takes the state of such a copy between two of its blocks: the engine is let go of before they are hashed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What every copy of a worker shares."""

    engine: Engine[Any]
    turns: Turns
    courtesy: Courtesy
    copying: Blocking
    """The thread that copies and hashes, beside the engine's."""
    send: Callable[[ToServer], None]
    clock: Callable[[], float]
    """Seconds, monotonic, for block times."""
    meter: Meter
    check_blocks: int
    on_their_way: OnTheirWay
    taking: Taking = taken
    """How a block's pictures are copied and hashed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepped:
    """What the engine's thread brings back of one block."""

    notes: tuple[Note, ...]
    pictures: Pictures
    compute_s: float
    state_digest: str


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
    try:
        async with tools.turns.take(turn) as engine_thread:
            phase, changes = copy.phase, copy.inputs.get(copy.next_block)
            if changes is None or not copy.may_compute:
                return
            if phase is CopyPhase.FOLLOWING and copy.is_spare and not tools.courtesy.allows(_takes_s(copy, tools)):
                return  # somebody's block came first, and the time for this one is over
            wants_digest = copy.owes_digest or phase is CopyPhase.RETIRED
            final = copy.finals.append if copy.finals is not None else None
            hand = handing(copy)
            job = partial(
                step,
                tools.engine,
                copy.engine_session,
                changes,
                tools.clock,
                wants_digest=wants_digest,
                final=final,
                hand=hand,
                taking=tools.taking,
            )
            stepped = await engine_thread(job)
            number = copy.next_block
            is_promised = _is_shown(copy, phase) and not (stepped.pictures.coming is None and line.is_idle)
            if is_promised:
                _promise(copy, tools, stepped)
            elif phase not in _NEVER_TAKEN and (stepped.pictures.coming is not None or not line.is_idle):
                await line.empty()
                stepped = await _hashed(stepped)
        if is_promised:
            await line.put(_send_hashed(copy, number, stepped))
        else:
            await line.empty()
            _record(copy, tools, await _hashed(stepped), phase)
    finally:
        tools.courtesy.owner_let_go(copy.name)
        copy.step.end()


async def _give_account(copy: SessionCopy, tools: Tools) -> None:
    """Send the digests of the state as it is now, unless a list came while this waited for the engine.

    A copy that owns nothing any more gives none. A state that cannot be carried has none, nor has one whose paths are
    longer than a message may be.
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
    except (StateRefused, MessageError):
        return
    finally:
        copy.step.end()


def step(
    engine: Engine[Any],
    session: Any,
    changes: tuple[KeyChange, ...],
    clock: Callable[[], float],
    *,
    wants_digest: bool,
    final: Callable[[str], None] | None = None,
    hand: Callable[[bytes], None] | None = None,
    taking: Taking = taken,
) -> Stepped:
    """Step one block and take its digests. Runs in the engine's thread. Raises EngineFailed.

    ``final``: wants to hear there which leaves are final, of an engine that can say so; ``hand``: what a component of
    it is stepped on elsewhere.
    """
    begin = clock()
    with engine_trusted("step a block"):
        if hand is not None and isinstance(engine, Follows):
            block = engine.step_handing(session, changes, final or unheard, hand)
        elif final is not None and isinstance(engine, Streams):
            block = engine.step_streaming(session, changes, final)
        else:
            block = engine.step(session, changes)
        compute_s = clock() - begin
        if block.frames.nbytes > MAX_BLOB_BYTES:
            raise EngineFailed(f"a block has {block.frames.nbytes:,} bytes of pictures, more than {MAX_BLOB_BYTES:,}")
        return Stepped(
            notes=notes_of(block),
            pictures=taking(block.frames),
            compute_s=compute_s,
            state_digest=_digest(engine, session) if wants_digest else "",
        )


def handing(copy: SessionCopy) -> Callable[[bytes], None] | None:
    """Return who takes what the next block hands on, where somebody wants it. What no message can carry is dropped."""
    handed, number = copy.handed, copy.next_block
    if handed is None:
        return None

    def hand(data: bytes) -> None:
        if type(data) is bytes and len(data) <= MAX_HANDED_BYTES:
            handed.append((number, data))

    return hand


def unheard(path: str) -> None:
    """Nobody wants to know which leaves are final."""


def notes_of(block: Block) -> tuple[Note, ...]:
    """Return what an engine says of its frames as it travels. Raises an error where no message can say it.

    A world that was made up may count as far as it likes: sent, that would end the link of all the worker's worlds.
    """
    notes = [Note(y=n.pose[0], x=n.pose[1], action=n.action, number=n.number) for n in block.notes]
    return _NOTES.decode(msgspec.msgpack.encode(notes))


def _digest(engine: Engine[Any], session: Any) -> str:
    """Return the state's digest; empty, and so equal to nothing, where the state cannot be carried."""
    try:
        with engine_asked("account for its state"):
            return digest_of(engine, session)
    except StateRefused:
        return ""


def _is_shown(copy: SessionCopy, begun_as: CopyPhase) -> bool:
    """Whether what was stepped is an owner's block that nobody has seen."""
    return begun_as is copy.phase is CopyPhase.LIVE and not copy.replays


async def _hashed(stepped: Stepped) -> Stepped:
    pictures = stepped.pictures
    known = Pictures(frames=pictures.frames, frame_sha256=await pictures.hashed())
    return replace(stepped, pictures=known)


def _promise(copy: SessionCopy, tools: Tools, stepped: Stepped) -> None:
    """An owner's step has ended, and its pictures are being hashed: account for it. It is sent when they are."""
    number = copy.next_block
    copy.next_block = number + 1
    copy.ended_at = asyncio.get_running_loop().time()
    copy.outbox.promise(number)
    _account_for(copy, tools, stepped, number)


async def _send_hashed(copy: SessionCopy, number: int, stepped: Stepped) -> None:
    copy.outbox.fulfil(block_done(copy, number, await _hashed(stepped)))


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
    number = copy.next_block
    copy.next_block = number + 1
    copy.ended_at = asyncio.get_running_loop().time()
    if begun_as is CopyPhase.FOLLOWING:
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


def block_done(copy: SessionCopy, number: int, stepped: Stepped) -> BlockDone:
    """Return the message of an owner's block."""
    return BlockDone(
        session=copy.name,
        epoch=copy.epoch,
        block=number,
        frames=stepped.pictures.frames,
        frame_sha256=stepped.pictures.frame_sha256,
        notes=stepped.notes,
        compute_s=stepped.compute_s,
        state_digest=stepped.state_digest,
    )


def state_done(copy: SessionCopy, account: Account) -> StateDone:
    """Return the message of an account at this copy's boundary."""
    return StateDone(
        session=copy.name,
        epoch=copy.epoch,
        block=copy.next_block - 1,
        state_digest=account.state_digest,
        paths=account.paths,
        leaf_digests=account.leaf_digests,
    )


def check_done(copy: SessionCopy, number: int, stepped: Stepped) -> CheckDone:
    """Return the message of a retired copy's block."""
    return CheckDone(
        session=copy.name,
        attempt=copy.attempt,
        block=number,
        frame_sha256=stepped.pictures.frame_sha256,
        state_digest=stepped.state_digest,
        compute_s=stepped.compute_s,
    )


def followed(copy: SessionCopy, number: int, stepped: Stepped) -> Followed:
    """Return the message of a follower's block."""
    return Followed(
        session=copy.name,
        attempt=copy.follows,
        block=number,
        frame_sha256=stepped.pictures.frame_sha256,
        compute_s=stepped.compute_s,
    )
