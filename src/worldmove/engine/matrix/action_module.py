"""The action module: how the mouse and the keys of a block bend its tokens.

Each place in the picture attends to its own past through what the mouse did; every token attends to the keys of the
window's frames. Both have rolling caches, one row a latent frame.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from worldmove.engine.matrix.arithmetic import attend, attend_briefly
from worldmove.engine.matrix.caches import Place, store
from worldmove.engine.matrix.config import MatrixConfig
from worldmove.engine.matrix.rotary import rotate
from worldmove.engine.matrix.weights import ActionWeights
from worldmove.engine.matrix.workspace import Workspace


def act(config: MatrixConfig, weights: ActionWeights, space: Workspace, index: int, place: Place, x: Tensor) -> Tensor:
    """Add what the actions do to the tokens: [1, tokens, dim]."""
    normal = F.layer_norm(x, (config.dim,))
    x = x + _mouse(config, weights, space, index, place, normal)
    return x + _keyboard(config, weights, space, index, place, normal)


def _mouse(
    config: MatrixConfig, weights: ActionWeights, space: Workspace, index: int, place: Place, normal: Tensor
) -> Tensor:
    action = config.action
    frames = normal.view(config.frames_per_block, config.tokens_per_frame, config.dim)
    moved = F.linear(space.mouse, *weights.mouse)[:, None]
    qkv = F.linear(F.gelu(F.linear(frames, *weights.mix) + moved, approximate="tanh"), *weights.qkv)
    # [frames, places, 3, heads, head_dim], and from here on one sequence of frames for each place
    qkv = qkv.unflatten(-1, (3, action.num_heads, action.head_dim)).transpose(0, 1)
    q, k = rotate(F.rms_norm(qkv[:, :, :2], (action.head_dim,)), space.frame_turns).unbind(2)
    seen = store(space.caches["mouse"][index], k, qkv[:, :, 2], place)
    attended = attend_briefly(q.to(normal.dtype), *seen).transpose(0, 1)
    return F.linear(attended.flatten(0, 1)[None], *weights.mouse_out)


def _keyboard(
    config: MatrixConfig, weights: ActionWeights, space: Workspace, index: int, place: Place, normal: Tensor
) -> Tensor:
    heads = (config.action.num_heads, config.action.head_dim)
    q = F.linear(normal, *weights.query)
    q = q.view(config.frames_per_block, config.tokens_per_frame, *heads)
    q = rotate(F.rms_norm(q, heads[-1:]), space.frame_turns).to(normal.dtype).flatten(0, 1)[None]
    pressed = F.silu(F.linear(space.keyboard, *weights.key)).flatten(1)[None]
    k, v = F.linear(pressed, *weights.key_value).unflatten(-1, (2, *heads)).unbind(2)
    k = rotate(F.rms_norm(k, heads[-1:]), space.frame_turns[:, 0])
    return F.linear(attend(q, *store(space.caches["keyboard"][index], k, v, place)), *weights.keyboard_out)


def windows(controls: Tensor, size: int, step: int) -> Tensor:
    """What each latent frame sees of the controls: [frames, size, channels] of [video frames, channels]."""
    return torch.movedim(controls.unfold(0, size, step), -1, 1).contiguous()
