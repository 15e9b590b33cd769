"""A move between two processes without a server: verified, and its parts in the order in which they come."""

import pytest

from worldmove.cli.benches.direct import measure_direct

DOUBLE = "python:tests.worker.device_engine:build"


@pytest.mark.slow
def test_a_session_whose_tensors_left_their_slot_is_brought_across_a_device_as_often_as_asked() -> None:
    stages: list[str] = []
    found = measure_direct(f"scattered:{DOUBLE}", 1, 3, stages.append)
    assert len(stages) == 1
    assert found.num_storages > 2
    assert {len(instants) for instants in found.parts.values()} == {3} == {len(found.copy_ms)}
    for order in (
        ("frozen", "ordered", "digested", "digested again", "proof came", "matched"),
        ("frozen", "told", "read", "landed", "matched"),
        ("read", "built", "installed", "verified", "proof came"),
    ):
        rows = zip(*(found.parts[name] for name in order), strict=True)
        assert all(list(row) == sorted(row) for row in rows)
    fields = found.fields()
    assert fields["match_ms"]["n"] == 3
    assert fields["match_in_copies"] > 1


@pytest.mark.slow
def test_of_a_session_in_its_slot_the_pull_begins_before_it_is_told_what_was_frozen() -> None:
    found = measure_direct(DOUBLE, 1, 3, lambda _: None, gpus=("0", "1"))
    for order in (("still", "frozen", "told", "landed"), ("still", "begun", "told", "read", "landed", "matched")):
        rows = zip(*(found.parts[name] for name in order), strict=True)
        assert all(list(row) == sorted(row) for row in rows)
    assert len(found.copy_ms) == 3
