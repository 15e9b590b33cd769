"""The gap of a move: the worst lateness that who watches met in it."""

from worldmove.fleet.reports import Outcome
from worldmove.serve.gap import Gap


def test_the_gap_is_the_worst_lateness_up_to_the_first_block_of_the_new_epoch() -> None:
    gap = Gap(attempt="1", epoch=1)
    gap.shown(1, 4.0)  # the old owner stalled in the move
    gap.shown(2, 0.0)
    gap.shown(2, 9.0)
    assert (gap.late_s, gap.is_over) == (4.0, True)


def test_a_move_that_was_given_up_counts_to_the_next_block_after_its_end() -> None:
    gap = Gap(attempt="1", epoch=1)
    gap.shown(1, 0.1)
    assert not gap.is_over
    gap.ended = Outcome.ABORTED
    gap.shown(1, 2.0)
    gap.shown(1, 3.0)
    assert (gap.late_s, gap.is_over) == (2.0, True)


def test_a_block_that_is_due_and_not_here_counts_when_the_waiting_ends() -> None:
    gap = Gap(attempt="1", epoch=1)
    gap.close(2.5)
    gap.close(9.0)
    assert gap.late_s == 2.5


def test_there_is_no_gap_where_no_block_was_due() -> None:
    gap = Gap(attempt="1", epoch=1)
    gap.shown(1, None)
    gap.close(None)
    assert gap.late_s is None
