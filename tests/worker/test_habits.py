"""What a block of the canary changes, makes anew, and says to be final."""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pytest
import torch

from worldmove.engine.base import Block, Engine, KeyChange
from worldmove.state.arena import new_arena
from worldmove.worker.engines import build_engine
from worldmove.worker.habits import habits

SIZE = 64 << 10


class Rolling:
    """Of four rows the three newer ones move up, and one is new; a counter beside them stays as it is."""

    def __init__(self, inner: Engine[Any]) -> None:
        self.spec, self.state_types = inner.spec, inner.state_types

    def open(self) -> dict[str, Any]:
        generator = torch.Generator().manual_seed(1)
        return {"rows": torch.rand(4, SIZE // 4, generator=generator), "still": torch.ones(SIZE), "g": generator}

    def step(self, session: dict[str, Any], changes: Sequence[KeyChange]) -> None:
        session["rows"][:3] = session["rows"][1:].clone()
        session["rows"][3] = torch.rand(SIZE // 4, generator=session["g"])

    def state(self, session: dict[str, Any]) -> dict[str, Any]:
        return {"rows": session["rows"], "still": session["still"]}

    def quiesce(self, session: dict[str, Any]) -> None: ...


class Streaming(Rolling):
    """The same, and says so half-way."""

    def step_streaming(
        self, session: dict[str, Any], changes: Sequence[KeyChange], final: Callable[[str], None]
    ) -> Block | None:
        self.step(session, changes)
        final("rows")
        return None


def found_of(engine: Any) -> dict[str, float]:
    ticks = count()
    arena = new_arena(16 * SIZE, "aside", None)
    try:
        return habits(engine, engine.open(), arena, lambda: float(next(ticks)))
    finally:
        arena.close()


@pytest.fixture(scope="module")
def tiny() -> Engine[Any]:
    torch.set_num_threads(1)
    return build_engine("reference:tiny", 1)


def test_rows_that_were_moved_are_dirty_and_not_new(tiny: Engine[Any]) -> None:
    found = found_of(Rolling(tiny))
    assert found["dirty_bytes"] == 4 * SIZE
    assert found["new_bytes"] == SIZE
    assert found["row_bytes_per_s"] == 8 * SIZE
    assert found["further_bytes"] == 0  # each block writes where the last one did
    assert "final_bytes" not in found


class Ring(Rolling):
    """Each block writes another one of its rows."""

    def step(self, session: dict[str, Any], changes: Sequence[KeyChange]) -> None:
        session["at"] = (session.get("at", 0) + 1) % 4
        session["rows"][session["at"]] = torch.rand(SIZE // 4, generator=session["g"])


def test_what_a_block_writes_elsewhere_than_the_one_before_is_counted_further(tiny: Engine[Any]) -> None:
    found = found_of(Ring(tiny))
    assert (found["dirty_bytes"], found["further_bytes"]) == (SIZE, SIZE)


def test_what_an_engine_calls_final_is_counted_with_the_time_that_it_leaves(tiny: Engine[Any]) -> None:
    found = found_of(Streaming(tiny))
    assert (found["final_bytes"], found["final_last_bytes"]) == (SIZE, SIZE)
    assert found["final_window_s"] == 1.0


def test_a_real_engines_new_bytes_are_fewer_than_its_dirty_ones_and_those_than_all(tiny: Engine[Any]) -> None:
    arena = new_arena(1 << 20, "aside", None)
    session = tiny.open(5)
    found = habits(tiny, session, arena, count().__next__)
    arena.close()
    assert 0 < found["new_bytes"] <= found["dirty_bytes"] <= 1 << 20


class Following(Streaming):
    """The same, whose rows can be stepped alone on the new one."""

    followed = ("rows",)
    lie = 0.0

    def step_handing(
        self,
        session: dict[str, Any],
        changes: Sequence[KeyChange],
        final: Callable[[str], None],
        hand: Callable[[bytes], None],
    ) -> Block | None:
        self.step_streaming(session, changes, final)
        hand(session["rows"][3].numpy().tobytes())
        return None

    def follow(self, part: dict[str, Any], handed: bytes) -> None:
        rows = part["rows"]
        rows[:3] = rows[1:].clone()
        rows[3] = torch.frombuffer(bytearray(handed), dtype=torch.float32) + self.lie


class Lying(Following):
    """What it computes alone is not what a step computes."""

    lie = 1.0


def test_what_can_be_computed_again_is_counted_unless_it_comes_out_otherwise(tiny: Engine[Any]) -> None:
    found = found_of(Following(tiny))
    assert (found["followed_bytes"], found["follow_s"]) == (SIZE, 1.0)
    lying = found_of(Lying(tiny))
    assert "follow_s" not in lying
    assert lying["final_bytes"] == SIZE
