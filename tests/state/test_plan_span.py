"""A plan says what it reads, also when its groups have come to lie elsewhere; in one part and in two."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from bench.hot_path import NoLauncher
from worldmove.state.cuda_plan import PartedPlan
from worldmove.state.kernels import Copies, Fingerprints, Plan
from worldmove.state.kernels.tuning import Tuning
from worldmove.state.memory import Part

MIB = 1 << 20


@pytest.fixture
def kernels() -> Fingerprints:
    device = torch.device("cpu")
    return Fingerprints(device, copies=Copies(device, tuning=Tuning(), launcher_=NoLauncher()))


def reads(plan: Plan, *lines: tuple[int, int]) -> bool:
    return plan.reads(np.array(lines, dtype=np.int64).reshape(-1, 2))


def test_a_plan_reads_its_groups_where_they_lie_and_nothing_between(kernels: Fingerprints) -> None:
    plan = kernels.plan([[(4096, 100), (16384, 50)], [], [(MIB, 4096)]])
    assert reads(plan, (4195, 4196))
    assert reads(plan, (0, 10), (MIB - 1, MIB + 1))
    assert not reads(plan, (4196, 16384), (16434, MIB), (MIB + 4096, 2 * MIB))
    assert not reads(plan)
    plan.shift([(0, 1, 2 * MIB)])
    assert reads(plan, (2 * MIB + 4096, 2 * MIB + 4097))
    assert not reads(plan, (4096, 16434))
    assert not reads(kernels.plan([[]]), (0, MIB))


def groups(count: int) -> Sequence[Sequence[Part]]:
    return [[Part(MIB * (number + 1), 4096)] for number in range(count)]


@pytest.mark.parametrize(("early", "sizes"), [((), [5]), ((1, 3), [2, 3]), ((0, 1, 2, 3, 4), [5])])
def test_a_plan_has_a_part_of_what_comes_early_and_one_of_the_rest(
    kernels: Fingerprints, early: tuple[int, ...], sizes: list[int]
) -> None:
    parted = PartedPlan.of(groups(5), early, kernels)
    assert [plan.num_groups for plan in parted.plans] == sizes
    found = [numbers.astype("<u8").repeat(2).tobytes() for numbers, _ in parted.parts]  # 16 bytes for each group
    assert np.frombuffer(parted.joined(found), dtype="<u8")[::2].tolist() == [0, 1, 2, 3, 4]


def test_a_plan_of_nothing_has_one_part(kernels: Fingerprints) -> None:
    assert [plan.num_groups for plan in PartedPlan.of([], (), kernels).plans] == [0]


def test_a_shift_reaches_the_parts_that_its_groups_are_in(kernels: Fingerprints) -> None:
    early, rest = (parted := PartedPlan.of(groups(6), (0, 1, 2), kernels)).plans
    parted.shift(np.array([(2, 5, 64 * MIB)]))
    moved = [(number, MIB * (number + 1) + 64 * MIB) for number in (2, 3, 4)]
    assert [number for number, at in moved if reads(early, (at, at + 1))] == [2]
    assert [number for number, at in moved if reads(rest, (at, at + 1))] == [3, 4]
    assert reads(early, (2 * MIB, 2 * MIB + 1))
    assert reads(rest, (6 * MIB, 6 * MIB + 1))
    assert not reads(early, (3 * MIB, 3 * MIB + 1))
    assert not reads(rest, (4 * MIB, 4 * MIB + 1))


def test_the_groups_of_a_part_that_lie_between_those_of_the_other_are_shifted_alone(kernels: Fingerprints) -> None:
    early, rest = (parted := PartedPlan.of(groups(6), (0, 2, 4), kernels)).plans
    parted.shift(np.array([(1, 4, 64 * MIB), (5, 6, 128 * MIB)]))
    there = {0: 1, 1: 66, 2: 67, 3: 68, 4: 5, 5: 134}
    for number, at in there.items():
        assert reads(early, (MIB * at, MIB * at + 1)) is (number in (0, 2, 4))
        assert reads(rest, (MIB * at, MIB * at + 1)) is (number in (1, 3, 5))
