"""The least that would have to change: what is proposed admits, and a little less would not."""

from dataclasses import replace
from math import inf, nextafter

import pytest
from hypothesis import given, settings

from tests.move.measuring import FAST, anything, roomy
from worldmove.move.admission import admit
from worldmove.move.measured import Measured
from worldmove.move.remedy import LEAST, MOST_BUFFER_S, cheapest, least
from worldmove.move.strategy import Strategy

ALL = tuple(Strategy)
every = pytest.mark.parametrize("strategy", ALL, ids=[strategy.value for strategy in ALL])


@every
@settings(max_examples=60)
@given(measured=anything())
def test_the_least_path_that_admits_is_exact(strategy: Strategy, measured: Measured) -> None:
    found = least(roomy(measured), strategy, "path_rate")
    if found is None:
        assert not admit(replace(roomy(measured), path_rate=1e18), strategy).admitted
        return
    assert admit(replace(roomy(measured), path_rate=found), strategy).admitted
    assert found == LEAST or not admit(replace(roomy(measured), path_rate=nextafter(found, 0.0)), strategy).admitted


@every
@settings(max_examples=60)
@given(measured=anything())
def test_a_remedy_admits_the_move_that_was_rejected(strategy: Strategy, measured: Measured) -> None:
    remedy = cheapest(measured, strategy)
    if remedy is not None:
        assert not admit(measured, strategy).admitted
        assert admit(remedy.applied(measured), strategy).admitted
        assert remedy.factor >= 1.0
        assert remedy.sentence


@settings(max_examples=60)
@given(measured=anything())
def test_a_boundary_copy_that_is_a_little_too_slow_always_has_a_remedy(measured: Measured) -> None:
    slow = admit(roomy(measured))
    missing_s = -(slow.slack_s or 0.0)
    if slow.reason == "too_slow" and missing_s < 0.9 * MOST_BUFFER_S:
        remedy = cheapest(roomy(measured), Strategy.BOUNDARY_COPY)
        assert remedy is not None or missing_s > 1000 * (measured.horizon_s or 0.0)


def test_no_buffer_of_many_seconds_is_proposed() -> None:
    assert cheapest(replace(FAST, path_rate=1e3, source_hash_rate=1e3), Strategy.BOUNDARY_COPY) is None


def test_a_little_less_than_the_remedy_would_not_do() -> None:
    slow = replace(FAST, path_rate=1e8)
    assert admit(replace(slow, horizon_s=0.1)).reason == "too_slow"
    remedy = cheapest(replace(slow, horizon_s=0.1), Strategy.BOUNDARY_COPY)
    assert remedy is not None
    assert remedy.sentence == "117 ms more until the next block is due (a longer buffer at the client)"
    almost = replace(remedy, value=remedy.value * 0.98)
    assert not admit(almost.applied(replace(slow, horizon_s=0.1))).admitted


def test_a_destination_that_is_too_busy_would_have_to_be_less_busy() -> None:
    busy = replace(FAST, utilisation=0.85)
    remedy = cheapest(busy, Strategy.REPLAY)
    assert remedy is not None
    assert remedy.field in ("utilisation", "block_s")
    assert "at the destination" in remedy.sentence or "busy at most" in remedy.sentence


def test_a_missing_place_is_the_remedy_where_all_else_fits() -> None:
    remedy = cheapest(replace(FAST, num_slots_free=0), Strategy.BOUNDARY_COPY)
    assert remedy is not None
    assert remedy.sentence == "one free place at the destination"


def test_what_is_not_measured_or_stands_in_the_way_has_no_remedy_of_this_kind() -> None:
    assert cheapest(replace(FAST, path_rate=None), Strategy.BOUNDARY_COPY) is None
    assert cheapest(replace(FAST, environment_differs=("a",)), Strategy.BOUNDARY_COPY) is None
    assert cheapest(FAST, Strategy.BOUNDARY_COPY) is None


def test_where_no_path_is_fast_enough_there_is_no_least_one() -> None:
    assert least(replace(FAST, horizon_s=0.001), Strategy.BOUNDARY_COPY, "path_rate") is None
    assert least(replace(FAST, horizon_s=inf), Strategy.BOUNDARY_COPY, "path_rate") is not None
