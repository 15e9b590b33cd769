"""A pause cut into stretches: when the way from the freeze came past each station."""

from typing import Any

from tests.fleet.past import moved, phase, replayed, with_rows
from worldmove.move.account import account_of

ROWED: dict[str, Any] = {"strategy": "pre-copy", "pulled_bytes": 30_000_000, "moved_bytes": 20_000_000}


def test_a_boundary_copys_stations_follow_each_other() -> None:
    found = account_of(moved())
    assert found is not None
    stations = (found.frozen, found.rowed, found.heard, found.found, found.landed, found.installed)
    assert [round(at, 6) for at in stations] == [0.003, 0.003, 0.004, 0.004, 0.104, 0.109]
    assert (round(found.proven, 6), round(found.allowed, 6)) == (0.119, 0.127)
    assert (found.has_rows, found.is_replay) == (False, False)


def test_it_is_counted_from_the_freeze_wherever_that_stands_in_the_report() -> None:
    told = moved()
    later = tuple(phase(p.side, p.name, p.start_s + 7.0, p.end_s + 7.0) for p in told.phases)
    one, other = account_of(told), account_of(moved(phases=later))
    assert one is not None
    assert other is not None
    assert abs(one.installed - other.installed) < 1e-9
    assert abs(one.proven - other.proven) < 1e-9


def test_the_ledger_is_asked_when_the_later_proof_has_come() -> None:
    late = account_of(moved(phases=(*moved().phases, phase("destination", "wait_proof", 0.119, 0.125))))
    assert late is not None
    assert late.proven == 0.125
    asked = account_of(moved(phases=(*moved().phases, phase("destination", "commit", 0.120, 0.126))))
    assert asked is not None
    assert asked.proven == 0.120


def test_rows_that_are_digested_and_looked_for_have_their_stations() -> None:
    found = account_of(with_rows(moved(**ROWED)))
    assert found is not None
    assert (found.rowed, found.heard, round(found.found, 6)) == (0.013, 0.014, 0.018)
    assert (round(found.moves_s, 6), found.has_rows) == (0.002, True)


def test_what_comes_over_before_the_freeze_is_a_rest_and_no_part_of_the_pause() -> None:
    told = with_rows(moved(**ROWED))
    rests = ((-0.03, -0.01, True), (-0.03, 0.001, False))
    for start, end, is_rested in rests:
        found = account_of(moved(phases=(phase("destination", "rest", start, end), *told.phases)))
        assert found is not None
        assert (found.rest_s, found.is_rested, found.heard) == (0.03, is_rested, 0.014)


def test_a_rest_at_an_earlier_boundary_is_no_part_of_the_one_before_the_freeze() -> None:
    rests = [phase("destination", "rest", start, end) for start, end in ((-0.5, -0.2), (-0.03, 0.001))]
    found = account_of(moved(phases=(*rests, *with_rows(moved(**ROWED)).phases)))
    assert found is not None
    assert (found.rest_s, found.is_rested) == (0.03, False)


def test_a_follower_stands_still_where_its_pass_begins() -> None:
    found = account_of(replayed(-0.2))
    assert found is not None
    assert (found.is_replay, found.installed, found.frozen) == (True, -0.2, 0.003)


def test_a_pause_whose_phases_do_not_tell_has_no_account() -> None:
    assert account_of(moved(pause_s=None)) is None
    assert account_of(moved(phases=())) is None
    assert account_of(moved(phases=moved().phases[:1] + moved().phases[2:])) is None
