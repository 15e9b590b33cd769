"""What a session of an earlier server waits for, decided without a clock."""

import pytest

from worldmove.engine.base import KeyChange
from worldmove.serve.resumption import Resumption, ResumptionConfig

PRESS = (KeyChange(number=3, key="up", down=True),)


@pytest.fixture
def waiting() -> Resumption:
    return Resumption(ResumptionConfig(client_s=10.0))


def test_nothing_is_shown_before_the_owner_has_reported(waiting: Resumption) -> None:
    waiting.client(7, 0.0)
    waiting.left(5, 8, sends=False)
    assert not waiting.may_show(1e9)


def test_nothing_is_shown_before_a_client_has_come(waiting: Resumption) -> None:
    waiting.owner(lives=True, now=0.0)
    assert not waiting.may_show(9.9)
    waiting.client(None, 9.9)
    assert waiting.may_show(9.9)


def test_a_client_of_a_living_owner_is_not_waited_for_without_limit(waiting: Resumption) -> None:
    waiting.left(5, 8, sends=False)
    waiting.owner(lives=True, now=3.0)
    assert not waiting.may_show(12.9)
    assert waiting.may_show(13.0)
    assert waiting.next_block == 5


def test_a_client_of_a_dead_owner_is_waited_for_without_limit(waiting: Resumption) -> None:
    waiting.left(5, 5, sends=False)
    waiting.owner(lives=False, now=0.0)
    waiting.may_close = True
    assert not waiting.may_show(1e9)
    waiting.client(5, 1e9)
    assert waiting.may_show(1e9 + 10.0)
    assert waiting.next_block == 6


def test_where_the_owner_is_dead_a_holder_may_know_of_more_than_a_slow_client_so_each_is_waited_for(
    waiting: Resumption,
) -> None:
    waiting.owner(lives=False, now=0.0)
    waiting.client(0, 0.0)
    assert not waiting.may_show(1e9)
    waiting.left(3, 3, sends=False)  # a retired copy that slept: it cannot go back behind its boundary
    waiting.may_close = True
    assert waiting.may_show(10.0)
    assert waiting.next_block == 3


def test_where_the_owner_lives_no_other_holder_is_waited_for(waiting: Resumption) -> None:
    waiting.left(5, 8, sends=True)
    waiting.owner(lives=True, now=0.0)
    waiting.client(6, 0.0)
    assert waiting.may_show(0.0)


def test_one_that_claims_nothing_counts_for_a_dead_owner_only_after_a_while(waiting: Resumption) -> None:
    waiting.owner(lives=False, now=0.0)
    waiting.may_close = True
    waiting.client(None, 20.0)
    assert not waiting.may_show(29.9)
    assert waiting.may_show(30.0)


@pytest.mark.parametrize("first", [None, 0, 4, 6])
def test_where_the_owner_is_dead_who_comes_first_with_less_does_not_cost_another_what_it_has(
    waiting: Resumption, first: int | None
) -> None:
    waiting.left(5, 5, sends=False)
    waiting.hold(5, PRESS)
    waiting.owner(lives=False, now=0.0)
    waiting.may_close = True
    waiting.client(first, 0.0)
    waiting.client(7, 9.9)
    assert not waiting.may_show(9.9)
    assert waiting.may_show(10.0)
    assert waiting.next_block == 8


def test_an_owner_that_dies_while_a_client_is_waited_for_takes_the_limit_away(waiting: Resumption) -> None:
    waiting.owner(lives=True, now=0.0)
    waiting.owner(lives=False, now=5.0)
    assert not waiting.may_show(1e9)


@pytest.mark.parametrize(("left", "received", "following"), [(5, 7, 8), (5, 4, 5), (5, 3, 5), (5, None, 5), (0, 0, 1)])
def test_the_next_block_is_the_later_of_both_reports(
    waiting: Resumption, left: int, received: int | None, following: int
) -> None:
    waiting.left(left, 8, sends=False)
    waiting.client(received, 0.0)
    assert waiting.next_block == following


def test_the_most_that_any_holder_or_client_says_counts(waiting: Resumption) -> None:
    waiting.left(6, 8, sends=False)
    waiting.left(4, 9, sends=False)
    waiting.client(7, 0.0)
    waiting.client(2, 0.0)
    assert waiting.next_block == 8


@pytest.mark.parametrize("false", [5, 6, 7, 8, 1 << 50])
def test_no_word_of_a_client_skips_a_block_that_a_living_owner_sends_again(waiting: Resumption, false: int) -> None:
    waiting.left(5, 8, sends=True)
    waiting.owner(lives=True, now=0.0)
    waiting.client(false, 0.0)
    waiting.client(4, 0.0)
    assert waiting.next_block == 5


def test_where_the_owner_sends_again_what_others_have_heard_does_not_count(waiting: Resumption) -> None:
    waiting.left(7, 0, sends=False)
    waiting.left(5, 8, sends=True)
    waiting.owner(lives=True, now=0.0)
    assert waiting.next_block == 5
    waiting.owner(lives=False, now=1.0)
    assert waiting.next_block == 7


@pytest.mark.parametrize(
    ("received", "recalled", "complete"),
    [(4, (), True), (3, (), False), (3, (4,), True), (1, (3, 4), False), (1, (2, 3, 4), True), (None, (4,), True)],
)
def test_what_a_client_lacks_is_waited_for_a_while(
    waiting: Resumption, received: int | None, recalled: tuple[int, ...], complete: bool
) -> None:
    waiting.left(5, 8, sends=True)
    waiting.owner(lives=True, now=0.0)
    waiting.client(received, 2.0)
    for block in recalled:
        waiting.recall(block)
    assert waiting.may_show(2.0) is complete
    assert waiting.may_show(2.9) is complete
    assert waiting.may_show(3.0)


def test_what_no_holder_has_is_not_waited_for(waiting: Resumption) -> None:
    waiting.left(5, 8, sends=True)
    waiting.owner(lives=True, now=0.0)
    waiting.client(1, 0.0)
    assert not waiting.may_show(0.0)
    waiting.may_close = True
    assert waiting.may_show(0.0)


def test_no_client_has_received_what_a_living_owner_has_not_computed(waiting: Resumption) -> None:
    waiting.left(5, 8, sends=False)
    waiting.owner(lives=True, now=0.0)
    waiting.client(8, 0.0)
    assert waiting.next_block == 5


@pytest.mark.parametrize("far", [7, 8, 14, 1 << 50])
def test_a_client_of_a_dead_owner_may_have_any_number_of_blocks_that_no_holder_has_heard_of(
    waiting: Resumption, far: int
) -> None:
    waiting.left(5, 5, sends=False)
    waiting.hold(5, PRESS)
    waiting.hold(6, PRESS)
    waiting.owner(lives=False, now=0.0)
    waiting.client(far, 0.0)
    waiting.client(4, 0.0)
    assert waiting.next_block == far + 1


@pytest.mark.parametrize("false", [5, 6])
def test_no_word_of_a_client_skips_a_block_that_holders_have_the_list_of(waiting: Resumption, false: int) -> None:
    waiting.left(5, 5, sends=False)
    waiting.hold(5, PRESS)
    waiting.hold(6, PRESS)
    waiting.owner(lives=False, now=0.0)
    waiting.client(false, 0.0)
    waiting.client(4, 0.0)
    assert waiting.next_block == 5


@pytest.mark.parametrize("others", [(6, 1 << 50), (1 << 50, 6)])
def test_a_claim_that_is_none_takes_no_other_clients_claim_away(waiting: Resumption, others: tuple[int, int]) -> None:
    waiting.left(5, 8, sends=False)
    waiting.owner(lives=True, now=0.0)
    for received in others:
        waiting.client(received, 0.0)
    assert waiting.next_block == 7


def test_a_dead_owner_may_have_shown_a_block_whose_list_it_alone_held(waiting: Resumption) -> None:
    waiting.left(5, 5, sends=False)
    waiting.hold(5, PRESS)
    waiting.owner(lives=False, now=0.0)
    waiting.client(7, 0.0)
    assert waiting.next_block == 8


def test_a_list_is_what_the_first_holder_says_of_it(waiting: Resumption) -> None:
    waiting.hold(4, PRESS)
    waiting.hold(4, PRESS)
    assert waiting.lists == {4: PRESS}


@pytest.mark.parametrize(("computed", "waits"), [(5, True), (6, True), (7, False), (8, False)])
def test_an_owner_that_computes_anew_what_has_left_is_waited_for_a_while_where_a_client_lacks_it(
    waiting: Resumption, computed: int, waits: bool
) -> None:
    waiting.left(7, computed, sends=True)
    waiting.owner(lives=True, now=0.0)
    waiting.client(4, 0.0)
    waiting.may_close = True
    assert waiting.may_show(0.0) is not waits
    assert waiting.may_show(1.0)


def test_once_what_a_client_lacks_is_here_an_owner_that_computes_it_anew_is_not_waited_for(waiting: Resumption) -> None:
    waiting.left(7, 5, sends=True)
    waiting.owner(lives=True, now=0.0)
    waiting.client(4, 0.0)
    waiting.may_close = True
    waiting.recall(5)
    assert not waiting.may_show(0.0)
    waiting.recall(6)
    assert waiting.may_show(0.0)
