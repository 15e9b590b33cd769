"""What an answer of the ledger means to an end of a move, in the words of its table: pure.

None is no answer, or none that the end can use where it stands: it asks again.
"""

from worldmove.move.ledger_messages import Answer, Closed, Theirs, Yours
from worldmove.move.protocol import DestinationEvent, SourceEvent, SourcePhase

REPLAYS = (SourcePhase.SUPERSEDED, SourcePhase.RETIRED)
"""Where a copy can be given its session by a failover. To any other, such a grant is no answer."""


def source_event(answer: Answer | None, *, phase: SourcePhase, epoch: int) -> SourceEvent | None:
    """Name an answer to a source that stands in ``phase`` with a copy of ``epoch``."""
    match answer:
        case Closed() if phase is SourcePhase.DOUBT:
            return SourceEvent.CLOSED
        case Yours(epoch=granted, replay_to=None) if granted > epoch:
            return SourceEvent.YOURS
        case Yours(epoch=granted) if granted > epoch and phase in REPLAYS:
            return SourceEvent.FAILOVER
        case Theirs(passed=passed) if phase is not SourcePhase.RETIRED:
            return SourceEvent.PASSED if passed else SourceEvent.THEIRS
    return None


def destination_event(answer: Answer | None) -> DestinationEvent | None:
    """Name an answer to a destination that is in doubt."""
    match answer:
        case Yours():
            return DestinationEvent.YOURS
        case Closed():
            return DestinationEvent.CLOSED
        case Theirs(passed=passed):
            return DestinationEvent.PASSED if passed else DestinationEvent.THEIRS
    return None
