"""The matrix engine: Matrix-Game 2.0's geometry, caches and pace, with drawn weights."""

from worldmove.engine.matrix import presets
from worldmove.engine.matrix.engine import MatrixEngine

__all__ = ["MatrixEngine", "matrix_game_2", "matrix_game_2_latents", "tiny", "tiny_latents"]


def matrix_game_2(num_threads: int = 1) -> MatrixEngine:
    """Noise at 352x640 px and 25 frames/s, from a state of 2.7 GB on a CUDA device. Raises UserError without one."""
    return MatrixEngine(presets.matrix_game_2(), num_threads=num_threads)


def matrix_game_2_latents(num_threads: int = 1) -> MatrixEngine:
    """The same without its decoder: a state of 1.67 GB, the attention caches, and pictures by a projection."""
    return MatrixEngine(presets.without_decoder(presets.matrix_game_2()), num_threads=num_threads)


def tiny(num_threads: int = 1) -> MatrixEngine:
    """The same structure on the CPU, some ms a block: for tests."""
    return MatrixEngine(presets.tiny(), num_threads=num_threads)


def tiny_latents(num_threads: int = 1) -> MatrixEngine:
    """``tiny`` without its decoder."""
    return MatrixEngine(presets.without_decoder(presets.tiny()), num_threads=num_threads)
