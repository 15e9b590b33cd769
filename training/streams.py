"""Both streams of training: clean pictures that write memory, and noisy ones that read it.

A sequence is run in two passes over all its blocks at once. ``write`` gives every layer's keys and values of
the clean blocks, each block seeing those of its window; ``read`` guesses clean pictures from noisy ones,
each block seeing itself and the clean blocks before it. The rolling caches of play compute the same.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from worldmove.engine.reference.config import ReferenceConfig
from worldmove.engine.reference.model import ReferenceModel
from worldmove.engine.reference.rotary import angles, rotation

Context = list[tuple[Tensor, Tensor]]
"""Keys and values of the clean stream, one pair a layer: [batch, tokens, heads, head_dim]."""

Attend = Callable[[Tensor, Tensor, Tensor, Any], Tensor]


def sees(config: ReferenceConfig, window: int, num_frames: int) -> dict[str, Callable[..., Tensor]]:
    """Which key a query sees, by token index, in ``write`` and in ``read`` (keys: clean stream, then noisy stream)."""
    block = config.tokens_per_block
    blocks = window // config.frames_per_block
    length = num_frames * config.tokens_per_frame

    def write(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        mine, its = query // block, key // block
        return (its <= mine) & (its > mine - blocks)

    def read(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        mine, its = query // block, key % length // block
        own = (key >= length) & (its == mine)
        past = (key < length) & (its < mine) & (its > mine - blocks)
        return own | past

    return {"write": write, "read": read}


def flex(q: Tensor, k: Tensor, v: Tensor, mask: BlockMask) -> Tensor:
    """Attention for a GPU, inside a compiled graph: [batch, tokens, heads, head_dim]."""
    out = flex_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), block_mask=mask)
    assert isinstance(out, Tensor)
    return out.transpose(1, 2)


def dense(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """The same with a mask written out, for small models on any device."""
    out = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), attn_mask=mask)
    return out.transpose(1, 2)


class Streams:
    """How to attend, for one sequence length: the masks, and the function that uses them."""

    def __init__(self, config: ReferenceConfig, num_frames: int, device: str) -> None:
        self.config = config
        self.num_frames = num_frames
        self.attend: Attend = flex if device == "cuda" else dense
        length = num_frames * config.tokens_per_frame
        make = block_mask if device == "cuda" else dense_mask
        masks = {
            window: {
                "write": make(config, rules["write"], length, length, device),
                "read": make(config, rules["read"], length, 2 * length, device),
            }
            for window in {layer.window for layer in config.layers}
            for rules in [sees(config, window, num_frames)]
        }
        self.write_masks = [masks[layer.window]["write"] for layer in config.layers]
        self.read_masks = [masks[layer.window]["read"] for layer in config.layers]

    def turns(self, poses: Tensor) -> Tensor:
        """Turns of every token of sequences that begin at frame 0."""
        frames = torch.arange(self.num_frames, device=poses.device)
        return rotation(angles(self.config, poses, frames)).flatten(1, 2)

    def write(self, model: ReferenceModel, clean: Tensor, actions: Tensor, turns: Tensor) -> Context:
        """Keys and values of clean pictures [batch, frames, tiles, patch_dim], as play's clean pass writes them."""
        shared = model.condition(torch.zeros_like(actions, dtype=torch.float32), actions)
        x = model.embed(clean)
        context: Context = []
        for index, mask in enumerate(self.write_masks):
            layer = model.layer(index)
            modulation = shared + layer.table
            q, k, v = layer.project(x, modulation, turns)
            context.append((k, v))
            if index + 1 < self.config.num_layers:
                x = layer.finish(x, self.attend(q, k, v, mask), modulation)
        return context

    def read(
        self, model: ReferenceModel, noisy: Tensor, levels: Tensor, actions: Tensor, turns: Tensor, context: Context
    ) -> Tensor:
        """Clean patches guessed from noisy ones; ``levels``: float32 [batch, frames]."""
        shared = model.condition(levels, actions)
        x = model.embed(noisy)
        for index, mask in enumerate(self.read_masks):
            layer = model.layer(index)
            modulation = shared + layer.table
            q, k, v = layer.project(x, modulation, turns)
            past_k, past_v = context[index]
            attended = self.attend(q, torch.cat((past_k, k), dim=1), torch.cat((past_v, v), dim=1), mask)
            x = layer.finish(x, attended, modulation)
        return model.read(x, shared)


def block_mask(config: ReferenceConfig, rule: Callable[..., Tensor], queries: int, keys: int, device: str) -> BlockMask:
    return create_block_mask(rule, None, None, queries, keys, device=device, BLOCK_SIZE=config.tokens_per_block)


def dense_mask(config: ReferenceConfig, rule: Callable[..., Tensor], queries: int, keys: int, device: str) -> Tensor:
    none = torch.zeros(1, dtype=torch.int64, device=device)
    q, k = torch.arange(queries, device=device)[:, None], torch.arange(keys, device=device)[None, :]
    return rule(none, none, q, k)
