"""Planning and launching for device memory, over a launcher that runs the programs in numpy on the CPU.

What the programs themselves compute is tested on a device: ``tests/gpu``.
"""

import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.state.host_launcher import HostLauncher
from tests.state.kernel_cases import (
    CASES,
    ROW,
    TABLE,
    addressed,
    check_copies,
    check_copying,
    check_row_digests,
    check_strided_copies,
    kernel,
    noise,
    row_major,
    strided,
    twin,
)
from worldmove.errors import UserError
from worldmove.state.kernels import Copies, Fingerprints, RowPrints, Tuning, leaf_bytes, strides
from worldmove.state.kernels.load import launcher
from worldmove.state.kernels.shares import deal
from worldmove.state.wmf1 import GROUP_ROWS, Table, bytes_digest, group_digest

CPU = torch.device("cpu")


def test_without_its_package_the_kernels_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.delitem(sys.modules, "worldmove.state.kernels.cuda", raising=False)
    with pytest.raises(UserError, match="need cuda-bindings"):
        launcher(CPU, {})


@pytest.mark.parametrize("overhead", [0, 3])
@pytest.mark.parametrize("num_programs", [1, 2, 3, 7, 528])
@pytest.mark.parametrize("tiles", [[], [0], [1], [5, 0, 0, 3], [0, 0, 9], [1] * 50, [1000, 1, 1000]])
def test_a_deal_covers_every_tile_once_and_is_even(tiles: list[int], num_programs: int, overhead: int) -> None:
    work = deal(np.array(tiles, dtype=np.int64), num_programs, overhead=overhead)
    assert len(work.line) <= len(tiles) + num_programs
    assert work.bounds[0] == 0
    assert work.bounds[-1] == len(work.line)
    dealt = [
        (line, tile + step)
        for line, tile, count in zip(work.line.tolist(), work.tile.tolist(), work.num_tiles.tolist(), strict=True)
        for step in range(count)
    ]
    assert dealt == [(line, tile) for line, count in enumerate(tiles) for tile in range(count)]
    each = [int(work.num_tiles[b:e].sum()) for b, e in zip(work.bounds[:-1], work.bounds[1:], strict=True)]
    most = sum(tiles) / num_programs + overhead * np.count_nonzero(tiles) / num_programs + 1
    assert max(each) <= most


def test_small_lines_are_dealt_to_many_programs() -> None:
    """A warp takes far longer for a hundred small groups than for as many rows of one."""
    work = deal(np.array([4000] + [1] * 180, dtype=np.int64), 10, overhead=3)
    shares = np.diff(work.bounds)
    rows = [int(work.num_tiles[b:e].sum()) for b, e in zip(work.bounds[:-1], work.bounds[1:], strict=True)]
    assert max(row + 3 * share for row, share in zip(rows, shares, strict=True)) <= 472 + 6


def test_leaf_bytes_are_the_elements_in_row_major_order() -> None:
    for name, view in strided(CPU).items():
        assert leaf_bytes(view).numpy().tobytes() == row_major(view), name


def test_leaf_bytes_of_a_leaf_in_order_are_no_copy() -> None:
    leaf = torch.arange(12.0).reshape(3, 4)
    assert leaf_bytes(leaf).data_ptr() == leaf.data_ptr()


def test_leaf_bytes_do_not_see_conjugate_and_negative_bits() -> None:
    leaf = torch.randn(5, dtype=torch.complex64)
    assert torch.equal(leaf_bytes(leaf.conj()), leaf_bytes(leaf))
    assert torch.equal(leaf_bytes(leaf.conj().imag), leaf_bytes(leaf.imag))


@pytest.fixture(scope="module")
def kernels() -> Fingerprints:
    return Fingerprints(CPU, launcher_=HostLauncher())


@pytest.mark.parametrize("case", CASES)
def test_digests_are_the_twins(kernels: Fingerprints, case: str) -> None:
    memory = noise(64 * ROW, CPU)
    for first_index in (0, 1, 77):
        assert kernel(kernels, memory, CASES[case], first_index) == twin(memory, CASES[case], first_index)


def test_digest_of_a_whole_group_is_the_twins(kernels: Fingerprints) -> None:
    memory = noise((GROUP_ROWS + 1) * ROW, CPU)
    for group in ([(0, GROUP_ROWS * ROW)], [(16, GROUP_ROWS * ROW)], [(32, GROUP_ROWS * ROW - 16)]):
        assert kernel(kernels, memory, [group]) == twin(memory, [group])


def test_digest_of_a_leaf_is_the_twins_however_long_it_is(kernels: Fingerprints) -> None:
    memory = noise(300 * ROW, CPU)
    leaves = [(0, 270 * ROW + 16), (ROW + 3, 500), (0, 0)]
    host = memory.numpy()
    plan = kernels.plan_leaves([(memory.data_ptr() + begin, length) for begin, length in leaves])
    want = tuple(bytes_digest(TABLE, host[begin : begin + length].tobytes()) for begin, length in leaves)
    assert kernels.launch(plan, TABLE).result() == want


@pytest.mark.parametrize("tuning", [Tuning(warps=1), Tuning(warps=5, blocks=3), Tuning(copy_threads=32, unroll=1)])
def test_digests_do_not_depend_on_the_tuning(tuning: Tuning) -> None:
    memory = noise(64 * ROW, CPU)
    kernels = Fingerprints(CPU, tuning=tuning, launcher_=HostLauncher())
    for case in ("whole tiles and a rest", "several extents"):
        assert kernel(kernels, memory, CASES[case]) == twin(memory, CASES[case])


@pytest.mark.parametrize("shift", [0, 16, 4, 1])
def test_launch_that_copies_writes_what_it_digests(kernels: Fingerprints, shift: int) -> None:
    for case in ("whole tiles and a rest", "several extents", "lengths that are no multiple of 16"):
        check_copying(kernels, noise(64 * ROW, CPU), CASES[case], shift)


def test_copies_of_every_alignment_arrive() -> None:
    copies = Copies(CPU, tuning=Tuning(copy_threads=32, unroll=1), launcher_=HostLauncher())
    check_copies(copies, CPU, [0, 1, 2, 15, 16, 17, 31, 33, 64, 200, 333, 2000])


def test_plan_follows_groups_to_other_addresses(kernels: Fingerprints) -> None:
    memory = noise(64 * ROW, CPU)
    groups = [[(0, 2 * ROW)], [(8 * ROW, ROW)], [(16 * ROW + 1, 100), (17 * ROW, 28)]]
    plan = kernels.plan(addressed(memory, groups))
    for first, end, by in ((0, 1, 20 * ROW), (1, 2, 3), (1, 3, 13 * ROW), (1, 2, -3), (0, 3, 16), (2, 2, 5)):
        plan.shift([(first, end, by)])
        groups[first:end] = [[(at + by, length) for at, length in group] for group in groups[first:end]]
        assert kernels.launch(plan, TABLE).result() == twin(memory, groups)


def test_plan_sees_what_is_there_when_it_is_launched(kernels: Fingerprints) -> None:
    memory = noise(64 * ROW, CPU)
    groups = [[(0, ROW)], [(2 * ROW + 1, ROW)]]
    plan = kernels.plan(addressed(memory, groups))
    kernels.launch(plan, TABLE)
    for at in (5, 2 * ROW + 9):
        before = kernels.launch(plan, TABLE).result()
        memory[at] ^= 1
        after = kernels.launch(plan, TABLE).result()
        assert after == twin(memory, groups)
        assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def test_launches_with_more_keys_than_there_is_room_for(kernels: Fingerprints) -> None:
    memory = noise(4 * ROW, CPU)
    plan = kernels.plan(addressed(memory, [[(0, ROW)]]))
    keys = [bytes([number]) * 32 for number in range(10)]
    found = [kernels.launch(plan, Table.of(key)).result() for key in keys]
    assert len(set(found)) == 10
    assert [kernels.launch(plan, Table.of(key)).result() for key in keys] == found


def test_digests_that_a_later_launch_wrote_over_are_not_returned(kernels: Fingerprints) -> None:
    plan = kernels.plan(addressed(noise(ROW, CPU), [[(0, ROW)]]))
    first = kernels.launch(plan, TABLE)
    kernels.launch(plan, TABLE)
    third = kernels.launch(plan, TABLE)
    with pytest.raises(RuntimeError, match="launched again"):
        first.result()
    assert third.joined() == third.result()[0]


def test_of_two_launches_of_one_plan_each_has_what_it_has_read(kernels: Fingerprints) -> None:
    memory = noise(ROW, CPU)
    plan = kernels.plan(addressed(memory, [[(0, ROW)]]))
    for _ in range(2):  # whichever of the two places comes first
        first, before = kernels.launch(plan, TABLE), bytes(memory.numpy())
        memory[5] ^= 1
        second, after = kernels.launch(plan, TABLE), bytes(memory.numpy())
        expected = [group_digest(TABLE, each, 0) for each in (before, after)]
        assert [first.joined(), second.joined()] == expected
        third = kernels.launch(plan, TABLE)
        assert [second.joined(), third.joined()] == [expected[1], expected[1]]


def test_plan_refuses_a_group_that_is_too_large(kernels: Fingerprints) -> None:
    with pytest.raises(ValueError, match="at most 1048576 bytes, not 1048577"):
        kernels.plan([[(0, GROUP_ROWS * ROW + 1)]])


def test_copies_of_pieces_at_equal_steps_arrive() -> None:
    check_strided_copies(Copies(CPU, launcher_=HostLauncher()), CPU)


def test_rows_of_every_alignment_have_the_digests_of_their_twins() -> None:
    check_row_digests(RowPrints(Copies(CPU, launcher_=HostLauncher())), CPU)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 2)), max_size=40))
def test_pieces_at_equal_steps_are_the_pieces_that_they_were(pieces: list[tuple[int, int, int]]) -> None:
    table = np.cumsum(np.array(pieces, dtype=np.int64).reshape(-1, 3), axis=0)
    sources, targets, lengths = table[:, 0], table[:, 1], np.array([piece[2] for piece in pieces], dtype=np.int64)
    found = strides.strided(sources, targets, lengths)
    told = [
        (int(source + number * step), int(target + number * other), int(length))
        for source, target, length, count, step, other, _ in zip(*found, strict=True)
        for number in range(count)
    ]
    assert told == list(zip(sources.tolist(), targets.tolist(), lengths.tolist(), strict=True))
    assert found.first.tolist() == (np.cumsum(found.counts) - found.counts).tolist()


def test_the_lines_of_many_caches_are_a_line_of_the_table_each() -> None:
    begins = np.add.outer(np.arange(60) * (1 << 24), np.arange(880) * 12288).reshape(-1)
    assert len(strides.strided(begins + 6144, begins, np.full(len(begins), 6144)).counts) <= 61
