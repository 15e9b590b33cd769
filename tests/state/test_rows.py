from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.state.trees import TYPES, state_of_every_kind, trees
from worldmove.errors import StateRefused
from worldmove.state import Capture, capture, extents
from worldmove.state import rows as module
from worldmove.state.arena import Arena
from worldmove.state.placement import Placement, foreseen
from worldmove.state.rows import Rows, final_rows, min_row_bytes, rolled_from, rows_of


def _rows(tree: Any, min_row_bytes: int = 32) -> tuple[Capture, Placement, Rows]:
    state = capture(tree, TYPES)
    arena = Arena(sum(storage.num_bytes + 512 for storage in state.storages) + 4096, "rows")
    placement = foreseen(state, arena)
    arena.close()
    return state, placement, rows_of(state.manifest, placement, min_row_bytes)


def _bytes(rows: Rows) -> list[int]:
    return [
        at for begin, end in zip(rows.offsets.tolist(), rows.ends.tolist(), strict=True) for at in range(begin, end)
    ]


@settings(max_examples=25)
@given(trees(), st.sampled_from([1, 8, 64, 512]))
def test_every_used_byte_is_in_exactly_one_row(tree: Any, min_row_bytes: int) -> None:
    state, placement, rows = _rows(tree, min_row_bytes)
    used = extents(state.manifest, placement)
    assert _bytes(rows) == [at for extent in used for at in range(extent.offset, extent.end)]
    assert (rows.lengths > 0).all()
    assert (rows.lengths <= module.MAX_ROW_BYTES).all()


def test_a_state_of_every_kind_has_rows() -> None:
    state, placement, rows = _rows(state_of_every_kind())
    assert rows.num_bytes == state.manifest.num_bytes
    assert rows.extents(np.ones(len(rows), dtype=bool)) == extents(state.manifest, placement)


def _lengths(tensor: Any, min_row_bytes: int) -> set[int]:
    return set(_rows(tensor, min_row_bytes)[2].lengths.tolist())


def test_a_row_is_one_step_of_the_smallest_stride_that_is_long_enough() -> None:
    mouse = torch.zeros(40, 6, 16, 64, dtype=torch.bfloat16)
    assert _lengths(mouse, 512) == {2048}
    assert _lengths(mouse, 128) == {128}
    assert _lengths(mouse, 3000) == {4096}  # a step of 12,288, cut in three
    assert _lengths(torch.zeros(1, 528, 12, 128, dtype=torch.bfloat16), 512) == {3072}
    assert _lengths(torch.zeros(50, 200).T, 512) == {800}
    assert _lengths(np.zeros((50, 200), dtype="<f4")[::-1], 512) == {800}


def test_what_has_no_stride_that_is_long_enough_is_cut_from_its_beginning_on() -> None:
    _, placement, rows = _rows(torch.zeros(10_001, dtype=torch.uint8), 512)
    assert (rows.offsets - placement[0]).tolist() == [0, 4096, 8192]
    assert rows.lengths.tolist() == [4096, 4096, 1809]


def test_a_view_with_gaps_has_rows_of_what_it_uses() -> None:
    _, placement, rows = _rows(torch.zeros(5, 300)[:, 7:20], 512)
    assert (rows.offsets - placement[0]).tolist() == [28 + 1200 * i for i in range(5)]
    assert set(rows.lengths.tolist()) == {52}


def test_views_over_each_other_are_cut_where_either_begins_a_row() -> None:
    whole = torch.zeros(6, 200)
    _, placement, rows = _rows([whole, whole[1:, 50:]], 512)
    begins = sorted({800 * i for i in range(6)} | {800 * i + 200 for i in range(1, 6)})
    assert (rows.offsets - placement[0]).tolist() == begins


def test_what_repeats_itself_by_a_stride_of_zero_is_there_once() -> None:
    assert _rows(torch.zeros(256).expand(50, 256), 512)[2].lengths.tolist() == [1024]


def test_nothing_has_no_rows() -> None:
    for tree in (7, torch.zeros(0, 5), [torch.zeros(3, 0), np.zeros(0)]):
        rows = _rows(tree)[2]
        assert len(rows) == rows.num_bytes == 0
        assert rows.extents(np.zeros(0, dtype=bool)) == ()


def test_rows_ascend_whatever_the_order_of_the_storages_is() -> None:
    state = capture([torch.zeros(300), torch.zeros(200)])
    rows = rows_of(state.manifest, (8192, 0))
    assert rows.offsets.tolist() == [0, 8192]
    assert rows.lengths.tolist() == [800, 1200]


def test_rows_are_worked_out_once_for_a_state_that_stays_where_it_is() -> None:
    tree = {"cache": torch.zeros(30, 300), "cursor": 1}
    first = rows_of(capture(tree).manifest, (0,))
    assert rows_of(capture({**tree, "cursor": 2}).manifest, (0,)).offsets is first.offsets


def test_more_rows_than_a_message_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 100)
    assert len(_rows(torch.zeros(100, 256), 1024)[2]) == 100
    for tree in (torch.zeros(101, 256), [torch.zeros(60, 256), torch.zeros(61, 256)], torch.zeros(300, 256)):
        with pytest.raises(StateRefused, match="more than 100 rows"):
            _rows(tree, 1024)


def test_the_rows_of_a_leaf_are_found_by_its_path_or_by_that_of_what_it_is_in() -> None:
    tree = {"a": [torch.zeros(3, 200), torch.zeros(2, 200)], "ab": torch.zeros(4, 200), "n": 1}
    state, placement, rows = _rows(tree, 512)

    def found(path: str) -> list[list[int]]:
        return [which.tolist() for which in final_rows(rows, state.manifest, placement, path)]

    begins = rows.offsets.tolist()
    first, second, third = (begins.index(at) for at in placement)
    assert found("a") == [list(range(first, first + 3)), list(range(second, second + 2))]
    assert found("a[1]") == [list(range(second, second + 2))]
    assert found("ab") == [list(range(third, third + 4))]
    assert found("n") == found("b") == found("") == []


def test_where_a_rolled_row_was_follows_from_axis_and_stride() -> None:
    tree = {"mouse": torch.zeros(4, 6, 256), "keys": torch.zeros(10, 256), "other": torch.zeros(3, 256)}
    state, placement, rows = _rows(tree, 512)
    told = {"mouse": (1, 3, 0), "keys": (0, 2, 1), "other": (5, 1, 0), "none": (0, 1, 0)}
    shift = (rolled_from(rows, state.manifest, placement, told) - rows.offsets).tolist()
    by_place = dict(zip(rows.offsets.tolist(), shift, strict=True))
    mouse, keys, other = placement
    assert {by_place[mouse + 1024 * i] for i in range(24)} == {3 * 1024}
    assert {by_place[keys + 1024 * i] for i in range(10)} == {2 * 1024}
    assert by_place[other] == -1 - other


@pytest.mark.parametrize(
    ("num_bytes", "row_bytes"),
    [(0, 16), (17_040, 16), (200_000, 32), (1_000_000, 128), (12_582_912, 512), (1 << 40, 512)],
)
def test_a_small_state_is_looked_at_more_finely(num_bytes: int, row_bytes: int) -> None:
    assert min_row_bytes(num_bytes) == row_bytes


def test_leaves_that_lie_over_each_other_without_end_take_no_memory_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each may begin as many rows as a message holds; together they are cut where any of them begins one."""
    base = torch.zeros(4096, 32)
    found = _rows([base] * 3, 32)[2]
    monkeypatch.setattr(module, "MAX_ROWS", 4096)
    most: list[int] = []
    unique = np.unique

    def noted(numbers: Any) -> Any:
        most.append(len(numbers))
        return unique(numbers)

    monkeypatch.setattr(np, "unique", noted)
    many = _rows([base] * 40, 32)[2]
    assert (many.offsets.tolist(), many.lengths.tolist()) == (found.offsets.tolist(), found.lengths.tolist())
    assert max(most) < 6 * 4096
