"""An engine of island's shape and speed whose weights are drawn: it needs no weights file, and shows noise."""

from worldmove.engine.reference.engine import ReferenceEngine
from worldmove.engine.reference.presets import island
from worldmove.engine.reference.weights import RandomWeights


def drawn_island(num_threads: int) -> ReferenceEngine:
    """Build it: ``--engine python:bench.engines:drawn_island``."""
    return ReferenceEngine(island(), weights=RandomWeights(seed=0), num_threads=num_threads)
