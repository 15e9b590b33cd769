"""Who is to blame where a destination has other bytes than were frozen: the source looks at its memory once more.

Both passes were equal, or there would have been no proof. They read what the session is played from, when each of them
came to it. What the destination has had of it is older, and can be read again here:

    in the slot     what an engine binds anew is copied there by the freeze, and pulled from there
    rows as told    of rows that the destination was told it holds already, nothing was pulled

Where one of them is not what was proven, or the memory is another by now, the engine has written after its block
boundary, and no path is to blame. What is written between a leaf's pull and the first pass over it, and never again,
leaves no trace here: that is blamed on the path. Nothing is played meanwhile, and the destination has given up by then.
"""

import asyncio
from contextlib import suppress

from worldmove.errors import WorldMoveError
from worldmove.move.attempt import Attempt
from worldmove.move.source_copy import Frozen
from worldmove.move.told_rows import ToldRows
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.landing import landed
from worldmove.state.proof import MoveProof

AT_MOST_S = 1.0
"""Whoever plays waits for it."""


class Inquest:
    """Into one attempt, whose proof was sent."""

    def __init__(
        self, *, attempt: Attempt, frozen: Frozen, proof: MoveProof, nonce: bytes, layout_digest: bytes
    ) -> None:
        self._attempt = attempt
        self._frozen = frozen
        self._proof = proof
        self._nonce = nonce
        self._layout_digest = layout_digest

    async def written(self, arena: AnyArena, rows: ToldRows | None) -> tuple[str, ...]:
        """Return the leaves that the engine has written after its boundary; none where no trace of that is here."""
        found: dict[str, None] = {}
        with suppress(WorldMoveError, TimeoutError), self._attempt.times.phase("inquest"):
            async with asyncio.timeout(AT_MOST_S):
                found |= dict.fromkeys(await self._differing(self._frozen.capture))
                if self._frozen.placement:
                    found |= dict.fromkeys(await self._differing(await self._lying_in(arena)))
                if rows is not None:
                    found |= dict.fromkeys(await self._attempt.host.blocking(rows.written))
        return tuple(found)

    async def _lying_in(self, arena: AnyArena) -> Capture:
        """Return the state as it lies where it was pulled from."""
        manifest, placement = self._frozen.capture.manifest, self._frozen.placement
        return await self._attempt.host.blocking(lambda: landed(manifest, placement, arena))

    async def _differing(self, capture: Capture) -> list[str]:
        found = await self._attempt.prove(
            lambda: capture,
            boundary=self._frozen.block,
            nonce=self._nonce,
            layout_digest=self._layout_digest,
        )
        differences = self._proof.compare(found, capture.manifest)
        return [path for difference in differences for path in difference.paths]
