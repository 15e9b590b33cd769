"""What a worker keeps of sessions that another one plays: snapshots in slots, and the lists since."""

from typing import Any

import pytest

from worldmove.engine.base import KeyChange
from worldmove.worker import inputs
from worldmove.worker.kept import Keeping, KeptState, KeptTable
from worldmove.worker.slots import SlotPool, SlotState


class Room:
    """Memory that only has a size."""

    size = 64


def a_list(block: int) -> tuple[KeyChange, ...]:
    return (KeyChange(number=block + 1, key="up", down=True),)


def table() -> tuple[KeptTable, SlotPool]:
    arenas: Any = [Room(), Room()]
    return KeptTable(lambda keeping: None), SlotPool(arenas)


def state(pool: SlotPool, block: int) -> KeptState:
    nothing: Any = None
    slot = pool.take(SlotState.KEPT, 1)
    return KeptState(epoch=1, block=block, slot=slot, manifest=nothing, placement=(), proof=nothing, nonce=bytes(32))


def expected(kept: KeptTable) -> Keeping:
    kept.expect("s")
    found = kept.get("s")
    assert found is not None
    return found


def held(kept: KeptTable) -> list[int]:
    found = kept.get("s")
    return [] if found is None else [block for block, _ in found.inputs.held()]


def test_lists_are_held_from_the_expectation_on_and_forgotten_only_up_to_a_snapshot_that_is_here() -> None:
    kept, pool = table()
    kept.put("s", 2, a_list(2))  # nobody expects it yet
    keeping = expected(kept)
    for block in range(3, 9):
        kept.put("s", block, a_list(block))
        kept.acknowledge("s", block)
    assert held(kept) == [3, 4, 5, 6, 7, 8]
    assert kept.hold(keeping, state(pool, 6))
    assert held(kept) == [6, 7, 8]


def test_a_newer_snapshot_takes_the_older_ones_place_and_gives_its_slot_back() -> None:
    kept, pool = table()
    keeping = expected(kept)
    kept.hold(keeping, state(pool, 4))
    assert pool.count(SlotState.FREE) == 1
    kept.hold(keeping, state(pool, 8))
    assert [(copy.phase, copy.block, copy.left) for copy in kept.held()] == [("kept", 8, 8)]
    assert pool.count(SlotState.FREE) == 1
    kept.let_go("s")
    kept.let_go("s")
    assert (pool.count(SlotState.FREE), kept.held()) == (2, ())


def test_an_older_snapshot_that_comes_late_does_not_take_the_newer_ones_place() -> None:
    """It was begun over an earlier link; the lists that it needs are forgotten."""
    kept, pool = table()
    keeping = expected(kept)
    late = state(pool, 4)
    assert kept.hold(keeping, state(pool, 8))
    assert not kept.hold(keeping, late)
    assert [copy.block for copy in kept.held()] == [8]


def test_a_snapshot_that_is_too_old_to_be_gone_on_from_is_let_go_and_nothing_is_held_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inputs, "MAX_LISTS", 10)
    kept, pool = table()
    kept.hold(expected(kept), state(pool, 4))
    for block in range(4, 14):
        kept.put("s", block, a_list(block))
    assert [copy.block for copy in kept.held()] == [4]
    kept.put("s", 14, a_list(14))
    assert (kept.held(), held(kept), pool.count(SlotState.FREE)) == ((), [], 2)


def test_a_snapshot_that_nobody_expects_any_more_is_not_kept() -> None:
    kept, pool = table()
    keeping = expected(kept)
    kept.let_go("s")
    assert not kept.hold(keeping, state(pool, 4))


def test_an_expectation_anew_begins_its_lists_anew_but_not_those_that_a_snapshot_needs() -> None:
    kept, pool = table()
    keeping = expected(kept)
    kept.put("s", 3, a_list(3))
    assert expected(kept) is not keeping
    assert held(kept) == []
    kept.put("s", 5, a_list(5))
    kept.hold(expected(kept), state(pool, 5))
    assert expected(kept).state is not None
    kept.put("s", 6, a_list(6))
    kept.expect("s")
    assert held(kept) == [6]


def test_what_is_being_installed_is_neither_let_go_nor_replaced() -> None:
    kept, pool = table()
    keeping = expected(kept)
    kept.hold(keeping, state(pool, 4))
    keeping.is_revived = True
    kept.let_go("s")
    assert kept.get("s") is keeping
    assert not kept.hold(keeping, state(pool, 8))


def test_a_new_link_ends_what_was_only_expected_and_keeps_what_is_here() -> None:
    kept, pool = table()
    kept.expect("other")
    kept.hold(expected(kept), state(pool, 4))
    kept.forget_unfinished()
    assert [keeping.session for keeping in kept.all()] == ["s"]
