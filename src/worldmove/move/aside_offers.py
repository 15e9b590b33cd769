"""How a source tells of what it has copied aside: again and again, until it was fetched."""

import asyncio

from worldmove.errors import MoveRefused
from worldmove.limits import MAX_BLOB_BYTES
from worldmove.move.attempt import Attempt
from worldmove.move.messages import Base, Component
from worldmove.move.proof_fields import fields_of
from worldmove.move.source_copy import Aside
from worldmove.state.proof import MoveProof

MOST_SILENCE_S = 10.0
"""Between two offers of the same copy, however long its fetching takes."""


async def offer_until(
    fetched: asyncio.Event,
    attempt: Attempt,
    kind: type[Base] | type[Component],
    *,
    aside: Aside,
    proof: MoveProof,
    ticket: bytes,
    resend_s: float,
) -> None:
    """Return once it was fetched. ``resend_s``: silence between two offers, at first. Raises MoveRefused."""
    manifest = aside.manifest.to_bytes()
    if len(manifest) > MAX_BLOB_BYTES:
        raise MoveRefused("state_too_large", f"its manifest has {len(manifest):,} bytes, more than a message may")
    wait_s = resend_s
    while not fetched.is_set():
        attempt.send(
            attempt.peer, kind, manifest=manifest, placement=aside.placement, ticket=ticket, **fields_of(proof)
        )
        try:
            async with asyncio.timeout(wait_s):
                await fetched.wait()
        except TimeoutError:
            wait_s = min(2 * wait_s, MOST_SILENCE_S)
