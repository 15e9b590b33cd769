"""The training code runs: a small model takes a step of each phase on the CPU."""

from dataclasses import replace

import pytest
import torch

from training.log import Log
from training.muon import orthogonal
from training.optimiser import initialise
from training.phases import decide, flow, straighten
from training.trainer import Trainer, TrainingConfig
from training.walks import walks
from worldmove.engine.reference.config import LayerShape
from worldmove.engine.reference.model import ReferenceModel
from worldmove.engine.reference.presets import island

LAYERS = (LayerShape(window=4, num_heads=1),)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_step_of_each_phase_changes_all_weights() -> None:
    torch.set_num_threads(1)
    model = ReferenceModel(replace(island().config, dim=32, mlp_dim=32, layers=LAYERS))
    initialise(model, 0)
    settings = TrainingConfig(batch=1, num_frames=4, device="cpu", seconds=(1e6, 1e6, 1e6), steps=(2, 2, 1))
    trainer, log = Trainer(model, settings, walks(4, 4, seed=0)), Log()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    flow(trainer, log)
    student = straighten(trainer, log)
    decide(trainer, student, log)
    after = student.state_dict()
    assert all(tensor.isfinite().all() for tensor in after.values())
    assert not [name for name, tensor in before.items() if torch.equal(tensor, after[name])]


def test_muon_makes_matrices_nearly_orthogonal() -> None:
    matrices = torch.randn(3, 8, 20, generator=torch.Generator().manual_seed(0))
    values = torch.linalg.svdvals(orthogonal(matrices))
    assert values.min() > 0.5
    assert values.max() < 1.4
