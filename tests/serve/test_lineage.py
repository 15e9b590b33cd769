"""Which server of a state folder this is."""

import pytest

from worldmove.errors import UserError
from worldmove.fleet.notes import MemoryNotes, Notes, ServerNote
from worldmove.serve.lineage import next_life

BEFORE = ServerNote(life=500, engine="a", speech="x", receipt_key="07" * 32)
FIELDS = {"engine.keys": '["up"]', "engine.weights_sha256": "00"}
FRESH = bytes(32)


@pytest.mark.parametrize(("now_ms", "life"), [(400, 501), (500, 501), (900, 900)])
def test_every_server_has_a_greater_life_number_though_the_clock_was_set_back(now_ms: int, life: int) -> None:
    note = next_life(BEFORE, engine="b", fields=FIELDS, speech="y", now_ms=now_ms, num_alive=0, fresh_key=FRESH)
    assert note == ServerNote(life=life, engine="b", fields=FIELDS, speech="y", receipt_key=BEFORE.receipt_key)


def test_the_first_one_begins_with_the_clock() -> None:
    assert next_life(None, engine="a", fields=FIELDS, speech="x", now_ms=7, num_alive=0, fresh_key=FRESH).life == 7


def test_living_workers_of_another_engine_are_not_gone_on_with() -> None:
    with pytest.raises(UserError, match="start with --engine a, or") as refused:
        next_life(BEFORE, engine="b", fields=FIELDS, speech="x", now_ms=0, num_alive=2, fresh_key=FRESH)
    assert refused.value.code == "other_engine"


def test_living_workers_that_speak_otherwise_are_not_gone_on_with() -> None:
    with pytest.raises(UserError, match="another version") as refused:
        next_life(BEFORE, engine="a", fields=FIELDS, speech="y", now_ms=0, num_alive=1, fresh_key=FRESH)
    assert refused.value.code == "other_version"


def test_a_folder_of_an_older_version_gets_a_key_for_its_receipts() -> None:
    before = ServerNote(life=500, engine="a", speech="x")
    assert (
        next_life(before, engine="a", fields=FIELDS, speech="x", now_ms=0, num_alive=1, fresh_key=FRESH).receipt_key
        == FRESH.hex()
    )


@pytest.mark.parametrize("field", FIELDS)
def test_living_workers_of_the_same_engine_as_it_was_are_not_gone_on_with(field: str) -> None:
    """Its code was replaced meanwhile, and has the same shape of frame: nothing else would tell the two apart."""
    before = ServerNote(life=500, engine="a", fields=FIELDS, speech="x")
    now = {**FIELDS, field: "other"}
    with pytest.raises(UserError, match=rf"{field} was .* and is other\. Start it with that one") as refused:
        next_life(before, engine="a", fields=now, speech="x", now_ms=0, num_alive=2, fresh_key=FRESH)
    assert refused.value.code == "other_engine"
    assert next_life(before, engine="a", fields=now, speech="x", now_ms=0, num_alive=0, fresh_key=FRESH).fields == now


def test_a_folder_of_an_older_version_says_nothing_of_its_engine_but_the_name() -> None:
    note = next_life(BEFORE, engine="a", fields=FIELDS, speech="x", now_ms=0, num_alive=2, fresh_key=FRESH)
    assert note.fields == FIELDS


@pytest.mark.parametrize("now_ms", [-1_900_000_000_000, -1, 0, 7])
@pytest.mark.parametrize("before", [None, BEFORE])
def test_a_server_that_begins_wherever_the_clock_stands_is_noted_so_that_a_later_one_reads_it(
    before: ServerNote | None, now_ms: int
) -> None:
    note = next_life(before, engine="a", fields=FIELDS, speech="x", now_ms=now_ms, num_alive=0, fresh_key=FRESH)
    notes = Notes(MemoryNotes())
    notes.keep_server(note)
    assert notes.server() == note
    assert before is None or note.life > before.life
