"""What a destination makes ready before it says that it has reserved."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from worldmove.errors import ManifestError
from worldmove.move.attempt import Attempt
from worldmove.move.messages import Offer
from worldmove.move.reception import Reception
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_digests import prepare_key
from worldmove.state.placement import check_placement
from worldmove.state.preview import Preview
from worldmove.transport.base import Channel


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """What is ready."""

    channel: Channel | None
    """The way to the source's slot; None where nothing is pulled from there."""
    preview: Preview | None
    """What the offer has foretold; None where it has told nothing, or nothing that could be."""


async def make_ready(attempt: Attempt, offer: Offer, reception: Reception, *, is_followed: bool) -> Readiness:
    """Make ready for one offer. Raises TransportError, TimeoutError."""
    arena, layout, preview = reception.slot.arena, reception.layout, None
    await reception.slot.poison(attempt.gets_on)
    with suppress(ManifestError):  # then the boundary's own is refused, or read whole
        preview = _checked(Preview.of(layout), arena.size)
    if isinstance(arena, DeviceArena):
        await attempt.host.blocking(lambda: prepare_key(arena.kit, offer.nonce, layout.digest))
    if is_followed:
        return Readiness(channel=None, preview=preview)
    async with asyncio.timeout(offer.lease_s):
        return Readiness(channel=await reception.transport.connect(offer.ticket), preview=preview)


def _checked(preview: Preview | None, arena_bytes: int) -> Preview | None:
    """Return a preview whose storages have places of their own. Raises ManifestError."""
    if preview is not None:
        check_placement(preview.manifest, preview.places, arena_bytes)
    return preview
