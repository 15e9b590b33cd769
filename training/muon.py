"""Muon for hidden matrices: momentum, made orthogonal by Newton-Schulz steps; equal shapes go together."""

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

STEPS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonal(matrices: Tensor) -> Tensor:
    """Nearly orthogonal matrices with the same row and column spaces: [count, rows, columns]."""
    a, b, c = COEFFICIENTS
    tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if tall else matrices
    x = x.bfloat16() if x.is_cuda else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if tall else x).float()


class Muon:
    """Momentum 0.95 (Nesterov). ``views`` are the matrices: parameters, or slices of them along their rows."""

    def __init__(self, parameters: Sequence[tuple[Tensor, int]], momentum: float = 0.95) -> None:
        """``parameters``: each with the number of equal matrices that lie stacked in its rows."""
        self.momentum = momentum
        self.groups: dict[tuple[int, int], list[tuple[Tensor, int, int]]] = defaultdict(list)
        for parameter, parts in parameters:
            rows = parameter.shape[0] // parts
            for part in range(parts):
                self.groups[(rows, parameter.shape[1])].append((parameter, part * rows, (part + 1) * rows))
        self.buffers = {
            shape: torch.zeros(len(views), *shape, device=views[0][0].device) for shape, views in self.groups.items()
        }

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for (rows, columns), views in self.groups.items():
            gradients = torch.stack([gradient_of(parameter)[start:stop] for parameter, start, stop in views]).float()
            buffer = self.buffers[(rows, columns)]
            buffer.lerp_(gradients, 1 - self.momentum)
            change = orthogonal(torch.lerp(gradients, buffer, self.momentum)) * -rate * max(1.0, rows / columns) ** 0.5
            torch._foreach_add_([parameter[start:stop] for parameter, start, stop in views], list(change.unbind()))


def gradient_of(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad
