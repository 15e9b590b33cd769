"""Rows of a device's memory, held and asked for there: what ``state.held`` does in host memory, by torch.

Only runs come back, and the digests once. Engines' hints are not asked for: they would cost more than they save.
"""

from dataclasses import replace

import numpy as np
import torch

from worldmove.state.crossing import to_device, to_host
from worldmove.state.device_arena import DeviceArena
from worldmove.state.held import Found, Hints, Mask, Moved, everything_in_place
from worldmove.state.row_digests import Digests
from worldmove.state.rows import Numbers, Rows
from worldmove.state.runs import Runs


class DeviceHeld:
    """What lies in the rows of an arena now (``held.Holding``). Made before the boundary: it sorts."""

    def __init__(self, arena: DeviceArena, rows: Rows) -> None:
        self._kit = arena.kit
        self._arena = arena
        self._rows = rows
        with self._kit.apart() as device:
            self._digests_there = self._kit.row_digests(arena.address, rows.offsets, rows.lengths)
            self._ascending, self._order = torch.sort(self._digests_there)
            self._offsets, self._lengths = (to_device(each, device) for each in (rows.offsets, rows.lengths))
            self._digests: Digests = to_host(self._digests_there).view(np.uint64)

    @property
    def rows(self) -> Rows:
        return self._rows

    @property
    def digests(self) -> Digests:
        return self._digests

    def look_again(self, which: Numbers) -> None:
        """Other content has come into some rows: it is found in place, and what was there before nowhere any more."""
        with self._kit.apart():  # of all of them: that is one pass, and its plan is there
            self._digests_there = self._kit.row_digests(self._arena.address, self._rows.offsets, self._rows.lengths)
            self._digests = to_host(self._digests_there).view(np.uint64)

    def lacks(self, digests: Digests) -> Mask:
        """Say which digests no row of it has."""
        with self._kit.apart() as device:
            found: Mask = (self._find(to_device(digests.view(np.int64), device)) < 0).cpu().numpy()
            return found

    def unlike(self, digests: Digests) -> Numbers:
        """Return the numbers of its rows that hold something else, ascending."""
        return np.flatnonzero(self._digests != digests)

    def look_for(
        self, wanted: Rows, digests: Digests, came_from: Hints | None = None, which: Numbers | None = None
    ) -> Found:
        """Say what of some rows is in place, elsewhere and nowhere. Not for the event loop's thread."""
        if which is not None:
            if not len(which):
                return everything_in_place(wanted)
            found = self.look_for(wanted.some(which), digests[which])
            left = found.nowhere.num_bytes + int(found.elsewhere.lengths.sum())
            return replace(found, in_place_bytes=wanted.num_bytes - left)
        with self._kit.apart() as device:
            asked, offsets, lengths = self._not_in_place(wanted, digests, device)
            source = self._find(asked)
            is_elsewhere = self._is(source, asked, lengths)
            moved = torch.nonzero(is_elsewhere).flatten()
            missing = torch.nonzero(~is_elsewhere).flatten()
            elsewhere = _joined(self._offsets[source[moved]], offsets[moved], lengths[moved])
            nowhere = _joined(offsets[missing], offsets[missing], lengths[missing])
            return Found(
                in_place_bytes=wanted.num_bytes - int(elsewhere.lengths.sum()) - int(nowhere.lengths.sum()),
                elsewhere=elsewhere,
                nowhere=Runs(nowhere.destinations, nowhere.lengths),
            )

    def _not_in_place(
        self, wanted: Rows, digests: Digests, device: torch.device
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return digests, offsets and lengths of the rows that are not where they are wanted."""
        if wanted is self._rows:  # then what is to be looked for is known here, and no more of it goes there
            differs = np.flatnonzero(self._digests != digests)
            which = to_device(differs, device)
            return to_device(digests[differs].view(np.int64), device), self._offsets[which], self._lengths[which]
        asked = to_device(digests.view(np.int64), device)
        offsets, lengths, there = self._laid(wanted, device)
        which = torch.nonzero(~self._is(there, asked, lengths)).flatten()
        return asked[which], offsets[which], lengths[which]

    def _laid(self, wanted: Rows, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return offsets and lengths of some rows, and of each the held row that begins there, or -1."""
        offsets, lengths = (to_device(each, device) for each in (wanted.offsets, wanted.lengths))
        if not len(self._offsets):
            return offsets, lengths, torch.full_like(offsets, -1)
        place = torch.searchsorted(self._offsets, offsets).clamp(max=len(self._offsets) - 1)
        return offsets, lengths, torch.where(self._offsets[place] == offsets, place, -1)

    def _is(self, which: torch.Tensor, asked: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        """Say where the held rows are what is asked for; -1 is none."""
        if not len(self._offsets):
            return torch.zeros_like(which, dtype=torch.bool)
        some = which.clamp(min=0)
        return (which >= 0) & (self._digests_there[some] == asked) & (self._lengths[some] == lengths)

    def _find(self, asked: torch.Tensor) -> torch.Tensor:
        """Return for each digest a row that had it, or -1; equal ones take those that had it in turn."""
        if not len(self._order):
            return torch.full_like(asked, -1)
        first = torch.searchsorted(self._ascending, asked)
        count = torch.searchsorted(self._ascending, asked, right=True) - first
        often = torch.nonzero(count > 1).flatten()
        if len(often):
            first[often] += _ranks(asked[often]) % count[often]
        return torch.where(count > 0, self._order[first.clamp(max=len(self._order) - 1)], -1)


def _ranks(values: torch.Tensor) -> torch.Tensor:
    """Return the how-manieth of its value each is."""
    ascending, order = torch.sort(values, stable=True)
    number = torch.arange(len(values), device=values.device)
    begins = torch.ones_like(values, dtype=torch.bool)
    begins[1:] = ascending[1:] != ascending[:-1]
    ranks = torch.empty_like(values)
    ranks[order] = number - torch.where(begins, number, 0).cummax(0).values
    return ranks


def _joined(sources: torch.Tensor, destinations: torch.Tensor, lengths: torch.Tensor) -> Moved:
    """Join rows that lie side by side at both ends, and bring the runs over."""
    begins = torch.ones_like(lengths, dtype=torch.bool)
    begins[1:] = (sources[1:] != sources[:-1] + lengths[:-1]) | (destinations[1:] != destinations[:-1] + lengths[:-1])
    first = torch.nonzero(begins).flatten()
    before = torch.cumsum(lengths, 0) - lengths
    runs = to_host(torch.stack((sources[first], destinations[first], before[first])))
    total = int(lengths.sum())
    return Moved(runs[0], runs[1], np.diff(runs[2], append=total))
