"""What is trained by what: Muon for the hidden matrices of the layers, AdamW for everything else."""

import torch
from torch import nn

from training.muon import Muon
from worldmove.engine.reference.model import ReferenceModel

MUON_RATE = 0.02
ADAM_RATE = 2e-3


def initialise(model: ReferenceModel, seed: int) -> None:
    """Begin as the identity: branches and read-out add nothing, gates are open."""
    torch.manual_seed(seed)
    for name, parameter in model.named_parameters():
        if name.endswith("table") or "gains" in name:
            continue
        zero = name.endswith(("bias", "out.weight", "down.weight", "readout.weight")) or name.startswith("modulation")
        if zero:
            nn.init.zeros_(parameter)
        else:
            nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5 if parameter.dim() > 1 else 0.02)
    nn.init.normal_(model.place, std=0.02)
    for index in range(model.config.num_layers):
        with torch.no_grad():
            model.layer(index).table[[2, 5]] = 1.0


class Optimiser:
    """One ``step(fraction)`` of both, at a fraction of their full rates."""

    def __init__(self, model: ReferenceModel) -> None:
        layers = [model.layer(index) for index in range(model.config.num_layers)]
        hidden = [(m.weight, n) for la in layers for m, n in ((la.qkv, 3), (la.out, 1), (la.up, 1), (la.down, 1))]
        chosen = {id(weight) for weight, _ in hidden}
        rest = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
        self.muon = Muon(hidden)
        self.adam = torch.optim.AdamW(rest, lr=ADAM_RATE, betas=(0.9, 0.95), weight_decay=0.0, fused=rest[0].is_cuda)
        self.parameters = list(model.parameters())

    def step(self, fraction: float) -> None:
        for group in self.adam.param_groups:
            group["lr"] = ADAM_RATE * fraction
        self.adam.step()
        self.muon.step(MUON_RATE * fraction)
        for parameter in self.parameters:
            parameter.grad = None
