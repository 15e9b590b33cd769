"""One layer of the transformer: self-attention, cross-attention, the action module, a feed-forward branch."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from worldmove.engine.matrix.caches import Cache, Place, store
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.rotary import rotate
from worldmove.engine.matrix.weights import LayerWeights


class Modulation(NamedTuple):
    """How a noise level bends one layer: vectors [dim]. The scales have 1 added."""

    shift: Tensor
    scale: Tensor
    gate: Tensor
    mlp_shift: Tensor
    mlp_scale: Tensor
    mlp_gate: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What all layers share in one pass over a block."""

    tokens: Place
    """Where the block goes in the self-attention caches."""
    frames: Place
    """Where it goes in the action caches."""
    token_turns: Tensor
    frame_turns: Tensor
    mouse: Tensor
    """What each latent frame sees of the mouse: [frames, channels]."""
    keyboard: Tensor
    """What each latent frame sees of the keys: [frames, video frames, channels]."""
    context: Tensor | None
    """What the session looks like, [1, visual tokens, dim]; None once every layer has taken it in."""


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """Normalise each token's channels, then scale and shift them."""
    return torch.addcmul(shift, F.layer_norm(x, x.shape[-1:]), scale)


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention over [batch, rows, heads, head_dim]; returns [batch, rows, channels]."""
    attended = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
    return attended.transpose(1, 2).flatten(2)


def self_attention(
    config: MatrixConfig, weights: LayerWeights, modulation: Modulation, cache: Cache, shared: Pass, x: Tensor
) -> Tensor:
    """Add what the tokens see in the window, themselves included."""
    qkv = F.linear(modulate(x, modulation.shift, modulation.scale), *weights.qkv).unflatten(-1, (3, config.dim))
    qk = F.rms_norm(qkv[:, :, :2], (config.dim,)) * weights.gains
    heads = (config.num_heads, config.head_dim)
    q, k = rotate(qk.unflatten(-1, heads), shared.token_turns).unbind(2)
    seen = store(cache, k, qkv[:, :, 2].unflatten(-1, heads), shared.tokens)
    return torch.addcmul(x, F.linear(attend(q, *seen), *weights.out), modulation.gate)


def cross_attention(config: MatrixConfig, weights: LayerWeights, cache: Cache, shared: Pass, x: Tensor) -> Tensor:
    """Add what the tokens see of the session's picture."""
    if not cache["is_init"] and shared.context is not None:
        fill(config, weights, cache, shared.context)
    heads = (config.num_heads, config.head_dim)
    q = F.rms_norm(F.linear(F.layer_norm(x, (config.dim,)), *weights.cross_query), (config.dim,))
    q = (q * weights.cross_gains[0]).unflatten(-1, heads)
    return x + F.linear(attend(q, cache["k"], cache["v"]), *weights.cross_out)


def fill(config: MatrixConfig, weights: LayerWeights, cache: Cache, context: Tensor) -> None:
    """Put new tensors in the place of a cross-attention cache's old ones."""
    k, v = F.linear(context, *weights.cross_key_value).unflatten(-1, (2, config.dim)).unbind(2)
    heads = (config.num_heads, config.head_dim)
    cache["k"] = (F.rms_norm(k, (config.dim,)) * weights.cross_gains[1]).unflatten(-1, heads)
    cache["v"] = v.unflatten(-1, heads).contiguous()
    cache["is_init"] = True


def feed_forward(weights: LayerWeights, modulation: Modulation, x: Tensor) -> Tensor:
    """Add the feed-forward branch."""
    hidden = F.linear(modulate(x, modulation.mlp_shift, modulation.mlp_scale), *weights.up)
    return torch.addcmul(x, F.linear(F.gelu(hidden, approximate="tanh"), *weights.down), modulation.mlp_gate)
