"""The ledger's rules: each operation's precondition, and each rule of the protocol that lives here."""

from dataclasses import replace

import pytest

from worldmove.move.ledger_rules import (
    CloseAttempt,
    Closed,
    CommitAttempt,
    Denied,
    Done,
    Facts,
    Failover,
    Lose,
    MarkShown,
    OpenAttempt,
    Opened,
    OpenedFor,
    Operation,
    Reclaim,
    Row,
    Theirs,
    Yours,
    attempt_id,
    decide,
    next_attempt,
)

A1, A2 = attempt_id(1, "aa"), attempt_id(2, "bb")

ROW = Row(session="s", owner="A", incarnation=1, epoch=1, shown=True)
OPEN = replace(ROW, attempt=OpenedFor(attempt=A1, destination="B", incarnation=1), last_attempt=A1)
CLOSED = replace(OPEN, attempt=None)
GRANTED = replace(CLOSED, owner="B", epoch=2, shown=False, granted_by=A1)

OWNER_ANSWERS = Facts(owner="A", incarnation=1, epoch=1, owner_gone=False, next_block=5)
OWNER_DEAD = replace(OWNER_ANSWERS, owner_gone=True)
OWNER_UNKNOWN = replace(OWNER_ANSWERS, owner_gone=None)
NEW_OWNER_ANSWERS = Facts(owner="B", incarnation=1, epoch=2, owner_gone=False, next_block=5)
NEW_OWNER_SUSPECTED = replace(NEW_OWNER_ANSWERS, owner_suspected=True)
NEW_OWNER_DEAD = replace(NEW_OWNER_ANSWERS, owner_gone=True)


def open_(attempt: str = A1, epoch: int = 1) -> OpenAttempt:
    return OpenAttempt(session="s", attempt=attempt, epoch=epoch, destination="B", destination_incarnation=1)


def commit(attempt: str = A1, *, boundary: int = 5, worker: str = "B", incarnation: int = 1) -> CommitAttempt:
    return CommitAttempt(
        session="s", attempt=attempt, epoch=1, boundary=boundary, worker=worker, incarnation=incarnation
    )


def close(attempt: str = A1, *, worker: str = "A", boundary: int = 5, epoch: int = 1) -> CloseAttempt:
    return CloseAttempt(session="s", attempt=attempt, epoch=epoch, worker=worker, incarnation=1, boundary=boundary)


def reclaim(*, epoch: int = 2, acknowledged: int = 5, computed: int = 5, worker: str = "A") -> Reclaim:
    return Reclaim(session="s", epoch=epoch, acknowledged=acknowledged, computed=computed, worker=worker, incarnation=1)


def failover(*, log_reaches: int = 5, epoch: int = 2) -> Failover:
    return Failover(session="s", epoch=epoch, worker="A", incarnation=1, log_reaches=log_reaches)


def lose(*, poll: int = 3, copies_found: int = 0) -> Lose:
    return Lose(session="s", epoch=2, poll=poll, copies_found=copies_found)


def reason(row: Row, operation: Operation, facts: Facts) -> str:
    """Why nothing changed."""
    after, answer = decide(row, operation, facts)
    assert isinstance(answer, Denied), answer
    assert after is row
    return answer.reason


# open


def test_a_new_attempt_opens() -> None:
    assert decide(ROW, open_(), OWNER_ANSWERS) == (OPEN, Opened(session="s", attempt=A1))


def test_one_attempt_at_a_time_is_open() -> None:
    assert reason(OPEN, open_(A2), OWNER_ANSWERS) == "attempt_open"


def test_opening_is_not_idempotent() -> None:
    assert reason(OPEN, open_(), OWNER_ANSWERS) == "attempt_open"


def test_an_attempt_once_closed_never_opens_again() -> None:
    assert reason(CLOSED, open_(), OWNER_ANSWERS) == "attempt_not_new"


def test_an_attempt_closed_before_it_opened_never_opens() -> None:
    row, _ = decide(ROW, close(A2, worker="B"), OWNER_ANSWERS)
    assert reason(row, open_(A2), OWNER_ANSWERS) == "attempt_not_new"
    assert reason(row, open_(A1), OWNER_ANSWERS) == "attempt_not_new"


def test_an_attempt_of_a_passed_epoch_does_not_open() -> None:
    assert reason(GRANTED, open_(A2, epoch=1), NEW_OWNER_ANSWERS) == "epoch_passed"


def test_no_attempt_opens_for_a_dead_owner() -> None:
    assert reason(ROW, open_(), OWNER_DEAD) == "owner_gone"


def test_an_attempt_is_newer_than_one_that_was_never_opened() -> None:
    refused = next_attempt(ROW, "zz")
    again = next_attempt(ROW, "aa", tried=refused)
    assert again > refused
    assert next_attempt(ROW, "aa", tried="") < refused  # by its salt alone it would be the older one


def test_the_next_attempt_is_always_a_new_one() -> None:
    row = ROW
    for _ in range(12):
        row, answer = decide(row, open_(next_attempt(row, "cc")), OWNER_ANSWERS)
        assert isinstance(answer, Opened)
        row, _ = decide(row, close(answer.attempt), OWNER_ANSWERS)


# commit


def test_the_open_attempt_is_granted_to_its_destination() -> None:
    assert decide(OPEN, commit(), OWNER_ANSWERS) == (GRANTED, Yours(session="s", epoch=2))


def test_the_open_attempt_is_granted_whatever_is_known_of_the_owner() -> None:
    for facts in (OWNER_DEAD, OWNER_UNKNOWN, Facts()):
        assert decide(OPEN, commit(), facts)[0] == GRANTED


def test_a_repeated_commit_gets_the_same_answer_and_no_second_epoch() -> None:
    assert decide(GRANTED, commit(), NEW_OWNER_ANSWERS) == (GRANTED, Yours(session="s", epoch=2))


def test_a_commit_after_a_close_is_refused_while_the_owner_answers() -> None:
    assert decide(CLOSED, commit(), OWNER_ANSWERS) == (CLOSED, Closed(session="s", attempt=A1))


def test_a_commit_of_an_older_attempt_does_not_touch_the_open_one() -> None:
    row = replace(CLOSED, attempt=OpenedFor(attempt=A2, destination="C", incarnation=1), last_attempt=A2)
    assert decide(row, commit(A1), OWNER_ANSWERS) == (row, Closed(session="s", attempt=A1))


def test_a_commit_of_an_attempt_that_never_was_is_not_told_to_discard() -> None:
    assert reason(ROW, commit(), OWNER_ANSWERS) == "attempt_unknown"


def test_a_commit_after_a_failover_hears_whose_it_is() -> None:
    row = replace(CLOSED, owner="C", epoch=2, granted_by="failover")
    facts = Facts(owner="C", incarnation=1, epoch=2, owner_gone=False, next_block=6)
    assert decide(row, commit(boundary=5), facts) == (row, Theirs(session="s", epoch=2, passed=True))
    unshown = replace(row, shown=False)
    assert decide(unshown, commit(boundary=6), facts) == (unshown, Theirs(session="s", epoch=2, passed=False))


def test_r4_a_closed_attempt_is_granted_all_the_same_when_the_owner_is_dead_and_the_boundary_is_next() -> None:
    assert decide(CLOSED, commit(), OWNER_DEAD) == (GRANTED, Yours(session="s", epoch=2))


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param(OWNER_UNKNOWN, id="nobody knows whether the owner lives"),
        pytest.param(replace(OWNER_ANSWERS, owner_suspected=True), id="the owner is suspected"),
        pytest.param(replace(OWNER_DEAD, next_block=None), id="the next block is not known"),
        pytest.param(replace(OWNER_DEAD, next_block=4), id="the next block is before what was acknowledged"),
        pytest.param(replace(OWNER_DEAD, epoch=0), id="the dead owner is that of another epoch"),
        pytest.param(replace(OWNER_DEAD, incarnation=2), id="the dead owner is another incarnation"),
    ],
)
def test_r4_while_one_of_its_conditions_is_unknown_a_closed_attempt_gets_no_answer(facts: Facts) -> None:
    assert decide(CLOSED, commit(), facts) == (CLOSED, None)


def test_r4_with_the_owner_dead_and_another_attempt_open_there_is_no_answer_yet() -> None:
    row = replace(CLOSED, attempt=OpenedFor(attempt=A2, destination="C", incarnation=1), last_attempt=A2)
    assert decide(row, commit(A1), OWNER_DEAD) == (row, None)


def test_r4_a_copy_behind_what_was_shown_is_not_granted() -> None:
    row, answer = decide(CLOSED, commit(boundary=4), OWNER_DEAD)
    assert (row, answer) == (CLOSED, Closed(session="s", attempt=A1))


def test_r13_a_destination_that_came_back_empty_is_not_granted_what_its_shadow_was() -> None:
    _, answer = decide(OPEN, commit(incarnation=2), OWNER_ANSWERS)
    assert not isinstance(answer, Yours)


# close


def test_r3_an_inquiry_closes_the_attempt_and_a_late_commit_is_refused() -> None:
    row, answer = decide(OPEN, close(), OWNER_ANSWERS)
    assert (row, answer) == (CLOSED, Closed(session="s", attempt=A1))
    assert decide(row, commit(), OWNER_ANSWERS) == (CLOSED, Closed(session="s", attempt=A1))


def test_closing_is_idempotent() -> None:
    assert decide(CLOSED, close(), OWNER_ANSWERS) == (CLOSED, Closed(session="s", attempt=A1))


def test_an_inquiry_about_one_attempt_leaves_another_open() -> None:
    row = replace(CLOSED, attempt=OpenedFor(attempt=A2, destination="B", incarnation=1), last_attempt=A2)
    assert decide(row, close(A1), OWNER_ANSWERS) == (row, Closed(session="s", attempt=A1))


def test_a_source_that_inquires_after_the_grant_hears_that_it_is_theirs() -> None:
    assert decide(GRANTED, close(), NEW_OWNER_ANSWERS) == (GRANTED, Theirs(session="s", epoch=2, passed=False))


def test_a_source_that_inquires_after_a_later_block_was_shown_may_retire() -> None:
    facts = replace(NEW_OWNER_ANSWERS, next_block=6)
    assert decide(GRANTED, close(), facts) == (GRANTED, Theirs(session="s", epoch=2, passed=True))


def test_passed_is_any_block_beyond_the_boundary_or_the_record_of_the_epoch() -> None:
    """Either alone is wrong: one lets the world fall back, the other leaves a holder that may not reclaim waiting."""
    shown = replace(GRANTED, shown=True)
    assert decide(shown, close(), NEW_OWNER_ANSWERS)[1] == Theirs(session="s", epoch=2, passed=True)
    assert decide(GRANTED, close(), NEW_OWNER_ANSWERS)[1] == Theirs(session="s", epoch=2, passed=False)
    unshown = replace(NEW_OWNER_ANSWERS, next_block=6)
    assert decide(GRANTED, close(), unshown)[1] == Theirs(session="s", epoch=2, passed=True)


def test_r9_an_inquiry_is_answered_though_the_next_block_is_not_known() -> None:
    facts = replace(NEW_OWNER_ANSWERS, next_block=None)
    assert decide(GRANTED, close(), facts)[1] == Theirs(session="s", epoch=2, passed=False)


def test_an_inquiry_of_who_reclaimed_hears_that_it_is_its_own_again() -> None:
    row = replace(GRANTED, owner="A", epoch=3, granted_by="reclaim")
    assert decide(row, close(), OWNER_ANSWERS)[1] == Yours(session="s", epoch=3)


# shown


def test_r7_the_first_frame_of_an_epoch_is_recorded_once() -> None:
    row, answer = decide(GRANTED, MarkShown(session="s", epoch=2), NEW_OWNER_ANSWERS)
    assert (row, answer) == (replace(GRANTED, shown=True), Done(session="s", epoch=2))
    again, _ = decide(row, MarkShown(session="s", epoch=2), NEW_OWNER_ANSWERS)
    assert again is row


def test_r6_a_frame_of_a_passed_epoch_is_not_recorded() -> None:
    assert reason(GRANTED, MarkShown(session="s", epoch=1), NEW_OWNER_ANSWERS) == "epoch_passed"


# reclaim


@pytest.mark.parametrize("facts", [NEW_OWNER_DEAD, NEW_OWNER_SUSPECTED])
def test_r5_a_holder_reclaims_from_an_owner_that_is_gone_or_suspected_and_has_shown_nothing(facts: Facts) -> None:
    row, answer = decide(GRANTED, reclaim(), facts)
    assert answer == Yours(session="s", epoch=3)
    assert (row.owner, row.epoch, row.shown) == ("A", 3, False)


def test_r5_a_reclaim_closes_what_was_open() -> None:
    row = replace(GRANTED, attempt=OpenedFor(attempt=A2, destination="C", incarnation=1), last_attempt=A2)
    assert decide(row, reclaim(), NEW_OWNER_DEAD)[0].attempt is None


def test_r5_the_loser_of_a_mere_suspicion_may_reclaim_back() -> None:
    row, _ = decide(GRANTED, reclaim(), NEW_OWNER_SUSPECTED)
    facts = Facts(owner="A", incarnation=1, epoch=3, owner_gone=True, next_block=5)
    assert decide(row, reclaim(epoch=3, worker="B"), facts)[1] == Yours(session="s", epoch=4)


@pytest.mark.parametrize(
    ("row", "facts", "asked", "why"),
    [
        pytest.param(GRANTED, NEW_OWNER_ANSWERS, reclaim(), "owner_lives", id="owner lives"),
        pytest.param(GRANTED, OWNER_DEAD, reclaim(), "owner_lives", id="another owner died"),
        pytest.param(replace(GRANTED, shown=True), NEW_OWNER_DEAD, reclaim(), "shown", id="shown"),
        pytest.param(GRANTED, NEW_OWNER_DEAD, reclaim(acknowledged=6, computed=6), "boundary", id="ahead"),
        pytest.param(GRANTED, NEW_OWNER_DEAD, reclaim(acknowledged=4, computed=4), "boundary", id="behind"),
        pytest.param(GRANTED, NEW_OWNER_DEAD, reclaim(worker="B"), "already_owner", id="own"),
    ],
)
def test_r5_a_reclaim_needs_each_of_its_conditions(row: Row, facts: Facts, asked: Reclaim, why: str) -> None:
    assert reason(row, asked, facts) == why


def test_r5_a_holder_with_an_unacknowledged_block_reclaims_when_the_next_block_is_within_its_reach() -> None:
    for acknowledged, computed in ((5, 6), (4, 5), (5, 5)):
        _, answer = decide(GRANTED, reclaim(acknowledged=acknowledged, computed=computed), NEW_OWNER_DEAD)
        assert answer == Yours(session="s", epoch=3)


def test_r5_a_reclaim_gets_no_answer_while_the_next_block_is_not_known() -> None:
    assert decide(GRANTED, reclaim(), replace(NEW_OWNER_DEAD, next_block=None)) == (GRANTED, None)


def test_r5_a_repeated_reclaim_gets_the_same_answer_and_no_second_epoch() -> None:
    row, answer = decide(GRANTED, reclaim(), NEW_OWNER_DEAD)
    assert decide(row, reclaim(), NEW_OWNER_DEAD) == (row, answer)


# failover


def test_r6_a_failover_waits_until_the_old_epoch_is_closed_at_the_gateway() -> None:
    shown = replace(GRANTED, shown=True)
    assert reason(shown, failover(), NEW_OWNER_DEAD) == "epoch_not_closed"
    assert reason(shown, failover(), replace(NEW_OWNER_DEAD, closed_epoch=1)) == "epoch_not_closed"
    row, answer = decide(shown, failover(), replace(NEW_OWNER_DEAD, closed_epoch=2))
    assert answer == Done(session="s", epoch=3)
    assert (row.owner, row.shown, row.granted_by) == ("A", False, "failover")
    assert decide(row, failover(), NEW_OWNER_DEAD) == (row, answer)


@pytest.mark.parametrize(
    ("row", "facts", "asked", "why"),
    [
        (replace(GRANTED, shown=True), NEW_OWNER_ANSWERS, failover(), "owner_lives"),
        (replace(GRANTED, attempt=OPEN.attempt), NEW_OWNER_DEAD, failover(), "attempt_open"),
        (GRANTED, NEW_OWNER_DEAD, failover(log_reaches=4), "log_too_short"),
        (GRANTED, NEW_OWNER_DEAD, failover(epoch=1), "epoch_passed"),
    ],
)
def test_a_failover_needs_each_of_its_conditions(row: Row, facts: Facts, asked: Failover, why: str) -> None:
    assert reason(row, asked, replace(facts, closed_epoch=2)) == why


@pytest.mark.parametrize("shown", [False, True])
def test_a_suspected_owner_is_replaced_whether_it_has_shown_something_or_not(*, shown: bool) -> None:
    facts = replace(NEW_OWNER_SUSPECTED, closed_epoch=2)
    assert decide(replace(GRANTED, shown=shown), failover(), facts)[1] == Done(session="s", epoch=3)


def test_a_failover_gets_no_answer_while_the_next_block_is_not_known() -> None:
    facts = replace(NEW_OWNER_DEAD, closed_epoch=2, next_block=None)
    assert decide(GRANTED, failover(), facts) == (GRANTED, None)


# lose


def test_r10_lost_is_said_when_the_owner_is_dead_and_the_newest_poll_found_no_copy() -> None:
    facts = replace(NEW_OWNER_DEAD, poll=3)
    row, answer = decide(GRANTED, lose(), facts)
    assert (row.lost, answer) == (True, Done(session="s", epoch=2))
    assert decide(row, lose(), facts) == (row, answer)


@pytest.mark.parametrize(
    ("row", "facts", "asked", "why"),
    [
        (GRANTED, NEW_OWNER_SUSPECTED, lose(), "owner_lives"),
        (GRANTED, replace(NEW_OWNER_ANSWERS, owner_gone=None), lose(), "owner_lives"),
        (replace(GRANTED, attempt=OPEN.attempt), NEW_OWNER_DEAD, lose(), "attempt_open"),
        (GRANTED, NEW_OWNER_DEAD, lose(copies_found=1), "copy_found"),
        (GRANTED, NEW_OWNER_DEAD, lose(poll=2), "poll_not_newest"),
    ],
)
def test_r10_lost_needs_each_of_its_conditions(row: Row, facts: Facts, asked: Lose, why: str) -> None:
    assert reason(row, asked, replace(facts, poll=3)) == why


@pytest.mark.parametrize("asked", [open_(A2, 2), commit(), close(), MarkShown(session="s", epoch=2), reclaim()])
def test_a_lost_session_comes_back_by_no_operation(asked: Operation) -> None:
    assert reason(replace(GRANTED, lost=True), asked, NEW_OWNER_DEAD) == "lost"


# all


@pytest.mark.parametrize("asked", [open_(A2, 2), commit(), close(), reclaim(), failover(), lose()])
def test_a_ledger_that_is_behind_its_asker_changes_nothing(asked: Operation) -> None:
    """It has lost a write; whatever it answered could be wrong, so both ends hold."""
    assert reason(replace(OPEN, epoch=0), asked, Facts(next_block=5, poll=3)) == "epoch_ahead"


def test_no_operation_but_a_grant_changes_the_owner_and_each_grant_makes_one_new_epoch() -> None:
    operations: list[Operation] = [
        open_(A2),
        commit(),
        close(),
        reclaim(),
        failover(),
        lose(),
        MarkShown(session="s", epoch=1),
    ]
    facts = [replace(OWNER_DEAD, closed_epoch=2, poll=3), replace(NEW_OWNER_DEAD, closed_epoch=2, poll=3)]
    for before in (ROW, OPEN, CLOSED, GRANTED):
        for asked in operations:
            for known in facts:
                after, answer = decide(before, asked, known)
                changed = (after.owner, after.incarnation) != (before.owner, before.incarnation)
                assert after.epoch == before.epoch + changed
                assert not changed or isinstance(answer, Yours | Done)
