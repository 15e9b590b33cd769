"""The check of the future: both sides of a block, whichever comes first."""

import pytest

from worldmove.serve.checks import KEPT, CheckBook
from worldmove.serve.play_messages import Digests

GOOD = Digests(state_digest="s", frames=("a", "b"))


@pytest.mark.parametrize("owner_first", [True, False])
def test_a_check_is_made_once_when_both_sides_are_there(owner_first: bool) -> None:
    book = CheckBook()
    if owner_first:
        assert book.shown(5, GOOD) == ()
        (check,) = book.stepped(5, "m-1", GOOD)
    else:
        assert book.stepped(5, "m-1", GOOD) == ()
        (check,) = book.shown(5, GOOD)
    assert (check.block, check.attempt, check.equal) == (5, "m-1", True)
    assert book.shown(6, GOOD) == ()


NO_STATE = Digests(state_digest="", frames=("a", "b"))


@pytest.mark.parametrize(
    ("owner", "retired", "equal"),
    [
        (GOOD, Digests(state_digest="t", frames=("a", "b")), False),
        (GOOD, Digests(state_digest="s", frames=("a", "c")), False),
        (GOOD, Digests(state_digest="s", frames=("a",)), False),
        (GOOD, Digests(state_digest="", frames=("a", "c")), False),
        (NO_STATE, Digests(state_digest="", frames=("a", "c")), False),
        (GOOD, NO_STATE, None),
        (NO_STATE, GOOD, None),
        (NO_STATE, NO_STATE, None),
    ],
)
def test_what_differs_is_not_called_equal_and_what_was_not_compared_neither(
    owner: Digests, retired: Digests, equal: bool | None
) -> None:
    book = CheckBook()
    book.shown(5, owner)
    (check,) = book.stepped(5, "m-1", retired)
    assert check.equal is equal


def test_a_block_that_no_side_asks_for_again_is_forgotten() -> None:
    book = CheckBook()
    for block in range(KEPT + 1):
        book.shown(block, GOOD)
    assert book.stepped(0, "m-1", GOOD) == ()
    assert len(book.stepped(KEPT, "m-1", GOOD)) == 1
