"""The show rule, row by row."""

import pytest

from worldmove.fleet.ports import Owner
from worldmove.serve.show import Fence, Verdict, frames_waited, judge, lateness_s

ROW = Owner(worker="a", incarnation=1, epoch=3)
FENCE = Fence(next_block=7, shown_epoch=3)


@pytest.mark.parametrize(
    ("fence", "row", "block", "verdict"),
    [
        (FENCE, ROW, ("a", 3, 7), Verdict.SHOW),
        (Fence(next_block=7), ROW, ("a", 3, 7), Verdict.RECORD_FIRST),
        (Fence(next_block=7, shown_epoch=2), ROW, ("a", 3, 7), Verdict.RECORD_FIRST),
        (FENCE, None, ("a", 3, 7), Verdict.NO_OWNER),
        (FENCE, ROW, ("b", 3, 7), Verdict.NOT_THE_OWNER),
        (FENCE, ROW, ("a", 2, 7), Verdict.OTHER_EPOCH),
        (FENCE, ROW, ("a", 4, 7), Verdict.OTHER_EPOCH),
        (Fence(next_block=7, shown_epoch=3, closed_epoch=3), ROW, ("a", 3, 7), Verdict.CLOSED_EPOCH),
        (Fence(next_block=7, shown_epoch=3, closed_epoch=4), ROW, ("a", 3, 7), Verdict.CLOSED_EPOCH),
        (Fence(next_block=7, shown_epoch=3, closed_epoch=2), ROW, ("a", 3, 7), Verdict.SHOW),
        (FENCE, ROW, ("a", 3, 6), Verdict.REPEATED),
        (Fence(next_block=7, closed_epoch=3), ROW, ("a", 3, 6), Verdict.CLOSED_EPOCH),
        (FENCE, ROW, ("b", 3, 6), Verdict.NOT_THE_OWNER),
        (FENCE, ROW, ("a", 3, 8), Verdict.AHEAD),
    ],
)
def test_a_block_is_judged_by_the_row_then_the_closed_epochs_then_its_place(
    fence: Fence, row: Owner | None, block: tuple[str, int, int], verdict: Verdict
) -> None:
    worker, epoch, index = block
    assert judge(fence, row, worker=worker, epoch=epoch, block=index) is verdict


def test_a_block_that_was_due_later_is_on_time_and_one_without_due_time_is_neither() -> None:
    assert lateness_s(10.0, 10.5) == 0.0
    assert lateness_s(10.5, 10.0) == 0.5
    assert lateness_s(10.5, None) is None


@pytest.mark.parametrize(("late_s", "frames"), [(0.0, 0), (0.001, 1), (0.125, 1), (0.126, 2), (0.5, 4)])
def test_a_delay_is_counted_in_frame_periods_begun(late_s: float, frames: int) -> None:
    assert frames_waited(late_s, 0.125) == frames
