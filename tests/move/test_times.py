"""The times of one end's phases."""

from contextlib import suppress

from worldmove.move.times import Times


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_phases_are_told_in_seconds_since_the_beginning_and_in_the_order_of_their_starts() -> None:
    clock = Clock()
    times = Times(clock)
    with times.phase("outer"):
        clock.now += 1
        with times.phase("inner"):
            clock.now += 2
        clock.now += 1
    assert times.begun == 100.0
    assert times.phases() == (("outer", 0.0, 4.0), ("inner", 1.0, 3.0))


def test_a_phase_that_fails_has_ended_too() -> None:
    clock = Clock()
    times = Times(clock)
    with suppress(ValueError), times.phase("land"):
        clock.now += 1
        raise ValueError("broken")
    clock.now += 5
    assert times.phases() == (("land", 0.0, 1.0),)


def test_a_phase_still_running_is_told_up_to_now() -> None:
    clock = Clock()
    times = Times(clock)
    times.start("doubt")
    clock.now += 3
    assert times.phases() == (("doubt", 0.0, 3.0),)
    clock.now += 1
    assert times.phases() == (("doubt", 0.0, 4.0),)


def test_a_phase_begun_twice_began_the_first_time_and_one_never_begun_does_not_end() -> None:
    clock = Clock()
    times = Times(clock)
    times.stop("commit")
    times.start("commit")
    clock.now += 1
    times.start("commit")
    clock.now += 1
    times.stop("commit")
    assert times.phases() == (("commit", 0.0, 2.0),)


def test_the_beginning_can_be_where_the_session_came_to_rest() -> None:
    clock = Clock()
    times = Times(clock)
    clock.now += 2
    times.begin_at(101.5)
    with times.phase("freeze", at=101.5):
        pass
    assert times.phases() == (("freeze", 0.0, 0.5),)
