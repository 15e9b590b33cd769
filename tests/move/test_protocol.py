"""Both ends' tables: every row, every absent pair, and the rules that live in them."""

from itertools import product

import pytest

from worldmove.errors import ProtocolError
from worldmove.move.protocol import (
    DESTINATION_STEPS,
    SOURCE_STEPS,
    DestinationEffect,
    DestinationEvent,
    DestinationPhase,
    SourceEffect,
    SourceEvent,
    SourcePhase,
    destination_step,
    source_step,
)

SOURCE_ROWS = """
live FROZEN START FREEZE
live SUPERSEDED REFUSED SUPERSEDE
frozen LIVE CANCEL THAW_UNASKED
frozen LIVE TIME_OUT THAW_UNASKED
frozen LIVE PASSES_DIFFER THAW_UNASKED
frozen SUPERSEDED REFUSED SUPERSEDE
frozen DOUBT READY SEND_PROOF
doubt DOUBT SILENCE SEND_PROOF
doubt DOUBT TIME_OUT INQUIRE
doubt DOUBT CANCEL INQUIRE
doubt LIVE CLOSED THAW
doubt DOUBT THEIRS HOLD
doubt LIVE YOURS THAW
doubt RETIRED PASSED CHECK
superseded SUPERSEDED TIME_OUT INQUIRE
superseded SUPERSEDED THEIRS HOLD
superseded LIVE YOURS THAW
superseded RETIRED PASSED CHECK
superseded LIVE FAILOVER REPLAY
retired LIVE FAILOVER REPLAY
retired RETIRED TIME_OUT INQUIRE
retired LIVE YOURS THAW
retired NONE DONE FREE
""".strip().splitlines()

DESTINATION_ROWS = """
none SHADOW OFFER RESERVE
shadow QUARANTINE ABANDON GIVE_UP
shadow QUARANTINE TIME_OUT GIVE_UP
shadow QUARANTINE MISMATCH GIVE_UP
shadow QUARANTINE CLOSED GIVE_UP
shadow VERIFIED MATCHED NOTHING
verified DOUBT ALWAYS COMMIT
doubt DOUBT TIME_OUT COMMIT
doubt LIVE YOURS PROMOTE
doubt QUARANTINE CLOSED DISCARD
doubt DOUBT THEIRS HOLD
doubt RETIRED PASSED RETIRE
quarantine NONE RELEASED RELEASE
quarantine QUARANTINE YOURS ANSWER_GONE
none NONE YOURS ANSWER_GONE
none NONE DIED NOTHING
shadow NONE DIED NOTHING
verified NONE DIED NOTHING
doubt NONE DIED NOTHING
live NONE DIED NOTHING
retired NONE DIED NOTHING
quarantine NONE DIED NOTHING
""".strip().splitlines()

DESTINATION_GIVES_UP = (DestinationEffect.GIVE_UP, DestinationEffect.DISCARD)


@pytest.mark.parametrize("line", SOURCE_ROWS)
def test_the_source_steps_as_this_row_says(line: str) -> None:
    before, after, event, effect = line.split()
    expected = (SourcePhase[after], SourceEffect[effect])
    assert source_step(SourcePhase(before), SourceEvent[event]) == expected


@pytest.mark.parametrize("line", DESTINATION_ROWS)
def test_the_destination_steps_as_this_row_says(line: str) -> None:
    before, after, event, effect = line.split()
    expected = (DestinationPhase[after], DestinationEffect[effect])
    assert destination_step(DestinationPhase(before), DestinationEvent[event]) == expected


def test_no_row_is_missing_above() -> None:
    assert (len(SOURCE_STEPS), len(DESTINATION_STEPS)) == (len(SOURCE_ROWS), len(DESTINATION_ROWS))


def test_every_absent_pair_is_an_error_that_names_it() -> None:
    source = [pair for pair in product(SourcePhase, SourceEvent) if pair not in SOURCE_STEPS]
    destination = [pair for pair in product(DestinationPhase, DestinationEvent) if pair not in DESTINATION_STEPS]
    for phase, event in source:
        with pytest.raises(ProtocolError, match=f"source does not expect {event.name} while {phase.value}"):
            source_step(phase, event)
    for at, what in destination:
        with pytest.raises(ProtocolError, match=f"destination does not expect {what.name} while {at.value}"):
            destination_step(at, what)


def test_an_ended_source_accepts_nothing() -> None:
    assert [pair for pair in SOURCE_STEPS if pair[0] is SourcePhase.NONE] == []


def test_every_phase_can_be_reached_from_the_first() -> None:
    for steps, first, phases in (
        (SOURCE_STEPS, SourcePhase.LIVE, SourcePhase),
        (DESTINATION_STEPS, DestinationPhase.NONE, DestinationPhase),
    ):
        reached = {first}
        for _ in phases:
            reached |= {after for (before, _), (after, _) in steps.items() if before in reached}
        assert reached == set(phases)


def test_every_phase_of_a_source_that_still_has_a_copy_survives_silence() -> None:
    waiting = [SourcePhase.FROZEN, SourcePhase.DOUBT, SourcePhase.SUPERSEDED, SourcePhase.RETIRED]
    assert [phase for phase in waiting if (phase, SourceEvent.TIME_OUT) not in SOURCE_STEPS] == []


def test_r1_from_its_proof_on_the_source_thaws_only_on_the_ledgers_answer() -> None:
    thawing = {
        event
        for (phase, event), (after, _) in SOURCE_STEPS.items()
        if phase is SourcePhase.DOUBT and after is SourcePhase.LIVE
    }
    assert thawing == {SourceEvent.CLOSED, SourceEvent.YOURS}


def test_r1_a_cancel_after_the_proof_is_an_inquiry() -> None:
    assert source_step(SourcePhase.DOUBT, SourceEvent.CANCEL) == (SourcePhase.DOUBT, SourceEffect.INQUIRE)


def test_r2_the_proof_is_sent_only_once_all_that_it_waits_for_is_there() -> None:
    ways = [pair for pair, (_, effect) in SOURCE_STEPS.items() if effect is SourceEffect.SEND_PROOF]
    assert ways == [(SourcePhase.FROZEN, SourceEvent.READY), (SourcePhase.DOUBT, SourceEvent.SILENCE)]


def test_r3_a_destination_in_doubt_repeats_its_commit_and_never_closes() -> None:
    effects = [effect for (phase, _), (_, effect) in DESTINATION_STEPS.items() if phase is DestinationPhase.DOUBT]
    assert DestinationEffect.GIVE_UP not in effects
    assert destination_step(DestinationPhase.DOUBT, DestinationEvent.TIME_OUT)[1] is DestinationEffect.COMMIT


def test_r5_a_refused_live_end_keeps_its_copy_and_may_come_back() -> None:
    phase, effect = source_step(SourcePhase.LIVE, SourceEvent.REFUSED)
    assert (phase, effect) == (SourcePhase.SUPERSEDED, SourceEffect.SUPERSEDE)
    assert source_step(phase, SourceEvent.YOURS)[0] is SourcePhase.LIVE


def test_r8_a_slot_is_freed_only_by_a_retired_copy_after_a_block_past_its_boundary_left() -> None:
    ways = [pair for pair, (_, effect) in SOURCE_STEPS.items() if effect is SourceEffect.FREE]
    assert ways == [(SourcePhase.RETIRED, SourceEvent.DONE)]


def test_r10_time_frees_a_shadow_only_before_it_asked_for_the_commit() -> None:
    freeing = [
        phase
        for (phase, event), (_, effect) in DESTINATION_STEPS.items()
        if event is DestinationEvent.TIME_OUT and effect in DESTINATION_GIVES_UP
    ]
    assert freeing == [DestinationPhase.SHADOW]


def test_r11_a_discarded_slot_is_given_back_only_when_the_transport_has_let_go() -> None:
    given_up = {after for _, (after, effect) in DESTINATION_STEPS.items() if effect in DESTINATION_GIVES_UP}
    assert given_up == {DestinationPhase.QUARANTINE}
    ways = [pair for pair, (_, effect) in DESTINATION_STEPS.items() if effect is DestinationEffect.RELEASE]
    assert ways == [(DestinationPhase.QUARANTINE, DestinationEvent.RELEASED)]


def test_r13_who_is_told_that_it_owns_what_it_discarded_answers_gone() -> None:
    for phase in (DestinationPhase.NONE, DestinationPhase.QUARANTINE):
        assert destination_step(phase, DestinationEvent.YOURS) == (phase, DestinationEffect.ANSWER_GONE)


def test_nothing_is_promoted_that_was_not_verified() -> None:
    into_doubt = {before for (before, _), (after, _) in DESTINATION_STEPS.items() if after is DestinationPhase.DOUBT}
    assert into_doubt == {DestinationPhase.VERIFIED, DestinationPhase.DOUBT}
    promoting = {
        before for (before, _), (_, effect) in DESTINATION_STEPS.items() if effect is DestinationEffect.PROMOTE
    }
    assert promoting == {DestinationPhase.DOUBT}
