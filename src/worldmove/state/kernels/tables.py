"""The tables of keys that are in use, in device memory."""

import numpy as np
import torch

from worldmove.state.kernels.memory import Mirror
from worldmove.state.wmf1 import ROW_WORDS, Table

SLOTS = 8
_WORDS = 2 * ROW_WORDS + 8


class Tables:
    """Room for a few tables, taken in turn. Nothing is allocated after the constructor."""

    def __init__(self, device: torch.device) -> None:
        self._free = [Mirror(_WORDS, device) for _ in range(SLOTS)]
        self._by_key: dict[bytes, Mirror] = {}

    def place(self, table: Table) -> Mirror:
        """Return the table's place. One that has none is written over the table that was used longest ago."""
        mirror = self._by_key.pop(table.key, None)
        if mirror is None:
            mirror = self._free.pop() if self._free else self._by_key.pop(next(iter(self._by_key)))
            numbers = np.concatenate((table.a, table.b, table.k)).view(np.int64)
            mirror.numbers()[: len(numbers)] = numbers
        self._by_key[table.key] = mirror
        return mirror
