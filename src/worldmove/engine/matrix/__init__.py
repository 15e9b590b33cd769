"""The matrix engine: Matrix-Game 2.0's geometry, caches and pace, with drawn weights."""

from worldmove.engine.matrix import presets
from worldmove.engine.matrix.engine import MatrixEngine

__all__ = ["MatrixEngine", "matrix_game_2", "tiny"]


def matrix_game_2(num_threads: int = 1) -> MatrixEngine:
    """Noise at 352x640 px and 25 frames/s, from a state of 2.7 GB on a CUDA device. Raises UserError without one."""
    return MatrixEngine(presets.matrix_game_2(), num_threads=num_threads)


def tiny(num_threads: int = 1) -> MatrixEngine:
    """The same structure on the CPU, some ms a block: for tests."""
    return MatrixEngine(presets.tiny(), num_threads=num_threads)
