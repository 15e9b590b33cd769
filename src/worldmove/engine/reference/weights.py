"""Weights: a pinned file or a seeded draw, and the digest that names them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from worldmove.engine.reference.config import ReferenceConfig
from worldmove.engine.reference.model import ReferenceModel
from worldmove.errors import WeightsError

FOLDER = Path(__file__).parent / "weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsFile:
    """A safetensors file. ``sha256`` pins its bytes; None takes any file of the right shape."""

    path: Path
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomWeights:
    """Weights drawn from a seed: they make noise, not a world, and need no file."""

    seed: int = 0


def load_model(config: ReferenceConfig, source: WeightsFile | RandomWeights) -> tuple[ReferenceModel, str]:
    """Make the model, in float32 and ready for play, and the SHA-256 that names its weights.

    Raises WeightsError if the file is missing, damaged, of another shape, or not the pinned one.
    """
    with torch.device("meta"):
        model = ReferenceModel(config)
    tensors: Mapping[str, Tensor]
    if isinstance(source, RandomWeights):
        tensors, sha256 = draw(model, source.seed), hashlib.sha256(f"seed {source.seed}".encode()).hexdigest()
    else:
        tensors, sha256 = read(source)
    wrong = [name for name, shape in shapes(model).items() if name not in tensors or tensors[name].shape != shape]
    if wrong or len(tensors) != len(shapes(model)):
        named = f" ({wrong[0]} does not fit)" if wrong else ""
        raise WeightsError(f"The weights are those of another model{named}; install worldmove again.")
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()}, assign=True)
    return model.requires_grad_(requires_grad=False).eval(), sha256


def read(source: WeightsFile) -> tuple[Mapping[str, Tensor], str]:
    """Read a weights file and check it against its pin."""
    try:
        data = source.path.read_bytes()
    except OSError as error:
        raise WeightsError(f"The weights {source.path} cannot be read; install worldmove again.") from error
    sha256 = hashlib.sha256(data).hexdigest()
    if source.sha256 not in (None, sha256):
        raise WeightsError(f"The weights {source.path} are not the ones this version pins; install worldmove again.")
    try:
        return load(data), sha256
    except SafetensorError as error:
        raise WeightsError(f"The weights {source.path} are damaged; install worldmove again.") from error


def shapes(model: ReferenceModel) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in model.state_dict().items()}


def draw(model: ReferenceModel, seed: int) -> dict[str, Tensor]:
    """Weights under which everything a session holds matters to its next frame. No global generator is touched."""
    generator = torch.Generator().manual_seed(seed)
    drawn = {name: torch.randn(shape, generator=generator) for name, shape in shapes(model).items()}
    for name, tensor in drawn.items():
        if name.endswith(("gains", "table")):
            tensor.mul_(0.1).add_(1)
        else:
            tensor.mul_(tensor.shape[-1] ** -0.5 if tensor.dim() > 1 else 0.1)
    return drawn
