"""The settings under which equal inputs give equal bytes, on the device that a configuration names.

On a CUDA device all work of an engine is on one stream of its own, with a cuBLAS workspace of a fixed size, without
algorithms that are chosen by timing, and with one attention kernel. These settings are the process's.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.nn import functional as F

from worldmove.errors import UserError

WORKSPACE = ":4096:8"


def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention over [batch, rows, heads, head_dim]; returns [batch, rows, channels]."""
    attended = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
    return attended.transpose(1, 2).flatten(2)


def attend_briefly(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same over many batches of few rows, for which an attention kernel's tiles are far too large."""
    scores = torch.matmul(q.transpose(1, 2), k.permute(0, 2, 3, 1)) * q.shape[-1] ** -0.5
    return torch.matmul(scores.softmax(dim=-1), v.transpose(1, 2)).transpose(1, 2).flatten(2)


class Arithmetic:
    """Where and how one engine computes. Raises UserError for a CUDA device where there is none."""

    def __init__(self, device: str, num_threads: int) -> None:
        self._num_threads = num_threads
        self.device = torch.device(device)
        self._stream: torch.cuda.Stream | None = None
        if self.device.type == "cuda":
            self.device = _prepare_cuda(self.device.index)
            self._stream = torch.cuda.Stream(self.device)

    @contextmanager
    def engaged(self) -> Iterator[None]:
        """Compute under these settings. What was put on the device before is done before."""
        if torch.get_num_threads() != self._num_threads:
            torch.set_num_threads(self._num_threads)
        torch.set_flush_denormal(False)
        if self._stream is None:
            with torch.no_grad():
                yield
            return
        with torch.cuda.device(self.device):
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream), torch.no_grad():
                yield

    def to_host(self, result: Tensor) -> Tensor:
        """Wait for a result and return it in the host's memory."""
        if self._stream is None:
            return result
        # Memory that the device writes by itself, from torch's pool of such memory.
        host = torch.empty(result.shape, dtype=result.dtype, pin_memory=True)
        host.copy_(result, non_blocking=True)
        self._stream.synchronize()
        return host

    def finish(self) -> None:
        """Wait until nothing computes any more."""
        if self._stream is not None:
            self._stream.synchronize()


def _prepare_cuda(index: int | None) -> torch.device:
    """Make a CUDA device ready, the current one where none is named.

    The workspace must be named before cuBLAS is used for the first time.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", WORKSPACE)
    if not torch.cuda.is_available():
        raise UserError("This preset computes on a CUDA device, and torch finds none here.")
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.enable_flash_sdp(True)  # noqa: FBT003
    torch.backends.cuda.enable_mem_efficient_sdp(False)  # noqa: FBT003
    torch.backends.cuda.enable_math_sdp(False)  # noqa: FBT003
    torch.backends.cuda.enable_cudnn_sdp(False)  # noqa: FBT003
    torch.use_deterministic_algorithms(mode=True)
    # Nothing here reads memory that it has not written.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return torch.device("cuda", torch.cuda.current_device() if index is None else index)
