"""What a follower made of each block, beside what was shown."""

import pytest

from worldmove.serve.follows import KEPT, FollowBook

SAME, OTHER = (b"a" * 32,), (b"b" * 32,)


def book(shown: int) -> FollowBook:
    made = FollowBook()
    for block in range(shown):
        made.shown(block, SAME)
    return made


def test_a_follower_that_makes_what_was_shown_differs_nowhere() -> None:
    follows = book(5)
    for block in range(5):
        follows.stepped("00000001-t", block, SAME)
    assert follows.first_difference("00000001-t") is None


def test_the_first_block_that_differs_is_named_whatever_comes_after_it() -> None:
    follows = book(9)
    for block, frames in ((3, SAME), (4, OTHER), (5, OTHER), (6, SAME)):
        follows.stepped("00000001-t", block, frames)
    assert follows.first_difference("00000001-t") == 4


@pytest.mark.parametrize("frames", [SAME, OTHER])
def test_a_block_that_is_followed_before_it_is_shown_is_compared_when_it_is(frames: tuple[bytes, ...]) -> None:
    follows = book(2)
    follows.stepped("00000001-t", 2, frames)
    assert follows.first_difference("00000001-t") is None
    follows.shown(2, SAME)
    assert follows.first_difference("00000001-t") == (None if frames is SAME else 2)


def test_one_attempts_differences_are_not_anothers() -> None:
    follows = book(4)
    follows.stepped("00000001-t", 1, OTHER)
    follows.stepped("00000001-t", 9, OTHER)
    follows.stepped("00000002-t", 1, SAME)
    follows.stepped("00000001-t", 2, OTHER)  # late, of the attempt before
    follows.shown(9, SAME)
    assert follows.first_difference("00000001-t") is follows.first_difference("00000002-t") is None


def test_what_is_remembered_is_bounded() -> None:
    follows = book(KEPT + 10)
    follows.stepped("00000001-t", 5, OTHER)  # it is not known any more what was shown
    follows.stepped("00000001-t", 10, OTHER)
    assert follows.first_difference("00000001-t") == 10
    for block in range(2 * KEPT, 4 * KEPT):
        follows.stepped("00000001-t", block, OTHER)
    assert len(follows._waiting) == KEPT
