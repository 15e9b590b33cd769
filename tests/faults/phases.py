"""Every point of a move, by what either end is worth to the session when it stands there."""

from tests.faults.points import point_of
from worldmove.move.protocol import DestinationEffect as G
from worldmove.move.protocol import DestinationPhase as D
from worldmove.move.protocol import SourceEffect as F
from worldmove.move.protocol import SourcePhase as S
from worldmove.move.strategy import Strategy

ONLY_COPY = (
    "heard: Prepare",
    "sent: Prepared",
    "heard: Start",
    point_of("source", S.FROZEN, F.FREEZE),
    "at: acknowledge",
    "at: digest",
    "sent: Boundary",
    "heard: Landed",
    "at: second_digest",
    point_of("source", S.DOUBT, F.SEND_PROOF),
)
"""Points at which the source has the only copy that is complete."""
PROVEN = (
    "sent: Proof",
    "heard: Inquire",
    point_of("source", S.DOUBT, F.INQUIRE),
    "heard: Theirs",
    point_of("source", S.RETIRED, F.CHECK),
    "at: state_digest",
    "sent: CheckDone",
    point_of("source", S.NONE, F.FREE),
)
"""Points at which the destination can go on without the source."""
UNPROVEN = (
    "heard: Offer",
    point_of("destination", D.SHADOW, G.RESERVE),
    "sent: Reserved",
    "heard: Boundary",
    "at: land",
    "sent: Landed",
    "at: install",
    "at: verify",
    "at: wait_proof",
    "heard: Proof",
    point_of("destination", D.VERIFIED, G.NOTHING),
    point_of("destination", D.DOUBT, G.COMMIT),
    "at: commit",
)
"""Points at which the destination has not asked for the commit."""
GRANTED = (
    "sent: CommitAttempt",
    "heard: Yours",
    point_of("destination", D.LIVE, G.PROMOTE),
    "at: promote",
    "sent: Inquire",
    "engine: in mid-step",
    "sent: BlockDone",
)
"""Points at which it has."""

EARLY_SOURCE = {
    Strategy.REPLAY: ("heard: Begin", "at: snapshot_digest", "sent: Base", "heard: Fetched", "at: meet", "sent: Meet"),
    Strategy.PRE_COPY: ("heard: Begin", "sent: Base", "at: rows"),
    Strategy.STREAMING: ("heard: Begin", "sent: Base", "at: rows"),
}
"""Points of a source before the boundary, by what is done there; a boundary copy does nothing."""
EARLY_DESTINATION = {
    Strategy.REPLAY: ("heard: Base", "at: fetch", "at: install_base", "at: catch_up", "sent: Ready", "at: halt"),
    Strategy.PRE_COPY: ("heard: Base", "at: rounds", "sent: Ready", "at: reconcile", "at: moves"),
    Strategy.STREAMING: ("heard: Base", "at: rounds", "sent: Ready", "at: reconcile", "at: moves"),
}
KEEPING = ("heard: Expect", "heard: Keep", "sent: Kept")
"""Points of a worker that keeps a snapshot; it comes to all but the first again and again."""
SOURCE_POINTS = ONLY_COPY + PROVEN
DESTINATION_POINTS = UNPROVEN + GRANTED
