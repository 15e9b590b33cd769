"""The messages of a move: typed, bounded, each with the session, attempt and epoch that it belongs to.

    controller -> source        Prepare      say what there is, and let your arena be read
    source -> controller        Prepared     layout, environment, ticket
    controller -> destination   Offer        reserve a shadow for it
    destination -> controller   Reserved | Declined
    controller -> both          Begin        a strategy's early part: make ready, and play on
    source -> destination       Base         what may be pulled before the boundary
    destination -> source       Fetched      the base is here: it is read no more
    source -> destination       Final        these leaves are final for this block
    source -> destination       Component    a part of it may be stepped over there: where a proven copy of it lies
    source -> destination       Handed       what that part is stepped on, of one block
    destination -> controller   Ready        nothing more can be done before the boundary
      -> source                              nothing else is computed there: it waits for the freeze
    controller -> source        Start        the ledger has opened the attempt: freeze at one of the next boundaries
    source -> destination       Meet         I shall freeze before this block
    source -> destination       Still        nothing writes what lies in my slot any more: it may be pulled already
    source -> destination       Boundary     the exact manifest; the bytes may be pulled
    destination -> source       Landed       the write window is closed
    source -> destination       Proof        the source's last message: from here on it is in doubt
    either -> the other         Abandon      before the proof (source) or the commit (destination)
    controller -> either        Cancel
    controller, destination     Inquire      a hint: the ledger's row has changed, ask it
      -> a holder
    either -> controller        Ended        what became of it at this end, and the times of its phases
    a holder -> controller      Gone         the ledger says that I own it, and I hold no copy

Any of them may be lost, repeated or late. Drivers drop what does not match session, attempt, epoch and
incarnation; nothing here is trusted further than that.
"""

from worldmove.move.controller_messages import (
    Begin,
    Cancel,
    Declined,
    Ended,
    Gone,
    Inquire,
    Offer,
    Prepare,
    Prepared,
    Reserved,
    Start,
)
from worldmove.move.end_messages import (
    Abandon,
    Base,
    Boundary,
    Component,
    Fetched,
    Final,
    Handed,
    Landed,
    Meet,
    Proof,
    Ready,
    Still,
)
from worldmove.move.message import CONTROLLER, MoveMessage

__all__ = [
    "CONTROLLER",
    "Abandon",
    "AnyMoveMessage",
    "Base",
    "Begin",
    "Boundary",
    "Cancel",
    "Component",
    "Declined",
    "Ended",
    "Fetched",
    "Final",
    "Gone",
    "Handed",
    "Inquire",
    "Landed",
    "Meet",
    "MoveMessage",
    "Offer",
    "Prepare",
    "Prepared",
    "Proof",
    "Ready",
    "Reserved",
    "Start",
    "Still",
]

AnyMoveMessage = (
    Prepare
    | Prepared
    | Offer
    | Reserved
    | Declined
    | Begin
    | Base
    | Fetched
    | Final
    | Component
    | Handed
    | Ready
    | Start
    | Meet
    | Still
    | Boundary
    | Landed
    | Proof
    | Abandon
    | Cancel
    | Inquire
    | Ended
    | Gone
)
