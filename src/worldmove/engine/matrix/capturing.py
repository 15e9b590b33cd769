"""Layers as CUDA graphs: a layer's hundred launches become one. Only the workspace's memory is in them.

A layer is captured once for each length of what it attends to; noise levels and sessions differ in what the
workspace holds, not in addresses. What is random, what puts new tensors in a session's places, and what happens once
a block stays outside.
"""

from collections.abc import Callable
from typing import Any

import torch

Key = tuple[int, int]
"""A layer's index, and how many rows of its cache are in use."""


class Player:
    """Runs a layer's work, from its graph once that was captured."""

    def __init__(self) -> None:
        self._graphs: dict[Key, torch.cuda.CUDAGraph] = {}
        self._pool: Any = None  # torch's name for its type is private

    def __call__(self, key: Key, work: Callable[[], None]) -> None:
        """Do the work that the key stands for."""
        graph = self._graphs.get(key)
        if graph is None:
            work()
        else:
            graph.replay()

    def capture(self, key: Key, work: Callable[[], None]) -> None:
        """Capture work that was done on this stream before, so that nothing in it happens for the first time."""
        graph = torch.cuda.CUDAGraph()
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        # Another thread may use the device meanwhile: only this one's calls are captured, or forbidden.
        graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
        work()
        graph.capture_end()
        self._graphs[key] = graph
