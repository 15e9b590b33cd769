"""Rows of a device's memory, held and asked for there: what ``state.held`` does in host memory, by torch.

What is wanted goes there in one piece and comes back as runs; in between the host waits as seldom as it can. Engines'
hints are not asked for: they would cost more than they save.
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

_Open = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Offsets and lengths of rows, and which of them are not where they are wanted."""


class DeviceHeld:
    """What lies in the rows of an arena now (``held.Holding``). Made before the boundary: it sorts."""

    def __init__(self, arena: DeviceArena, rows: Rows) -> None:
        self._kit = arena.kit
        self._arena = arena
        self._rows = rows
        self._num_bytes = rows.num_bytes
        self._digests: Digests | None = None
        with self._kit.apart() as device:
            self._there = self._now()
            ascending, self._order = torch.sort(self._there, stable=True)
            self._distinct, self._counts = torch.unique_consecutive(ascending, return_counts=True)
            self._first = torch.cumsum(self._counts, 0) - self._counts
            self._offsets, self._lengths = (to_device(each, device) for each in (rows.offsets, rows.lengths))

    @property
    def rows(self) -> Rows:
        return self._rows

    @property
    def digests(self) -> Digests:
        if self._digests is None:
            with self._kit.apart():
                self._digests = to_host(self._there).view(np.uint64)
        return self._digests

    def look_again(self, which: Numbers) -> None:
        """Other content has come into some rows: it is found in place, and what was there before nowhere any more."""
        self._digests = None
        with self._kit.apart():  # of all of them: that is one pass, and its plan is there
            self._there = self._now()

    def lacks(self, digests: Digests) -> Mask:
        """Say which digests no row of it has."""
        with self._kit.apart() as device:
            found: Mask = (self._find(_asked(digests, device)) < 0).cpu().numpy()
            return found

    def unlike(self, digests: Digests) -> Numbers:
        """Return the numbers of its rows that hold something else, ascending."""
        with self._kit.apart() as device:
            return to_host(torch.nonzero(self._there != _asked(digests, device)).flatten())

    def look_for(
        self, wanted: Rows, digests: Digests, came_from: Hints | None = None, which: Numbers | None = None
    ) -> Found:
        """Say what of some rows is in place, elsewhere and nowhere. Not for the event loop's thread."""
        if which is not None:
            wanted, digests, all_of_them = wanted.some(which), digests[which], wanted
            found = self.look_for(wanted, digests) if len(which) else everything_in_place(wanted)
            return replace(found, in_place_bytes=found.in_place_bytes + all_of_them.num_bytes - wanted.num_bytes)
        with self._kit.apart() as device:
            asked = _asked(digests, device)
            offsets, lengths, is_open = self._wanted(wanted, asked, device)
            source = self._find(asked, is_open)
            from_ = offsets
            if len(self._rows):
                is_elsewhere = self._is(source, asked, lengths)
                from_ = torch.where(is_elsewhere, self._offsets[source.clamp(min=0)], offsets)
            runs = _joined(from_, offsets, lengths, is_open)
            if not runs.shape[1]:
                return everything_in_place(wanted)
            elsewhere, nowhere, are_apart = _parted(runs)
        left = int(elsewhere.lengths.sum()) + nowhere.num_bytes
        num_bytes = self._num_bytes if wanted is self._rows else wanted.num_bytes
        return Found(in_place_bytes=num_bytes - left, elsewhere=elsewhere, nowhere=nowhere, are_apart=are_apart)

    def _now(self) -> torch.Tensor:
        return self._kit.row_digests(self._arena.address, self._rows.offsets, self._rows.lengths)

    def _wanted(self, wanted: Rows, asked: torch.Tensor, device: torch.device) -> _Open:
        if wanted is self._rows:
            return self._offsets, self._lengths, self._there != asked
        offsets, lengths, there = self._laid(wanted, device)
        return offsets, lengths, ~self._is(there, asked, lengths)

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
        return (which >= 0) & (self._there[some] == asked) & (self._lengths[some] == lengths)

    def _find(self, asked: torch.Tensor, is_open: torch.Tensor | None = None) -> torch.Tensor:
        """Return for each digest a row that had it, or -1; equal ones take those that had it in turn.

        ``is_open``: whose answer counts. None: everybody's.
        """
        if not len(self._order):
            return torch.full_like(asked, -1)
        place = torch.searchsorted(self._distinct, asked).clamp_(max=len(self._distinct) - 1)
        is_there = self._distinct[place] == asked
        turn = self._first[place]
        if len(self._distinct) < len(self._order):
            is_often = is_there & (self._counts[place] > 1)
            often = torch.nonzero(is_often if is_open is None else is_often & is_open).flatten()
            if len(often):
                turn[often] += _ranks(asked[often]) % self._counts[place[often]]
        return torch.where(is_there, self._order[turn], -1)


def _asked(digests: Digests, device: torch.device) -> torch.Tensor:
    return to_device(digests.view(np.int64), device)


def _ranks(values: torch.Tensor) -> torch.Tensor:
    """Return the how-manieth of its value each is."""
    ascending, order = torch.sort(values, stable=True)
    number = torch.arange(len(values), device=values.device)
    begins = torch.ones_like(values, dtype=torch.bool)
    begins[1:] = ascending[1:] != ascending[:-1]
    ranks = torch.empty_like(values)
    ranks[order] = number - torch.where(begins, number, 0).cummax(0).values
    return ranks


def _joined(
    sources: torch.Tensor, destinations: torch.Tensor, lengths: torch.Tensor, is_open: torch.Tensor
) -> torch.Tensor:
    """Join open rows that lie side by side at both ends; return the runs' sources, destinations and lengths.

    The host waits once, for how many there are.
    """
    follows = (sources[1:] == sources[:-1] + lengths[:-1]) & (destinations[1:] == destinations[:-1] + lengths[:-1])
    edges = is_open.repeat(2, 1)  # where a run begins, and where one ends
    edges[0, 1:] &= ~(follows & is_open[:-1])
    edges[1, :-1] &= ~(follows & is_open[1:])
    first, last = torch.nonzero(edges)[:, 1].view(2, -1)
    return torch.stack((sources[first], destinations[first], destinations[last] + lengths[last] - destinations[first]))


def _parted(runs: torch.Tensor) -> tuple[Moved, Runs, bool]:
    """Part runs that are elsewhere from those that are nowhere, which were given their own place to come from, and
    bring both over. Say also whether none of the first reads what another one writes.

    They are never joined: a row that is where it is wanted is none of either.
    """
    moved = runs[:, torch.nonzero(runs[0] != runs[1]).flatten()]
    found = to_host(torch.cat((runs, _are_apart(*moved).long().expand(3, 1)), dim=1))
    here, are_apart = found[:, :-1], bool(found[0, -1])
    is_moved = here[0] != here[1]
    return Moved(*here[:, is_moved]), Runs(*here[1:, ~is_moved]), are_apart


def _are_apart(sources: torch.Tensor, destinations: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Say whether no run reads from another's destination; the destinations ascend and are disjoint."""
    own = torch.arange(len(sources), device=sources.device)
    lowest = torch.searchsorted(destinations + lengths, sources, right=True)
    above = torch.searchsorted(destinations, sources + lengths)
    return (above - lowest == ((lowest <= own) & (own < above)).long()).all()
