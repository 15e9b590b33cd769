"""However messages are repeated, held back or cut off: each change lands in one list, in order."""

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worldmove.engine.base import KeyChange
from worldmove.limits import MAX_LIST
from worldmove.serve.sequencer import KEPT_LISTS, MARK_EVERY, MAX_NUMBER, NUMBER_GAP, Sequencer, Taken
from worldmove.worker.messages import Change

KEYS = ("up", "down", "left")


def press(number: int, key: str = "up", *, down: bool = True) -> KeyChange:
    return KeyChange(number=number, key=key, down=down)


def numbers(sequencer: Sequencer) -> list[int]:
    return [change.number for block in range(sequencer.reaches) for change in sequencer.closed(block)]


def position_of(began: tuple[int, tuple[str, ...]], lists: list[tuple[KeyChange, ...]]) -> tuple[int, tuple[str, ...]]:
    """Walk every list from the beginning."""
    newest, held = began[0], dict.fromkeys(began[1])
    for change in (change for each in lists for change in each):
        newest = max(newest, change.number)
        held[change.key] = None
        if not change.down:
            del held[change.key]
    return newest, tuple(held)


def long_play(sequencer: Sequencer, num_blocks: int, rng: random.Random) -> list[tuple[KeyChange, ...]]:
    """Press keys for so many blocks, up to as many as a list holds; return all lists."""
    lists = []
    for _ in range(num_blocks):
        for _ in range(rng.choice((0, 0, 0, 1, 2, MAX_LIST))):
            change = press(sequencer.next_number, rng.choice(KEYS), down=rng.random() < 0.5)
            assert sequencer.take(change) is Taken.TAKEN
        lists.append(sequencer.close())
    return lists


def gone_on(sequencer: Sequencer) -> tuple[int, tuple[str, ...]]:
    sequencer.go_on(777, 5000, ("up", "left"))
    return 5000, ("up", "left")


def resumed(sequencer: Sequencer) -> tuple[int, tuple[str, ...]]:
    sequencer.begin_again(9, ("down",), life=1_000_000)
    sequencer.resume(3000, {block: (press(block),) for block in range(2500, 3010)})
    return 9, ("down",)


BEGINNINGS: dict[str, Callable[[Sequencer], tuple[int, tuple[str, ...]]]] = {
    "from a seed": lambda sequencer: (0, ()),
    "from a saved world": gone_on,
    "after a restart": resumed,
}


@pytest.mark.parametrize("begin", BEGINNINGS.values(), ids=list(BEGINNINGS))
def test_however_long_it_is_played_few_lists_are_kept_and_every_position_is_as_if_all_were(
    begin: Callable[[Sequencer], tuple[int, tuple[str, ...]]],
) -> None:
    rng, sequencer = random.Random(7), Sequencer()
    began = begin(sequencer)
    base, lists = sequencer.first, [sequencer.closed(block) for block in range(sequencer.first, sequencer.reaches)]
    for _ in range(5):
        lists += long_play(sequencer, KEPT_LISTS // 3 + rng.randrange(200), rng)
        assert sequencer.reaches == base + len(lists)
        assert sequencer.reaches - sequencer.first <= KEPT_LISTS + 2 * MARK_EVERY
        assert sequencer.reaches - sequencer.first >= min(len(lists), KEPT_LISTS)
        for block in {sequencer.first, sequencer.reaches, *rng.sample(range(sequencer.first, sequencer.reaches), 40)}:
            assert sequencer.position(block) == position_of(began, lists[: block - base])
            if block < sequencer.reaches:
                assert sequencer.closed(block) == lists[block - base]
    assert sequencer.first > base
    with pytest.raises(IndexError):
        sequencer.closed(sequencer.first - 1)
    assert sequencer.reach_from(sequencer.first - 1) == sequencer.first - 1
    assert sequencer.position(base) == sequencer.position(sequencer.first)


def test_what_somebody_is_to_ask_for_is_kept_until_then_and_not_longer() -> None:
    rng, sequencer = random.Random(3), Sequencer()
    lists = long_play(sequencer, 500, rng)
    for block in (400, 450, 400):
        sequencer.keep_from(block)
    lists += long_play(sequencer, 2 * KEPT_LISTS, rng)
    sequencer.let_go_from(400)
    lists += long_play(sequencer, 2 * MARK_EVERY, rng)
    assert sequencer.first <= 400
    assert sequencer.position(400) == position_of((0, ()), lists[:400])
    sequencer.let_go_from(400)
    sequencer.let_go_from(450)
    long_play(sequencer, 2 * MARK_EVERY, rng)
    assert sequencer.reaches - sequencer.first <= KEPT_LISTS + 2 * MARK_EVERY


def test_a_position_is_told_by_few_lists_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    sequencer = Sequencer()
    long_play(sequencer, KEPT_LISTS, random.Random(1))
    read: list[int] = []

    class Counted(list[tuple[KeyChange, ...]]):
        def __getitem__(self, at: Any) -> Any:
            found = super().__getitem__(at)
            read.append(len(found))
            return found

    monkeypatch.setattr(sequencer, "_log", Counted(sequencer._log))
    for block in range(0, sequencer.reaches + 1, 17):
        sequencer.position(block)
    assert max(read) < MARK_EVERY


OPERATIONS = st.one_of(
    st.tuples(st.just("press"), st.sampled_from(KEYS), st.booleans()),
    st.tuples(st.just("skip"), st.integers(1, 5)),
    st.tuples(st.just("again"), st.integers(0, 200)),
    st.tuples(st.just("reconnect")),
    st.tuples(st.just("close")),
)


@settings(max_examples=300)
@given(st.lists(OPERATIONS, max_size=120))
def test_each_change_lands_in_exactly_one_list_in_the_order_taken(operations: list[tuple[object, ...]]) -> None:
    sequencer = Sequencer(max_list=3)
    sent: list[KeyChange] = []
    expected: list[KeyChange] = []
    number = sequencer.next_number
    for name, *arguments in operations:
        if name == "press":
            change = press(number, str(arguments[0]), down=bool(arguments[1]))
            number += 1
            sent.append(change)
            assert sequencer.take(change) is Taken.TAKEN
            expected.append(change)
        elif name == "skip":
            number += int(str(arguments[0]))
        elif name == "again" and sent:
            assert sequencer.take(sent[int(str(arguments[0])) % len(sent)]) is Taken.OLD
        elif name == "reconnect":
            newest = sequencer.next_number - 1
            sequencer.release()
            expected += [press(newest, key, down=False) for key in held(expected)]
            number = sequencer.next_number
        elif name == "close":
            sequencer.close()
    while len(numbers(sequencer)) < len(expected):
        before = len(numbers(sequencer))
        sequencer.close()
        assert len(numbers(sequencer)) > before
    assert [c for b in range(sequencer.reaches) for c in sequencer.closed(b)] == expected
    assert all(len(sequencer.closed(block)) <= 3 for block in range(sequencer.reaches))
    assert numbers(sequencer) == sorted(numbers(sequencer))


def held(changes: list[KeyChange]) -> list[str]:
    down: dict[str, None] = {}
    for change in changes:
        if change.down:
            down[change.key] = None
        else:
            down.pop(change.key, None)
    return list(down)


def test_a_list_takes_at_most_its_limit_and_the_rest_waits() -> None:
    sequencer = Sequencer(max_list=64)
    for number in range(1, 101):
        sequencer.take(press(number))
    assert [len(sequencer.close()), len(sequencer.close()), len(sequencer.close())] == [64, 36, 0]


def test_a_gap_in_the_numbers_is_taken_and_what_it_left_out_is_old_from_then_on() -> None:
    sequencer = Sequencer()
    assert sequencer.take(press(5)) is Taken.TAKEN
    assert sequencer.take(press(4)) is Taken.OLD
    assert sequencer.next_number == 6


def test_a_number_far_beyond_the_newest_is_refused_and_changes_nothing() -> None:
    sequencer = Sequencer(max_gap=10)
    assert sequencer.take(press(11)) is Taken.TOO_FAR
    assert sequencer.take(press(10)) is Taken.TAKEN


def test_a_full_queue_refuses_a_change_without_using_its_number_up() -> None:
    sequencer = Sequencer(max_waiting=2)
    sequencer.take(press(1))
    sequencer.take(press(2))
    assert sequencer.take(press(3)) is Taken.FULL
    sequencer.close()
    assert sequencer.take(press(3)) is Taken.TAKEN


def test_keys_that_are_down_are_released_in_the_order_they_went_down_even_where_the_queue_is_full() -> None:
    sequencer = Sequencer(max_waiting=3)
    for number, key in enumerate(("left", "up", "down"), start=1):
        sequencer.take(press(number, key))
    sequencer.release()
    assert [(c.key, c.down, c.number) for c in sequencer.close()[3:]] == [
        ("left", False, 3),
        ("up", False, 3),
        ("down", False, 3),
    ]
    assert sequencer.next_number == 4
    assert not sequencer.active


def test_a_session_is_active_while_a_key_is_down_or_a_change_waits() -> None:
    sequencer = Sequencer()
    assert not sequencer.active
    sequencer.take(press(1))
    sequencer.close()
    assert sequencer.active
    sequencer.take(press(2, down=False))
    assert sequencer.active
    sequencer.close()
    assert not sequencer.active


def test_a_list_that_is_not_closed_cannot_be_read() -> None:
    sequencer = Sequencer()
    for block in (0, -1):
        with pytest.raises(IndexError):
            sequencer.closed(block)


def test_a_log_that_begins_again_keeps_every_list_that_was_held() -> None:
    sequencer = Sequencer()
    press = (KeyChange(number=3, key="up", down=True),)
    sequencer.resume(5, {3: press, 4: (), 6: press})
    assert (sequencer.first, sequencer.reaches) == (3, 7)
    assert [sequencer.closed(block) for block in (3, 4, 5, 6)] == [press, (), (), press]
    with pytest.raises(IndexError):
        sequencer.closed(2)
    assert [sequencer.reach_from(block) for block in (2, 3, 6, 7)] == [2, 7, 7, 7]
    sequencer.take(KeyChange(number=9, key="up", down=False))
    assert [change.number for change in sequencer.close()] == [9]
    assert sequencer.closed(7)[0].number == 9


def test_a_log_without_lists_begins_with_the_next_block() -> None:
    sequencer = Sequencer()
    sequencer.resume(5, {2: ()})
    assert (sequencer.first, sequencer.reaches) == (5, 5)


@pytest.mark.parametrize(("newest", "begins"), [(41, 5_000), (5_000, 5_000 + NUMBER_GAP), (9_000, 9_000 + NUMBER_GAP)])
def test_numbers_go_on_beyond_an_earlier_servers_and_every_key_is_released(newest: int, begins: int) -> None:
    sequencer = Sequencer()
    sequencer.begin_again(newest, ("up", "down"), life=5_000)
    sequencer.resume(5, {})
    assert sequencer.next_number == begins + 1
    assert [(change.key, change.down) for change in sequencer.close()] == [("up", False), ("down", False)]
    assert sequencer.take(KeyChange(number=newest + 1, key="up", down=True)) is Taken.OLD


def test_numbers_of_a_made_up_world_rise_no_further_than_a_message_can_say() -> None:
    sequencer = Sequencer()
    sequencer.begin_again(MAX_NUMBER, ("up",), life=5_000)
    sequencer.resume(5, {})
    (released,) = sequencer.close()
    told = Change(number=released.number, key=released.key, down=released.down)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(told), type=Change) == told


def test_no_number_is_given_twice_though_nothing_that_a_server_took_is_known_to_the_next_one() -> None:
    before, after = Sequencer(), Sequencer()
    before.begin_again(0, ("up",), life=5_000)
    before.take(KeyChange(number=before.next_number, key="up", down=True))
    after.begin_again(1, ("up",), life=5_700)  # of the first server's changes one has come to light, of these none
    after.resume(5, {})
    assert min(change.number for change in after.close()) >= before.next_number


def test_a_log_that_does_not_reach_the_next_block_reaches_nowhere_from_before_it() -> None:
    sequencer = Sequencer()
    sequencer.resume(8, {5: ()})
    assert sequencer.reach_from(5) == 5
    assert sequencer.reach_from(8) == 8


def test_a_saved_session_goes_on_at_its_block_with_its_numbers_and_lets_go_of_what_was_down() -> None:
    sequencer = Sequencer()
    sequencer.go_on(40, 7, ("up", "left"))
    assert (sequencer.reaches, sequencer.next_number) == (40, 8)
    assert sequencer.take(KeyChange(number=7, key="down", down=True)) is Taken.OLD
    assert [(change.number, change.key, change.down) for change in sequencer.close()] == [
        (7, "up", False),
        (7, "left", False),
    ]
    assert sequencer.reaches == 41
    with pytest.raises(IndexError):
        sequencer.closed(39)
    assert len(sequencer.closed(40)) == 2


def test_a_position_is_the_newest_number_and_the_keys_down_by_the_lists_before_it() -> None:
    sequencer = Sequencer()
    for number, key, down in ((1, "up", True), (2, "left", True), (3, "up", False)):
        sequencer.take(KeyChange(number=number, key=key, down=down))
        sequencer.close()
    assert [sequencer.position(block) for block in range(4)] == [
        (0, ()),
        (1, ("up",)),
        (2, ("up", "left")),
        (3, ("left",)),
    ]
    again = Sequencer()
    again.go_on(3, 3, ("left",))
    assert again.position(3) == (3, ("left",))
    again.close()
    assert again.position(4) == (3, ())


def test_every_key_may_be_down_at_a_position_before_the_log_that_began_again_has_released_it() -> None:
    sequencer = Sequencer()
    sequencer.begin_again(3, ("up", "left"), life=5_000)
    sequencer.resume(5, {4: (KeyChange(number=3, key="left", down=False),)})
    assert sequencer.position(4) == (3, ("up", "left"))
    assert sequencer.position(5) == (3, ("up",))
    sequencer.close()
    assert sequencer.position(6) == (5_000, ())
