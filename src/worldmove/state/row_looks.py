"""What rows of an arena held at one moment, to be compared with what they hold now: where the arena's memory lies.

Nearly always nothing has changed, and then next to nothing comes back from a device.
"""

from typing import Protocol

import numpy as np
import torch

from worldmove.state.crossing import to_host
from worldmove.state.device_arena import DeviceArena
from worldmove.state.row_digests import Bytes, Digests, row_digests
from worldmove.state.rows import Numbers, Rows


class RowLook(Protocol):
    """One look at some rows. Nothing here is for the event loop's thread."""

    @property
    def rows(self) -> Rows: ...

    def digests(self) -> Digests:
        """Return what each row held then."""
        ...

    def changes(self) -> tuple[Numbers, Digests]:
        """Look again: return the numbers of the rows that hold something else now, ascending, and their digests."""
        ...


class HostLook:
    """Of host memory."""

    def __init__(self, memory: Bytes, rows: Rows) -> None:
        self.rows = rows
        self._memory = memory
        self._digests = row_digests(memory, rows)

    def digests(self) -> Digests:
        return self._digests

    def changes(self) -> tuple[Numbers, Digests]:
        now = row_digests(self._memory, self.rows)
        which = np.flatnonzero(now != self._digests)
        return which, now[which]


class DeviceLook:
    """Of a device's memory: what it held then stays there."""

    def __init__(self, arena: DeviceArena, rows: Rows) -> None:
        self.rows = rows
        self._arena = arena
        with arena.kit.apart():
            self._there = self._now()

    def digests(self) -> Digests:
        with self._arena.kit.apart():
            return to_host(self._there).view(np.uint64)

    def changes(self) -> tuple[Numbers, Digests]:
        with self._arena.kit.apart():
            now = self._now()
            which = torch.nonzero(now != self._there).flatten()
            found = to_host(torch.stack((which, now[which])))
        return found[0], found[1].view(np.uint64)

    def _now(self) -> torch.Tensor:
        return self._arena.kit.row_digests(self._arena.address, self.rows.offsets, self.rows.lengths)
