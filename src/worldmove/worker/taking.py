"""Snapshots that a worker gives away of sessions that it plays, for another worker to keep."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from worldmove.errors import MoveRefused, WorldMoveError
from worldmove.move.device_path import export_slot
from worldmove.move.host import Host
from worldmove.move.sayable import said
from worldmove.state.proof import MoveProof, prove
from worldmove.worker.copies import CopyTable
from worldmove.worker.messages import NotDone, SnapshotFacts, SnapshotTaken, TakeSnapshot
from worldmove.worker.session import CopyPhase, SessionCopy
from worldmove.worker.snapshot import Snapshot

LOOK_S = 1.0
ATTEMPT = "snapshot"
"""What stands for an attempt in the proof of a snapshot that is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """A snapshot that may be read."""

    snapshot: Snapshot
    transport: str
    ticket: bytes


class Snapshots:
    """All that one worker has given away and not taken back, by the number of the request."""

    def __init__(self, *, host: Host, copies: CopyTable, gets_on: Callable[[], None]) -> None:
        """``gets_on`` hears of each piece that was digested, in whichever thread."""
        self._host = host
        self._gets_on = gets_on
        self._copies = copies
        self._given: dict[int, _Given] = {}
        self._links = 0
        """How many links there were before this one: what was begun over an earlier one, nobody waits for."""

    async def take(self, asked: TakeSnapshot) -> SnapshotTaken | NotDone:
        """Copy a session's state aside and let it be read, once every block before it has left the gateway.

        What cannot be met is answered, and leaves nothing behind; cancelled, it is given back by ``drop``.
        """
        try:
            return await self._taken(asked)
        except MoveRefused as error:
            return NotDone(session=asked.session, request=asked.request, code=error.reason, message=said(error.detail))
        except WorldMoveError as error:
            return NotDone(session=asked.session, request=asked.request, code=error.code, message=said(str(error)))

    async def drop(self, request: int) -> None:
        """Nobody reads it any more: its slot is free. Idempotent."""
        given = self._given.pop(request, None)
        if given is not None:
            await self._take_back((given,))

    def begin_anew(self) -> Coroutine[Any, Any, None]:
        """There is a new link: nobody waits for what was begun. Run what is returned."""
        self._links += 1
        given, self._given = self._given, {}
        return self._take_back(tuple(given.values()))

    async def _take_back(self, given: tuple[_Given, ...]) -> None:
        """Free every slot, also where a path fails at letting go of one: whoever still reads finds another proof."""
        async with AsyncExitStack() as all_of_them:
            for one in given:
                all_of_them.callback(one.snapshot.free)
                all_of_them.push_async_callback(self._host.transports[one.transport].withdraw, one.ticket)

    async def _taken(self, asked: TakeSnapshot) -> SnapshotTaken:
        copy = self._copies.get(asked.session)
        if copy is None or copy.phase is not CopyPhase.LIVE:
            where = "not here" if copy is None else f"{copy.phase.value} here"
            raise MoveRefused("moving", f"The session {asked.session} is {where}: it is moving.")
        copy.stays, links = True, self._links
        snapshot = await self._copies.snapshot(copy)
        epoch = copy.epoch
        try:
            proof = await self._proven(snapshot, epoch, asked.nonce)
            await self._left(copy, snapshot.block, links)
            given = await self._let_be_read(snapshot, asked)
        except BaseException:
            snapshot.free()
            raise
        if self._links != links:
            await self._take_back((given,))
            raise MoveRefused("link_lost", "the link was made anew, and nobody waits for this snapshot")
        self._given[asked.request] = given
        facts = SnapshotFacts(
            epoch=epoch,
            block=snapshot.block,
            manifest=snapshot.manifest.to_bytes(),
            placement=snapshot.placement,
            ticket=given.ticket,
            groups=proof.groups,
        )
        return SnapshotTaken(session=asked.session, request=asked.request, snapshot=facts)

    async def _let_be_read(self, snapshot: Snapshot, asked: TakeSnapshot) -> _Given:
        transport = self._host.transports.get(asked.transport)
        if transport is None:
            raise MoveRefused("transport", f"{self._host.worker} has no path named {asked.transport}")
        ticket = await export_slot(transport, snapshot.arena)
        return _Given(snapshot=snapshot, transport=asked.transport, ticket=ticket)

    async def _proven(self, snapshot: Snapshot, epoch: int, nonce: bytes) -> MoveProof:
        return await self._host.blocking(
            lambda: prove(
                snapshot.capture(),
                self._host.digester,
                attempt=ATTEMPT,
                epoch=epoch,
                boundary=snapshot.block,
                nonce=nonce,
                layout_digest=snapshot.manifest.digest,
                gets_on=self._gets_on,
            )
        )

    async def _left(self, copy: SessionCopy, block: int, links: int) -> None:
        """Return once every block before this one has left: a copy that is ahead of what was shown could not go on."""
        while self._links == links and self._copies.get(copy.name) is copy:
            try:
                async with asyncio.timeout(LOOK_S):
                    return await copy.outbox.acknowledged(block)
            except TimeoutError:
                continue
        raise MoveRefused("moving", f"The session {copy.name} is played here no more, or nobody waits for this.")
