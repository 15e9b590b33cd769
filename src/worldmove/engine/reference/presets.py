"""The models that the reference engine is configured as."""

from dataclasses import dataclass

from worldmove.engine.reference.config import LayerShape, ReferenceConfig, RotaryBand
from worldmove.engine.reference.weights import FOLDER, RandomWeights, WeightsFile

ISLAND_SHA256 = "100c07a124e933d366b2a2bc972073a8b96debea3b1a4cfe990ad78f0498382b"
"""Digest of the island weights that this version ships."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A named model: its shape, and where its weights come from unless the engine is told otherwise."""

    name: str
    config: ReferenceConfig
    weights: WeightsFile | RandomWeights


def island() -> Preset:
    """A drone over islands: 8x8 tiles of 8 px at 8 frames/s, remembering 48 frames. Trained by ``training/``."""
    config = ReferenceConfig(
        dim=256,
        head_dim=64,
        mlp_dim=1024,
        layers=3 * (LayerShape(window=8, num_heads=4), LayerShape(window=48, num_heads=2)),
        rows=8,
        columns=8,
        tile_px=8,
        frames_per_block=2,
        frames_per_s=8.0,
        levels=(1.0, 0.6),
        bands=(
            RotaryBand(num_pairs=12, fastest=2.6, slowest=0.03),
            RotaryBand(num_pairs=12, fastest=2.6, slowest=0.03),
            RotaryBand(num_pairs=8, fastest=1.5, slowest=0.01),
        ),
    )
    weights = WeightsFile(path=FOLDER / "island.safetensors", sha256=ISLAND_SHA256)
    return Preset(name="island", config=config, weights=weights)


def tiny() -> Preset:
    """For tests: noise instead of a world, a few ms a block, windows that roll after 2 and 4 blocks."""
    config = ReferenceConfig(
        dim=32,
        head_dim=16,
        mlp_dim=64,
        layers=(LayerShape(window=4, num_heads=2), LayerShape(window=8, num_heads=1)),
        rows=3,
        columns=3,
        tile_px=2,
        frames_per_block=2,
        frames_per_s=8.0,
        levels=(1.0, 0.5),
        bands=(
            RotaryBand(num_pairs=3, fastest=2.0, slowest=0.1),
            RotaryBand(num_pairs=3, fastest=2.0, slowest=0.1),
            RotaryBand(num_pairs=2, fastest=1.0, slowest=0.1),
        ),
    )
    return Preset(name="tiny", config=config, weights=RandomWeights(seed=0))
