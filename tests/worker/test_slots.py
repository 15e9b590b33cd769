"""The slots of a worker."""

from collections.abc import Iterator

import pytest

from worldmove.errors import MoveRefused, ProtocolError
from worldmove.state.arena import Arena
from worldmove.worker.slots import SlotPool, SlotState


@pytest.fixture
def pool() -> Iterator[SlotPool]:
    arenas = [Arena(1 << 16, f"test-{number}") for number in range(2)]
    yield SlotPool(arenas)
    for arena in arenas:
        arena.close()


def test_a_quarantined_slot_is_counted_as_taken_and_never_handed_out(pool: SlotPool) -> None:
    shadow = pool.take(SlotState.SHADOW, 100)
    shadow.enter(SlotState.QUARANTINED)
    other = pool.take(SlotState.BOUND, 100)
    assert other is not shadow
    with pytest.raises(MoveRefused, match="1 of them in quarantine") as refused:
        pool.take(SlotState.SHADOW, 100)
    assert refused.value.reason == "no_slot"
    shadow.enter(SlotState.FREE)
    assert pool.take(SlotState.SHADOW, 100) is shadow


def test_a_state_larger_than_an_arena_is_refused_by_its_numbers(pool: SlotPool) -> None:
    with pytest.raises(MoveRefused, match="65,537 bytes") as refused:
        pool.take(SlotState.SHADOW, (1 << 16) + 1)
    assert refused.value.reason == "state_too_large"
    assert pool.count(SlotState.FREE) == 2


@pytest.mark.parametrize(
    ("path", "forbidden"),
    [
        ((), SlotState.QUARANTINED),
        ((SlotState.BOUND,), SlotState.SHADOW),
        ((SlotState.SHADOW,), SlotState.FREE),
        ((SlotState.SHADOW, SlotState.QUARANTINED), SlotState.BOUND),
    ],
)
def test_a_slot_changes_its_use_only_along_the_picture(
    pool: SlotPool, path: tuple[SlotState, ...], forbidden: SlotState
) -> None:
    slot = pool.take(path[0] if path else SlotState.BOUND, 1)
    if not path:
        slot.enter(SlotState.FREE)
    for state in path[1:]:
        slot.enter(state)
    with pytest.raises(ProtocolError):
        slot.enter(forbidden)
