"""The transformer, apart from its attention: training and play attend differently and share all the rest.

A token is one tile of one frame. ``modulation`` tells every layer the noise level and the action of the
token's frame; it has one row for each frame, so tokens are viewed as [batch, frames, tiles, dim] there.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from worldmove.engine.reference.actions import ACTIONS
from worldmove.engine.reference.config import LayerShape, ReferenceConfig
from worldmove.engine.reference.rotary import rotate

LEVEL_WAVES = 32
EPSILON = 1e-6


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """Normalise each token's channels, then scale and shift them by its frame's modulation."""
    normal = x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + EPSILON)
    return torch.addcmul(shift, normal.unflatten(1, (shift.shape[1], -1)), 1 + scale).flatten(1, 2)


def add_gated(x: Tensor, gate: Tensor, change: Tensor) -> Tensor:
    """Add a branch's output, as much of it as the frame's modulation lets through."""
    frames = (gate.shape[1], -1)
    return torch.addcmul(x.unflatten(1, frames), gate, change.unflatten(1, frames)).flatten(1, 2)


class Layer(nn.Module):
    """One attention branch and one feed-forward branch."""

    def __init__(self, config: ReferenceConfig, shape: LayerShape) -> None:
        super().__init__()
        self.heads = (3, shape.num_heads, config.head_dim)
        attended = shape.num_heads * config.head_dim
        self.table = nn.Parameter(torch.zeros(6, config.dim))
        self.qkv = nn.Linear(config.dim, 3 * attended)
        self.gains = nn.Parameter(torch.ones(2, shape.num_heads, config.head_dim))
        self.out = nn.Linear(attended, config.dim)
        self.up = nn.Linear(config.dim, config.mlp_dim)
        self.down = nn.Linear(config.mlp_dim, config.dim)

    def project(self, x: Tensor, modulation: Tensor, turns: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys (both turned) and values: each [batch, tokens, heads, head_dim]."""
        shift, scale = modulation[..., 0, None, :], modulation[..., 1, None, :]
        qk, v = self.qkv(modulate(x, shift, scale)).unflatten(-1, self.heads).split((2, 1), dim=-3)
        qk = qk * torch.rsqrt(qk.square().mean(dim=-1, keepdim=True) + EPSILON) * self.gains
        q, k = rotate(qk, turns[:, :, None, None]).to(v.dtype).unbind(-3)
        return q, k, v.squeeze(-3)

    def finish(self, x: Tensor, attended: Tensor, modulation: Tensor) -> Tensor:
        """Add what attention brought, [batch, tokens, heads, head_dim], then the feed-forward branch."""
        gate, shift, scale, gate_mlp = (modulation[..., i, None, :] for i in (2, 3, 4, 5))
        x = add_gated(x, gate, self.out(attended.flatten(2)))
        hidden = F.relu(self.up(modulate(x, shift, scale)), inplace=True).square()
        return add_gated(x, gate_mlp, self.down(hidden))


class ReferenceModel(nn.Module):
    """Embeddings, layers and read-out. Predicts a block's clean picture from a noisy one (x-prediction)."""

    def __init__(self, config: ReferenceConfig) -> None:
        super().__init__()
        self.config = config
        self.patch = nn.Linear(config.patch_dim, config.dim)
        self.place = nn.Parameter(torch.zeros(config.tokens_per_frame, config.dim))
        actions = torch.empty(len(ACTIONS), config.dim)
        # A draw on the meta device, which holds no numbers, imports torch's compiler: three seconds of a start.
        self.action = nn.Embedding(len(ACTIONS), config.dim, _weight=actions if actions.is_meta else actions.normal_())
        self.level = nn.Linear(2 * LEVEL_WAVES, config.dim)
        self.mix = nn.Linear(config.dim, config.dim)
        self.modulation = nn.Linear(config.dim, 6 * config.dim)
        self.layers = nn.ModuleList(Layer(config, shape) for shape in config.layers)
        self.final_table = nn.Parameter(torch.zeros(2, config.dim))
        self.readout = nn.Linear(config.dim, config.patch_dim)

    def layer(self, index: int) -> Layer:
        layer = self.layers[index]
        assert isinstance(layer, Layer)
        return layer

    def embed(self, patches: Tensor) -> Tensor:
        """Tokens [batch, frames * tiles, dim] of patches [batch, frames, tiles, patch_dim]."""
        return (self.patch(patches) + self.place).flatten(1, 2)

    def condition(self, levels: Tensor, actions: Tensor) -> Tensor:
        """What all layers share of level and action: [..., 6, dim] from [...] and [...]."""
        waves = torch.exp(torch.linspace(0, math.log(200.0), LEVEL_WAVES, device=levels.device))
        turns = levels[..., None].float() * waves
        mixed = self.level(torch.cat((turns.cos(), turns.sin()), dim=-1)) + self.action(actions)
        shared: Tensor = self.modulation(F.silu(self.mix(F.silu(mixed)))).unflatten(-1, (6, -1))
        return shared

    def read(self, x: Tensor, shared: Tensor) -> Tensor:
        """The clean patches that the tokens stand for: [batch, frames, tiles, patch_dim]."""
        final = shared[..., :2, :] + self.final_table
        read = self.readout(modulate(x, final[..., 0, None, :], final[..., 1, None, :]))
        patches: Tensor = read.unflatten(1, (shared.shape[1], -1))
        return patches
