"""What a source tells of its boundary: that it is near, what lies still, and what was frozen there."""

import asyncio

from worldmove.errors import StateRefused
from worldmove.limits import MAX_BLOB_BYTES
from worldmove.move.attempt import Attempt, GaveUpError
from worldmove.move.messages import Boundary, Meet, Still
from worldmove.move.protocol import SourceEvent
from worldmove.move.source_copy import Frozen, SourceCopy
from worldmove.move.streaming import tell_final, tell_handed
from worldmove.move.told_rows import Said, ToldRows
from worldmove.state.placement import Placement
from worldmove.state.preview import tell


class ToldBoundary:
    """One attempt's."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        copy: SourceCopy,
        rows: ToldRows | None,
        resend_s: float,
        is_followed: bool,
        is_streamed: bool,
        hands: bool,
    ) -> None:
        """See ``Outgoing``. ``resend_s``: silence after which what was frozen is told again."""
        self._attempt = attempt
        self._copy = copy
        self._rows = rows
        self._resend_s = resend_s
        self._is_followed = is_followed
        self._is_streamed = is_streamed
        self._hands = hands
        self._said_still = False

    def meet(self, block: int) -> None:
        """Tell a follower the block before which it is met."""
        self._attempt.send(self._attempt.peer, Meet, block=block)

    async def near(self) -> None:
        """Say that the freeze is near.

        The session stands still meanwhile: what the destination is told of it now, it can bring over before the pause.
        """
        block, said = self._copy.reach[1], Said()
        if self._rows is not None:
            with self._attempt.times.phase("rows_at_rest"):
                said = await self._rows.at_rest()
        if self._is_streamed:
            tell_final(self._attempt, self._copy)  # what is told after the rest is of a later block
        if self._hands:
            tell_handed(self._attempt, self._copy)
        rolled = dict(said.rolled) if self._is_streamed else {}  # others are told of no leaf of the next block
        peer = self._attempt.peer
        self._attempt.send(peer, Meet, block=block, rows=said.rows, placement=said.placement, rolled=rolled)

    def still(self) -> None:
        """Say that what is known to be there may be pulled before the boundary is told."""
        self._said_still = True
        self._attempt.send(self._attempt.peer, Still)

    async def frozen(self, frozen: Frozen, *, heard: asyncio.Event, landed: asyncio.Event) -> None:
        """Say that the bytes may be pulled, again if need be, until the destination has closed its window: ``landed``.

        ``heard``: it has answered what it was told at rest.
        """
        manifest, placement = self._told_of(frozen)
        said, plain = await self._said(frozen, heard)
        with self._attempt.times.phase("boundary"):
            while True:
                self._attempt.send(
                    self._attempt.peer,
                    Boundary,
                    block=frozen.block,
                    manifest=manifest,
                    placement=placement,
                    rows=said.rows,
                    changed=said.changed,
                    row_bytes=None if self._rows is None else self._rows.row_bytes,
                    plain=plain,
                    rolled=dict(frozen.rolled) if said.rows and said.changed is None else {},
                    moved=frozen.moved if self._said_still else (),
                )
                try:
                    async with asyncio.timeout(self._resend_s):
                        await landed.wait()
                        return
                except TimeoutError:
                    continue

    def _told_of(self, frozen: Frozen) -> tuple[bytes, Placement]:
        """Return what the boundary says of the manifest and of the places, to whom knows the offer, or the base."""
        known = None if self._is_followed else frozen.offered
        manifest, placement = tell(known, frozen.capture.manifest, frozen.placement)
        if len(manifest) > MAX_BLOB_BYTES:
            detail = f"its manifest has {len(manifest):,} bytes, more than a message may"
            raise GaveUpError(SourceEvent.CANCEL, "state_too_large", detail)
        return manifest, placement

    async def _said(self, frozen: Frozen, heard: asyncio.Event) -> tuple[Said, str]:
        """Return what is told of the frozen rows, and why nothing is, where that is so."""
        if self._rows is None:
            return Said(), ""
        try:
            with self._attempt.times.phase("rows"):
                return await self._rows.at_boundary(frozen, is_heard=heard.is_set()), ""
        except StateRefused as error:
            return Said(), str(error)
