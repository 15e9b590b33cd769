"""One layer of the transformer: self-attention, cross-attention, the action module, a feed-forward branch."""

import torch
from torch import Tensor
from torch.nn import functional as F

from worldmove.engine.matrix.action_module import act
from worldmove.engine.matrix.arithmetic import attend
from worldmove.engine.matrix.caches import CROSS, Cache, store
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.rotary import rotate
from worldmove.engine.matrix.weights import LayerWeights
from worldmove.engine.matrix.workspace import Places, Workspace


def run_layer(config: MatrixConfig, weights: LayerWeights, space: Workspace, index: int, places: Places) -> None:
    """Take the workspace's tokens through one layer."""
    shift, scale, gate, mlp_shift, mlp_scale, mlp_gate = space.modulation[index].unbind()
    x = space.x
    normal = modulate(x, shift, scale)
    x = torch.addcmul(x, _self_attention(config, weights, space, index, places, normal), gate)
    x = x + _cross_attention(config, weights, space.caches[CROSS][index], x)
    if weights.action is not None:
        x = act(config, weights.action, space, index, places["mouse"], x)
    normal = modulate(x, mlp_shift, mlp_scale)
    # One kernel on a CUDA device, where a GELU of its own would read and write 47 MB once more.
    hidden = torch._addmm_activation(weights.up.bias, normal[0], weights.up.weight.T, use_gelu=True)
    torch.addcmul(x, F.linear(hidden, *weights.down), mlp_gate, out=space.x)


def modulate(x: Tensor, shift: Tensor, scale: Tensor) -> Tensor:
    """Normalise each token's channels, then scale and shift them."""
    return F.layer_norm(x, x.shape[-1:], scale, shift)


def _self_attention(
    config: MatrixConfig, weights: LayerWeights, space: Workspace, index: int, places: Places, normal: Tensor
) -> Tensor:
    """What the tokens see in the window, themselves included."""
    heads = (config.num_heads, config.head_dim)
    qkv = F.linear(normal, *weights.qkv).unflatten(-1, (3, config.dim))
    qk = F.rms_norm(qkv[:, :, :2], (config.dim,)).unflatten(-1, heads)
    q, k = rotate(qk, space.token_turns).unbind(2)
    seen = store(space.caches["self"][index], k, qkv[:, :, 2].unflatten(-1, heads), places["self"])
    return F.linear(attend(q.to(normal.dtype), *seen), *weights.out)


def _cross_attention(config: MatrixConfig, weights: LayerWeights, cache: Cache, x: Tensor) -> Tensor:
    """What the tokens see of the session's picture."""
    q = F.linear(F.layer_norm(x, (config.dim,)), *weights.cross_query)
    q = F.rms_norm(q, (config.dim,), weights.cross_gains[0]).unflatten(-1, (config.num_heads, config.head_dim))
    return F.linear(attend(q, cache["k"], cache["v"]), *weights.cross_out)


def fill(config: MatrixConfig, weights: LayerWeights, cache: Cache, context: Tensor) -> None:
    """Put new tensors in the place of a cross-attention cache's old ones. ``context``: [1, visual tokens, dim]."""
    k, v = F.linear(context, *weights.cross_key_value).unflatten(-1, (2, config.dim)).unbind(2)
    heads = (config.num_heads, config.head_dim)
    cache["k"] = F.rms_norm(k, (config.dim,), weights.cross_gains[1]).unflatten(-1, heads)
    cache["v"] = v.unflatten(-1, heads).contiguous()
    cache["is_init"] = True
