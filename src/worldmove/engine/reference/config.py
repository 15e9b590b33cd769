"""What a reference engine's model is: every number that shapes its arithmetic or its state."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RotaryBand:
    """Channel pairs that turn with one coordinate, from ``fastest`` to ``slowest`` radians a unit, geometrically."""

    num_pairs: int
    fastest: float
    slowest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerShape:
    """One layer's attention: how many frames it sees, the current block included, and with how many heads."""

    window: int
    num_heads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceConfig:
    """Shape of the model and of its sessions. Raises ValueError where the numbers do not fit together."""

    dim: int
    head_dim: int
    mlp_dim: int
    layers: tuple[LayerShape, ...]
    rows: int
    columns: int
    tile_px: int
    frames_per_block: int
    frames_per_s: float
    levels: tuple[float, ...]
    """Noise levels of the denoise passes, falling from 1. A clean pass at level 0 follows them."""
    bands: tuple[RotaryBand, RotaryBand, RotaryBand]
    """How keys turn with y, x (tiles) and t (frames)."""

    def __post_init__(self) -> None:
        if sum(band.num_pairs for band in self.bands) * 2 != self.head_dim:
            raise ValueError("the rotary bands must use every channel pair of a head once")
        windows = [layer.window for layer in self.layers]
        if not windows or any(w % self.frames_per_block or w <= self.frames_per_block for w in windows):
            raise ValueError("a window must be two whole blocks or more")
        if not self.levels or self.levels[0] != 1.0 or list(self.levels) != sorted(set(self.levels), reverse=True):
            raise ValueError("levels must fall from 1")
        if self.levels[-1] <= 0:
            raise ValueError("the clean pass adds level 0 by itself")

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    @property
    def tokens_per_frame(self) -> int:
        """One token is one tile."""
        return self.rows * self.columns

    @property
    def tokens_per_block(self) -> int:
        return self.frames_per_block * self.tokens_per_frame

    @property
    def patch_dim(self) -> int:
        """Numbers in one token's picture: RGB of one tile."""
        return 3 * self.tile_px * self.tile_px

    @property
    def height(self) -> int:
        return self.rows * self.tile_px

    @property
    def width(self) -> int:
        return self.columns * self.tile_px

    def cache_rows(self, layer: int) -> int:
        """Rows of one layer's caches: one for each token of its window."""
        return self.layers[layer].window * self.tokens_per_frame
