"""What the ledger's answers mean to an end, by where it stands."""

from worldmove.move.answers import destination_event, source_event
from worldmove.move.ledger_messages import Closed, Denied, Theirs, Yours
from worldmove.move.protocol import DestinationEvent, SourceEvent, SourcePhase

YOURS = Yours(session="s", epoch=2)
FAILED_OVER = Yours(session="s", epoch=2, replay_to=7)


def test_a_retired_copy_that_a_failover_was_given_to_replays_though_the_word_of_it_was_lost() -> None:
    assert source_event(FAILED_OVER, phase=SourcePhase.RETIRED, epoch=1) is SourceEvent.FAILOVER


def test_a_superseded_copy_hears_of_a_failover_as_a_retired_one_does() -> None:
    assert source_event(FAILED_OVER, phase=SourcePhase.SUPERSEDED, epoch=1) is SourceEvent.FAILOVER


def test_a_copy_in_doubt_takes_no_failover_for_an_answer() -> None:
    assert source_event(FAILED_OVER, phase=SourcePhase.DOUBT, epoch=1) is None


def test_a_retired_copy_that_a_reclaim_was_granted_to_thaws() -> None:
    assert source_event(YOURS, phase=SourcePhase.RETIRED, epoch=1) is SourceEvent.YOURS


def test_an_epoch_that_the_copy_has_played_in_already_says_nothing_new() -> None:
    assert source_event(YOURS, phase=SourcePhase.DOUBT, epoch=2) is None


def test_closed_is_heard_in_doubt_only() -> None:
    closed = Closed(session="s", attempt="00000001-x")
    assert source_event(closed, phase=SourcePhase.DOUBT, epoch=1) is SourceEvent.CLOSED
    assert source_event(closed, phase=SourcePhase.SUPERSEDED, epoch=1) is None


def test_a_destination_hears_whose_it_is_and_no_more() -> None:
    passed = Theirs(session="s", epoch=2, passed=True)
    assert destination_event(passed) is DestinationEvent.PASSED
    assert destination_event(YOURS) is DestinationEvent.YOURS
    assert destination_event(Denied(session="s", reason="lost")) is None
    assert destination_event(None) is None
