"""A block's latents as they are handed to a decoder elsewhere: their bytes, as the decoder takes them."""

import torch
from torch import Tensor

from worldmove.engine.matrix.config import MatrixConfig
from worldmove.errors import StateRefused


def packed(config: MatrixConfig, latents: Tensor) -> bytes:
    """Return the bytes of latents [frames, rows, columns, channels]. Waits for the device."""
    return latents.to(config.decoder_dtype).contiguous().cpu().view(torch.uint8).numpy().tobytes()


def unpacked(config: MatrixConfig, data: bytes, device: torch.device) -> Tensor:
    """Return latents of their bytes, on a device. Raises StateRefused for what is not as long as a block's are."""
    shape = (config.frames_per_block, config.rows, config.columns, config.latent_channels)
    expected = config.decoder_dtype.itemsize * shape[0] * shape[1] * shape[2] * shape[3]
    if len(data) != expected:
        raise StateRefused("", f"a block's latents have {expected:,} bytes, and {len(data):,} were handed on")
    return torch.frombuffer(bytearray(data), dtype=config.decoder_dtype).view(shape).to(device)
