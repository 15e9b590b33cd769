"""Both ends of a move as tables: what happened -> where that end now stands, and the one thing that it must do.

Rules of this file:

1. Nothing here waits, sends or measures. An event is a fact that a driver has observed, and silence is one;
   an effect is an order to the driver.
2. A pair that is not in a table is a bug, never weather: drivers filter by session, attempt, epoch and
   incarnation before they ask. It raises, and the phase stays as it was.
3. From the source's proof on, only the ledger decides at the source; from the destination's first commit on,
   only the ledger decides there. No time-out leaves *doubt*.
4. The tables came out of an exhaustive exploration, and several plausible variants of single rows did not
   survive it. No row is changed without running it again.

a is the attempt and e the epoch of its source; closed(a), yours(e') and theirs(e') are the ledger's answers,
and *passed* means that a block beyond this end's boundary has been shown.
"""

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from worldmove.errors import ProtocolError


class SourcePhase(Enum):
    """Where a copy that owns a session, or did, stands."""

    LIVE = "live"
    FROZEN = "frozen"
    DOUBT = "doubt"
    SUPERSEDED = "superseded"
    RETIRED = "retired"
    NONE = "none"


class SourceEvent(Enum):
    START = "start(a), a newer than any seen, same e"
    REFUSED = "a frame was refused: the row has e' > e"
    CANCEL = "cancel, or the destination gave up"
    TIME_OUT = "time-out (in doubt: or word that the row has changed)"
    PASSES_DIFFER = "the two passes differ"
    READY = "transfer done, passes agree, all frames acknowledged"
    SILENCE = "no word since the proof was sent"
    CLOSED = "closed(a), same e"
    THEIRS = "theirs(e'), not passed"
    YOURS = "yours(e')"
    PASSED = "theirs(e'), passed"
    FAILOVER = "yours(e') by a failover"
    DONE = "a block past the boundary has left the gateway, and the check is done"


class SourceEffect(Enum):
    FREEZE = "stop at the block boundary, quiesce, send the boundary, the frames again, and take both passes"
    SUPERSEDE = "stop computing, keep the copy, inquire"
    THAW_UNASKED = "thaw: no proof was sent; close(a) beside it"
    SEND_PROOF = "send the proof"
    INQUIRE = "inquire, which closes a"
    THAW = "thaw, send the unacknowledged frames again"
    HOLD = "hold; may ask reclaim(e', boundary)"
    CHECK = "step the check blocks"
    REPLAY = "replay the log to the next block, then thaw"
    FREE = "free the slot"


class DestinationPhase(Enum):
    """Where a copy that comes into being stands."""

    NONE = "none"
    SHADOW = "shadow"
    VERIFIED = "verified"
    DOUBT = "doubt"
    LIVE = "live"
    RETIRED = "retired"
    QUARANTINE = "quarantine"


class DestinationEvent(Enum):
    OFFER = "offer(a), slot free, admitted"
    ABANDON = "either end or the controller gave up, or the path failed"
    TIME_OUT = "time-out"
    MISMATCH = "what is installed is not what was frozen"
    MATCHED = "proof(a), window closed, installed bytes match"
    ALWAYS = "always: there is no other way out"
    CLOSED = "closed(a)"
    YOURS = "yours(e')"
    THEIRS = "theirs(e'), not passed"
    PASSED = "theirs(e'), passed"
    RELEASED = "the transport's handle is released"
    DIED = "the process dies"


class DestinationEffect(Enum):
    RESERVE = "poison, open the write window"
    GIVE_UP = "close(a); discard"
    NOTHING = "nothing"
    COMMIT = "commit(a, boundary)"
    PROMOTE = "promote"
    DISCARD = "discard"
    HOLD = "hold; may ask reclaim(e', boundary)"
    RETIRE = "keep it as a copy of last resort"
    RELEASE = "give the slot back"
    ANSWER_GONE = "answer gone(e')"


SourceSteps = Mapping[tuple[SourcePhase, SourceEvent], tuple[SourcePhase, SourceEffect]]
DestinationSteps = Mapping[tuple[DestinationPhase, DestinationEvent], tuple[DestinationPhase, DestinationEffect]]

_S, _E, _F = SourcePhase, SourceEvent, SourceEffect

SOURCE_STEPS: SourceSteps = {
    (_S.LIVE, _E.START): (_S.FROZEN, _F.FREEZE),
    (_S.LIVE, _E.REFUSED): (_S.SUPERSEDED, _F.SUPERSEDE),
    # No proof was sent, so nobody can have asked for the commit: it may thaw by itself.
    (_S.FROZEN, _E.CANCEL): (_S.LIVE, _F.THAW_UNASKED),
    (_S.FROZEN, _E.TIME_OUT): (_S.LIVE, _F.THAW_UNASKED),
    (_S.FROZEN, _E.PASSES_DIFFER): (_S.LIVE, _F.THAW_UNASKED),
    (_S.FROZEN, _E.REFUSED): (_S.SUPERSEDED, _F.SUPERSEDE),
    (_S.FROZEN, _E.READY): (_S.DOUBT, _F.SEND_PROOF),
    # Silence after the proof is a doubt, not a failure: the destination may already own the session.
    (_S.DOUBT, _E.SILENCE): (_S.DOUBT, _F.SEND_PROOF),
    (_S.DOUBT, _E.TIME_OUT): (_S.DOUBT, _F.INQUIRE),
    (_S.DOUBT, _E.CANCEL): (_S.DOUBT, _F.INQUIRE),
    (_S.DOUBT, _E.CLOSED): (_S.LIVE, _F.THAW),
    (_S.DOUBT, _E.THEIRS): (_S.DOUBT, _F.HOLD),
    (_S.DOUBT, _E.YOURS): (_S.LIVE, _F.THAW),
    (_S.DOUBT, _E.PASSED): (_S.RETIRED, _F.CHECK),
    (_S.SUPERSEDED, _E.TIME_OUT): (_S.SUPERSEDED, _F.INQUIRE),
    (_S.SUPERSEDED, _E.THEIRS): (_S.SUPERSEDED, _F.HOLD),
    (_S.SUPERSEDED, _E.YOURS): (_S.LIVE, _F.THAW),
    (_S.SUPERSEDED, _E.PASSED): (_S.RETIRED, _F.CHECK),
    # A failover was given to it a second time: old word of an emptiness before its copy came late.
    (_S.SUPERSEDED, _E.FAILOVER): (_S.LIVE, _F.REPLAY),
    (_S.RETIRED, _E.FAILOVER): (_S.LIVE, _F.REPLAY),
    (_S.RETIRED, _E.TIME_OUT): (_S.RETIRED, _F.INQUIRE),
    (_S.RETIRED, _E.YOURS): (_S.LIVE, _F.THAW),
    (_S.RETIRED, _E.DONE): (_S.NONE, _F.FREE),
}

_D, _G, _H = DestinationPhase, DestinationEvent, DestinationEffect

DESTINATION_STEPS: DestinationSteps = {
    (_D.NONE, _G.OFFER): (_D.SHADOW, _H.RESERVE),
    (_D.SHADOW, _G.ABANDON): (_D.QUARANTINE, _H.GIVE_UP),
    (_D.SHADOW, _G.TIME_OUT): (_D.QUARANTINE, _H.GIVE_UP),
    (_D.SHADOW, _G.MISMATCH): (_D.QUARANTINE, _H.GIVE_UP),
    (_D.SHADOW, _G.CLOSED): (_D.QUARANTINE, _H.GIVE_UP),
    (_D.SHADOW, _G.MATCHED): (_D.VERIFIED, _H.NOTHING),
    (_D.VERIFIED, _G.ALWAYS): (_D.DOUBT, _H.COMMIT),
    # It never inquires here, for an inquiry closes, and never frees by time: this may be the only copy.
    (_D.DOUBT, _G.TIME_OUT): (_D.DOUBT, _H.COMMIT),
    (_D.DOUBT, _G.YOURS): (_D.LIVE, _H.PROMOTE),
    (_D.DOUBT, _G.CLOSED): (_D.QUARANTINE, _H.DISCARD),
    (_D.DOUBT, _G.THEIRS): (_D.DOUBT, _H.HOLD),
    (_D.DOUBT, _G.PASSED): (_D.RETIRED, _H.RETIRE),
    (_D.QUARANTINE, _G.RELEASED): (_D.NONE, _H.RELEASE),
    (_D.QUARANTINE, _G.YOURS): (_D.QUARANTINE, _H.ANSWER_GONE),
    (_D.NONE, _G.YOURS): (_D.NONE, _H.ANSWER_GONE),
    # All of its windows die with it, and it comes back under the next incarnation.
    **{(phase, _G.DIED): (_D.NONE, _H.NOTHING) for phase in DestinationPhase},
}


def source_step(phase: SourcePhase, event: SourceEvent) -> tuple[SourcePhase, SourceEffect]:
    """Return the source's next phase and the one thing to do now. Raises ProtocolError."""
    return _look_up(SOURCE_STEPS, phase, event, "source")


def destination_step(phase: DestinationPhase, event: DestinationEvent) -> tuple[DestinationPhase, DestinationEffect]:
    """Return the destination's next phase and the one thing to do now. Raises ProtocolError."""
    return _look_up(DESTINATION_STEPS, phase, event, "destination")


PhaseT = TypeVar("PhaseT", bound=Enum)
EventT = TypeVar("EventT", bound=Enum)
EffectT = TypeVar("EffectT", bound=Enum)


def _look_up(
    steps: Mapping[tuple[PhaseT, EventT], tuple[PhaseT, EffectT]], phase: PhaseT, event: EventT, end: str
) -> tuple[PhaseT, EffectT]:
    if (phase, event) not in steps:
        raise ProtocolError(f"the {end} does not expect {event.name} while {phase.value}")
    return steps[phase, event]
