"""The newest blocks, for whoever comes back."""

import pytest

from worldmove.serve.recent import MAX_BLOCKS, MAX_BYTES, Recent
from worldmove.worker.messages import BlockDone


def block(number: int, size: int = 10) -> BlockDone:
    return BlockDone(session="s", epoch=1, block=number, frames=bytes(size), frame_sha256=(), notes=(), compute_s=0.0)


def recent(*numbers: int, size: int = 10) -> Recent:
    kept = Recent()
    for number in numbers:
        kept.put(block(number, size))
    return kept


def after(kept: Recent, received: int | None, most: int = 8) -> list[int]:
    return [block.block for block in kept.after(received, most)]


@pytest.mark.parametrize(
    ("received", "lacks"), [(None, [7]), (7, []), (9, []), (6, [7]), (4, [5, 6, 7]), (3, [4, 5, 6, 7]), (1, [7])]
)
def test_a_client_gets_what_it_lacks_or_the_newest_alone(received: int | None, lacks: list[int]) -> None:
    assert after(recent(4, 5, 6, 7), received) == lacks


def test_what_is_too_much_at_once_is_left_out() -> None:
    assert after(recent(4, 5, 6, 7), 3, most=3) == [7]


def test_a_gap_is_not_jumped_over() -> None:
    assert after(recent(4, 6, 7), 3) == [7]


def test_nothing_is_sent_where_nothing_was_shown() -> None:
    assert after(Recent(), None) == []
    assert Recent().newest is None


def test_old_blocks_make_room_and_one_is_always_kept() -> None:
    assert after(recent(*range(20)), 20 - MAX_BLOCKS - 1) == list(range(20 - MAX_BLOCKS, 20))
    assert after(recent(0, 1, 2, size=MAX_BYTES), 0) == [2]


def test_blocks_may_be_put_in_any_order() -> None:
    assert after(recent(7, 5, 6), 4) == [5, 6, 7]
