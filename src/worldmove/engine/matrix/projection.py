"""Pictures without a decoder: each latent becomes 8x8 pixels of four frames by one projection. It remembers nothing."""

from torch import Tensor
from torch.nn import functional as F

from worldmove.engine.matrix.config import FRAMES_PER_LATENT, PIXELS_PER_LATENT, MatrixConfig
from worldmove.engine.matrix.decoder import to_pixels
from worldmove.engine.matrix.decoder_weights import RGB
from worldmove.engine.matrix.weights import Draw, Linear


def draw_projection(config: MatrixConfig, draw: Draw) -> Linear:
    """Draw the projection."""
    return draw.linear(config.latent_channels, FRAMES_PER_LATENT * PIXELS_PER_LATENT**2 * RGB, gain=0.3)


def project(weights: Linear, latents: Tensor) -> Tensor:
    """Pictures uint8 [4 * frames, height, width, 3] of latents [frames, rows, columns, channels]."""
    side = PIXELS_PER_LATENT
    pixels = to_pixels(F.linear(latents, *weights)).unflatten(-1, (FRAMES_PER_LATENT, side, side, RGB))
    # [frame, row, column, picture, y, x, colour] -> [frame, picture, row, y, column, x, colour]
    return pixels.permute(0, 3, 1, 4, 2, 5, 6).flatten(4, 5).flatten(2, 3).flatten(0, 1).contiguous()
