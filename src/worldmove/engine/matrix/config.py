"""What a matrix engine's model is: every number that shapes its arithmetic or its state."""

from dataclasses import dataclass

import torch

FRAMES_PER_LATENT = 4
"""Video frames of one latent frame: the decoder doubles time twice."""
PIXELS_PER_LATENT = 8
"""Pixels of one latent's side: the decoder doubles a picture three times."""
PATCH = 2
"""A token is a square of this many latents' side."""
MASK_CHANNELS = 4
"""Channels that say which frames are given and which are to be made."""
MOUSE_CHANNELS = 2
KEYBOARD_CHANNELS = 4
ACTION_WINDOW = 3
"""Latent frames whose actions one latent frame sees, itself included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionShape:
    """The action module: in which layers it works (the first ones), and its heads."""

    num_layers: int
    num_heads: int
    head_dim: int
    key_dim: int
    """Numbers that stand for one video frame's keys."""

    @property
    def dim(self) -> int:
        return self.num_heads * self.head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixConfig:
    """Shape of the model and of its sessions. Raises ValueError where the numbers do not fit together."""

    num_layers: int
    num_heads: int
    head_dim: int
    mlp_dim: int
    action: ActionShape
    rows: int
    columns: int
    """Of a latent frame."""
    latent_channels: int
    frames_per_block: int
    """Latent frames."""
    window: int
    """Latent frames that a cache holds, the current block included."""
    visual_tokens: int
    visual_dim: int
    levels: tuple[float, ...]
    """Noise levels of the denoise passes, falling from 1. A clean pass at level 0 follows them."""
    decoder_width: int | None
    """Channels at the decoder's full resolution. None: no decoder; pictures are a projection of each latent frame."""
    frames_per_s: float
    device: str
    dtype: torch.dtype
    decoder_dtype: torch.dtype

    def __post_init__(self) -> None:
        if self.rows % PATCH or self.columns % PATCH:
            raise ValueError("a latent frame must be whole tokens")
        if self.head_dim % 2 or self.action.head_dim % 2:
            raise ValueError("a head turns its channels in pairs")
        if self.window % self.frames_per_block or self.window <= self.frames_per_block:
            raise ValueError("a window must be two whole blocks or more")
        if self.action.num_layers > self.num_layers:
            raise ValueError("the action module works in layers that there are")
        if self.levels[:1] != (1.0,) or list(self.levels) != sorted(set(self.levels), reverse=True):
            raise ValueError("levels must fall from 1")
        if self.levels[-1] <= 0:
            raise ValueError("the clean pass adds level 0 by itself")

    @property
    def dim(self) -> int:
        return self.num_heads * self.head_dim

    @property
    def tokens_per_frame(self) -> int:
        """Tokens of one latent frame."""
        return (self.rows // PATCH) * (self.columns // PATCH)

    @property
    def tokens_per_block(self) -> int:
        return self.frames_per_block * self.tokens_per_frame

    @property
    def patch_dim(self) -> int:
        """Numbers in one token's latents."""
        return PATCH * PATCH * self.latent_channels

    @property
    def video_frames(self) -> int:
        """Frames of one block's pictures."""
        return self.frames_per_block * FRAMES_PER_LATENT

    @property
    def past_frames(self) -> int:
        """Video frames before a block whose actions the block still sees."""
        return (ACTION_WINDOW - 1) * FRAMES_PER_LATENT

    @property
    def height(self) -> int:
        return self.rows * PIXELS_PER_LATENT

    @property
    def width(self) -> int:
        return self.columns * PIXELS_PER_LATENT
