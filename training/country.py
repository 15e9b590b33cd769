"""Maps of islands: periodic noise for height and wetness, roads, towns. A fresh map for every sequence."""

import torch
from torch import Tensor
from torch.nn import functional as F

from training.tiles import CLASSES, NUM_TEXTURES

SIDE = 96
INDEX = {name: index for index, name in enumerate(CLASSES)}


def noise(count: int, octaves: dict[int, float], generator: torch.Generator) -> Tensor:
    """Smooth noise on a torus, about unit variance: [count, SIDE, SIDE]. ``octaves``: bumps a side -> weight."""
    device = generator.device
    total = torch.zeros(count, SIDE, SIDE, device=device)
    for bumps, weight in octaves.items():
        lattice = torch.randn(count, 1, bumps, bumps, generator=generator, device=device)
        step, margin = SIDE // bumps, 2
        padded = F.pad(lattice, (margin, margin, margin, margin), mode="circular")
        smooth = F.interpolate(padded, scale_factor=step, mode="bicubic", align_corners=False)
        total += weight * smooth[:, 0, margin * step : -margin * step, margin * step : -margin * step]
    return total / (0.72 * sum(weight**2 for weight in octaves.values()) ** 0.5)


def maps(count: int, generator: torch.Generator) -> Tensor:
    """Plain tile indices (class * 4 + texture): int64 [count, SIDE, SIDE]."""
    device = generator.device
    height = noise(count, {8: 1.0, 16: 0.5, 32: 0.2}, generator)
    wetness = noise(count, {8: 1.0, 16: 0.5}, generator)
    road = noise(count, {6: 1.0, 12: 0.3}, generator)
    town = noise(count, {12: 1.0}, generator)
    dice = torch.rand(count, SIDE, SIDE, generator=generator, device=device)

    kinds = torch.full((count, SIDE, SIDE), INDEX["grass"], device=device)
    rules = (
        ("forest", wetness > 0.35),
        ("meadow", wetness < -0.5),
        ("house", (town > 1.0) & (dice < 0.45)),
        ("barn", (town > 1.0) & (dice > 0.88)),
        ("path", road.abs() < 0.1),
        ("rock", height > 1.1),
        ("snow", height > 1.65),
        ("sand", height < -0.1),
        ("shallow", height < -0.3),
        ("deep", height < -0.85),
    )
    for name, where in rules:
        kinds[where] = INDEX[name]
    textures = torch.randint(NUM_TEXTURES, kinds.shape, generator=generator, device=device)
    return kinds * NUM_TEXTURES + textures
