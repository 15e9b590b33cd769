"""A plan says from where to where it reads, also when its groups have come to lie elsewhere."""

import torch

from bench.hot_path import NoLauncher
from worldmove.state.kernels import Copies, Fingerprints
from worldmove.state.kernels.tuning import Tuning


def test_a_plans_span_is_that_of_its_groups_and_moves_with_them() -> None:
    device = torch.device("cpu")
    kernels = Fingerprints(device, copies=Copies(device, tuning=Tuning(), launcher_=NoLauncher()))
    plan = kernels.plan([[(4096, 100), (16384, 50)], [], [(1 << 20, 4096)]])
    assert plan.span == (4096, (1 << 20) + 4096)
    plan.shift([(0, 1, 1 << 21)])
    assert plan.span == (1 << 20, (1 << 21) + 16384 + 50)
    assert kernels.plan([[]]).span == (0, 0)
