"""What a source tells of its rows: all of them while it stands still before its freeze, and then what has changed.

At rest everything is brought to where it will be pulled from, as a freeze brings it: what an engine binds anew at each
block lies elsewhere until then. So if nobody writes between the rest and the freeze, the boundary has nothing to tell.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from worldmove.errors import WorldMoveError
from worldmove.move.source_copy import Frozen, SourceCopy
from worldmove.state.arena_rows import digests_in, look_at
from worldmove.state.layout import Layout
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement
from worldmove.state.row_digests import Digests
from worldmove.state.row_looks import RowLook
from worldmove.state.rows import Numbers, Rows, rows_of
from worldmove.transport.base import Blocking


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a message says of rows. ``changed``: of which; None: of all."""

    rows: bytes = b""
    changed: bytes | None = None
    placement: Placement = ()
    """Where the leaves lie, where that is not as the base has said."""
    rolled: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """What the last block has rolled."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Told:
    """What was told of a frozen state's rows: all their digests, or those that have ``changed`` since a ``look``."""

    frozen: Frozen
    rows: Rows
    digests: Digests
    changed: Numbers | None = None
    look: RowLook | None = None

    def all_digests(self) -> Digests:
        """Not for the event loop's thread."""
        if self.look is None or self.changed is None:
            return self.digests
        known = self.look.digests().copy()
        known[self.changed] = self.digests
        return known


class ToldRows:
    """One attempt's."""

    def __init__(self, *, copy: SourceCopy, blocking: Blocking, row_bytes: int) -> None:
        self.row_bytes = row_bytes
        self._copy = copy
        self._blocking = blocking
        self._base: Manifest | None = None
        self._places: Placement = ()
        self._at_rest: tuple[int, RowLook] | None = None
        self._told: _Told | None = None

    def lay_out(self, layout: Layout) -> None:
        """Take the base's rows for those to be looked at while it stands still; before that, none are.

        Not for the event loop's thread. Raises StateRefused where there are too many.
        """
        base = Manifest.from_bytes(layout.preview)
        rows_of(base, layout.places, self.row_bytes)
        self._base, self._places = base, layout.places

    def look(self) -> None:
        """Digest the rows of the base: the first time takes longer. Not for the event loop's thread."""
        if self._base is not None:
            digests_in(self._copy.arena, rows_of(self._base, self._places, self.row_bytes))

    def give_up_rest(self) -> None:
        """A look takes too long for a session that stands still."""
        self._base = None

    async def at_rest(self) -> Said:
        """Look at all of it. The session stands still, and is played on if its next list comes."""
        self._at_rest = None
        base = self._base
        if base is None:
            return Said()
        try:
            rest = await self._copy.rest()
            look = await self._blocking(lambda: self._looked(base, rest.manifest, rest.placement))
            if look is None:
                return Said()
            said = await self._blocking(lambda: _bytes(look.digests()))
        except WorldMoveError:
            return Said()  # it is for the freeze to say what is wrong
        self._at_rest = rest.block, look
        placement = () if rest.placement == self._places else rest.placement
        return Said(rows=said, placement=placement, rolled=rest.rolled)

    async def at_boundary(self, frozen: Frozen, *, is_heard: bool) -> Said:
        """Return the digests of the rows that have changed since the rest, or of all.

        ``is_heard``: the other end has answered what was told at rest. Raises StateRefused where there are too many.
        """
        return await self._blocking(lambda: self._now(frozen, is_heard=is_heard))

    def written(self) -> tuple[str, ...]:
        """Return the leaves some of whose frozen rows are not any more what was told of them.

        Not for the event loop's thread.
        """
        told = self._told
        if told is None:
            return ()
        wrong = np.flatnonzero(digests_in(self._copy.arena, told.rows) != told.all_digests())
        return _leaves_at(told.frozen, told.rows.offsets[wrong])

    def _looked(self, base: Manifest, manifest: Manifest, placement: Placement) -> RowLook | None:
        """Look at the rows; None where they are not cut as the other end would cut them."""
        if len(manifest.storages) != len(base.storages):
            return None
        rows = rows_of(manifest, placement, self.row_bytes)
        return look_at(self._copy.arena, rows) if rows is rows_of(base, placement, self.row_bytes) else None

    def _now(self, frozen: Frozen, *, is_heard: bool) -> Said:
        rows = rows_of(frozen.capture.manifest, frozen.placement, self.row_bytes)
        look = self._of_rest(frozen.block, rows) if is_heard else None
        if look is None:
            digests = digests_in(self._copy.arena, rows)
            self._told = _Told(frozen=frozen, rows=rows, digests=digests)
            return Said(rows=_bytes(digests))
        changed, digests = look.changes()
        self._told = _Told(frozen=frozen, rows=rows, digests=digests, changed=changed, look=look)
        return Said(rows=_bytes(digests), changed=_numbers(changed))

    def _of_rest(self, block: int, rows: Rows) -> RowLook | None:
        """Return what the same rows held while it stood still before this block."""
        if self._at_rest is None:
            return None
        at, look = self._at_rest
        return look if at == block and look.rows is rows else None


def _leaves_at(frozen: Frozen, offsets: Numbers) -> tuple[str, ...]:
    """Return the leaves whose memory lies at some places of the arena."""
    found: dict[str, None] = {}
    for index, (place, record) in enumerate(zip(frozen.placement, frozen.capture.manifest.storages, strict=True)):
        if np.any((offsets >= place) & (offsets < place + record.num_bytes)):
            leaves = frozen.capture.manifest.leaves
            found |= {leaf.path: None for leaf in leaves if getattr(leaf.content, "storage", None) == index}
    return tuple(found)


def _bytes(digests: Digests) -> bytes:
    return digests.astype("<u8", copy=False).tobytes()


def _numbers(numbers: Numbers) -> bytes:
    return numbers.astype("<u4").tobytes()
