"""The reference engine: one block-causal few-step diffusion transformer, configured by presets."""

from worldmove.engine.reference import presets
from worldmove.engine.reference.engine import ReferenceEngine

__all__ = ["ReferenceEngine", "island", "tiny"]


def island(num_threads: int = 1) -> ReferenceEngine:
    """A drone over islands, from the weights that this version ships. Raises WeightsError."""
    return ReferenceEngine(presets.island(), num_threads=num_threads)


def tiny(num_threads: int = 1) -> ReferenceEngine:
    """Noise instead of a world, a few ms a block: for tests."""
    return ReferenceEngine(presets.tiny(), num_threads=num_threads)
