"""Whether an offered session can be taken, and where to: looked at before a byte travels."""

from dataclasses import dataclass

from worldmove.errors import ManifestError, MoveRefused
from worldmove.move.host import Host
from worldmove.move.messages import Offer
from worldmove.move.shadow_slot import ShadowSlot, Slots
from worldmove.move.strategy import Strategy, pick
from worldmove.state.environment import Environment
from worldmove.state.layout import Layout
from worldmove.transport.base import Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """What an offer is taken with."""

    layout: Layout
    transport: Transport
    slot: ShadowSlot


def receive(offer: Offer, host: Host, slots: Slots) -> Reception:
    """Take a slot for an offer. Raises MoveRefused: another environment, no such strategy or path, no slot."""
    differences = host.environment.difference(Environment(fields=offer.environment))
    if differences:
        raise MoveRefused("environment", "; ".join(str(difference) for difference in differences))
    is_followed = pick(offer.strategy) is Strategy.REPLAY
    try:
        layout = Layout.from_bytes(offer.layout)
    except ManifestError as error:
        raise MoveRefused(error.code, str(error)) from error
    transport = host.transports.get(offer.transport)
    if transport is None:
        raise MoveRefused("transport", f"{host.worker} has no path named {offer.transport}")
    slot = slots.reserve(offer.session, layout, is_followed=is_followed)
    return Reception(layout=layout, transport=transport, slot=slot)
