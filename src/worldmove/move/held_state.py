"""What a destination holds of a state that is played elsewhere: known by its content, wherever that lies.

Whatever came of it may be torn, late or of another state. The write window is closed before anything is digested or
moved, and opened anew for what is pulled.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from worldmove.errors import ManifestError
from worldmove.move.attempt import Attempt
from worldmove.move.fetching import Fetching
from worldmove.move.following import Following
from worldmove.move.foreseen import batches, foreseen
from worldmove.move.messages import Boundary, Meet
from worldmove.move.reconcile import Difference, nothing, reconcile
from worldmove.move.said_rows import BoundarySaid, RestSaid, said_at_boundary, said_at_rest, unsaid
from worldmove.state.arena import AnyArena
from worldmove.state.arena_rows import held_in, move_in
from worldmove.state.held import Holding, Mask
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement, check_placement, extents_of
from worldmove.state.rows import LeafRows, Numbers, Rows, final_leaves, final_rows, rolled_from, rows_of
from worldmove.state.runs import Runs

BATCH_BYTES = 64 << 20
"""Of what is final, so much is pulled and looked at in one go: each takes a few turns of threads and of a device, and
word of a rest waits for the end of one."""


class HeldState:
    """One attempt's."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        arena: AnyArena,
        fetching: Fetching,
        manifest: Manifest,
        placement: Placement,
        row_bytes: int,
        followed: Sequence[str] = (),
        following: Following | None = None,
    ) -> None:
        """``manifest`` and the rest: of the base. ``following``: computes what lies under the paths ``followed``.

        Raises StateRefused where it has too many rows.
        """
        self.base = rows_of(manifest, placement, row_bytes)
        """The rows of the base."""
        self.is_followed = _rows_under(followed if following is not None else (), self.base, manifest, placement)
        """The rows of the base that are not brought over before the boundary, since they will be computed here."""
        self.followed_bytes = 0
        """What was computed here for the block in hand, and is what it is to be."""
        self._following = following
        self._laid: tuple[int | None, tuple[int, ...]] = (None, ())
        """Before which block, and into which storages, what was computed here was copied."""
        self._attempt = attempt
        self._arena = arena
        self._fetching = fetching
        self._manifest = manifest
        self._base_places = placement
        self._placement = placement
        self._row_bytes = row_bytes
        self._held: Holding | None = None
        self._is_stale = False
        """Whether what is held is no longer what was looked at: something was moved or pulled since."""
        self._rest: RestSaid | None = None
        self._lacking: Numbers | None = None
        """The rows that were held otherwise than was said at rest, once that was brought over; None is not known."""
        self._rest_bytes = 0
        """Of the rows that were said then."""
        self._num_rests = 0
        """How often it was said at rest what it is to be."""
        self._rolls: dict[str, tuple[int, int, int]] = {}
        """What is expected of leaves that were brought over at rest, in the block that comes next."""
        self._alone = asyncio.Lock()
        """Held by whoever writes to the slot."""

    @property
    def is_looked_at(self) -> bool:
        """Whether something was brought over, and digested."""
        return self._held is not None

    def pull_followed(self) -> Mask:
        """Nothing is computed here any more: return the rows of the base that were left out for it."""
        which, self.is_followed = self.is_followed, np.zeros(len(self.base), dtype=bool)
        return which

    async def pull(self, wanted: Runs) -> None:
        """Bring some of the base over, as it is now."""
        await self._fetching.pull(wanted)

    async def look(self, rows: Rows) -> Holding:
        """Digest what has come, whatever it is."""
        arena = self._arena
        self._held = await self._attempt.host.blocking(lambda: held_in(arena, rows))
        self._is_stale = False
        return self._held

    async def take_rest(self, meet: Meet) -> bool:
        """The session stands still, as is said there: hold all of that. False where nothing is said of its rows."""
        if self._held is None:
            return False
        async with self._alone:
            await self._lay(meet.block, is_awaited=False)
            said = await self._attempt.host.blocking(lambda: self._said_at(meet))
            if said is None:
                return False
            self._num_rests += 1
            self._rest, self._lacking, self._rolls = said, None, {}
            with self._attempt.times.phase("rest"):
                held = await self._hold(said)
                self._lacking = await self._attempt.host.blocking(lambda: held.unlike(said.digests))
                self._rest_bytes = said.rows.num_bytes
            self._rolls = dict(meet.rolled)
        return True

    async def bring_final(self, path: str, is_over: asyncio.Event) -> None:
        """Pull what is final under a path, some leaves at a time, until ``is_over``: the boundary knows the rest.

        So does word of what it is at rest: that comes after what is final of the same block, and brings all of it.
        """
        if self._held is None:
            return
        num_rests, rows = self._num_rests, self._held.rows
        for leaves in batches(final_leaves(rows, self._manifest, self._placement, path), rows, BATCH_BYTES):
            async with self._alone:
                if is_over.is_set() or self._num_rests != num_rests:
                    return
                await self._bring(leaves)

    async def difference(self, boundary: Boundary, manifest: Manifest, placement: Placement) -> Difference:
        """Return how what is held becomes what is frozen. Raises ManifestError, or StateRefused for too many rows."""
        if self._is_all_here(boundary, manifest, placement):
            return nothing(self._rest_bytes)  # at once: a thread would wait for those that build it meanwhile
        if self._laid[0] != boundary.block:
            await self._lay(boundary.block, is_awaited=True)
        held = await self._fresh()
        work = partial(self._compare, held, boundary, manifest, placement)
        found = await self._attempt.host.blocking(work)
        self.followed_bytes -= self._num_wrong(found.pulls, manifest, placement)
        return found

    def unsaid(self, boundary: Boundary) -> str:
        """Say why the digests of all frozen rows cannot be known, where that is so."""
        return unsaid(boundary, self._rest)

    async def _hold(self, said: RestSaid) -> Holding:
        """Bring over what differs. However it ends, it is known whether what is held is."""
        blocking, arena = self._attempt.host.blocking, self._arena
        held = await self._fresh()
        found = await blocking(lambda: reconcile(held, said.rows, said.digests, arena.size))
        self.followed_bytes -= self._num_wrong(found.pulls, self._manifest, self._placement)
        if len(found.moves) or len(found.pulls):
            self._is_stale = True
            await blocking(lambda: move_in(arena, found.moves))
            await self._fetching.pull(found.pulls)
        return await self.look(said.rows) if self._is_stale or held.rows is not said.rows else held

    async def _lay(self, block: int, *, is_awaited: bool) -> None:
        """Have in its place what was computed here, if it stands before a block: it is looked at like anything."""
        self._laid, self.followed_bytes = (block, ()), 0
        if self._following is None or self._held is None:
            return
        with self._attempt.times.phase("follow"):
            if not await self._following.stands_before(block, is_awaited=is_awaited):
                return
            self._is_stale = True  # however it ends
            laid = await self._following.lay(self._manifest, self._placement)
        self._laid = block, laid
        self.followed_bytes = sum(self._manifest.storages[index].num_used_bytes for index in laid)

    def _num_wrong(self, pulls: Runs, manifest: Manifest, placement: Placement) -> int:
        """Return how much is pulled of what was computed here."""
        _, laid = self._laid
        if not laid or len(manifest.storages) != len(self._manifest.storages):
            return 0
        return pulls.num_shared(Runs.of(extents_of(manifest, placement, laid)))

    async def _bring(self, leaves: Sequence[LeafRows]) -> None:
        """Have what leaves have become: what is expected to have been rolled is moved, once, and the rest pulled."""
        held, blocking, arena = await self._fresh(), self._attempt.host.blocking, self._arena
        rolls = {leaf.path: self._rolls.pop(leaf.path) for leaf in leaves if leaf.path in self._rolls}
        found = await blocking(partial(foreseen, held.rows, leaves, rolls, arena.size))
        self._is_stale, self._lacking = True, None
        if len(found.moves):
            await blocking(lambda: move_in(arena, found.moves))
        await self._fetching.pull(found.pulls)
        await blocking(partial(held.look_again, found.which))
        self._is_stale = False

    async def _fresh(self) -> Holding:
        """Look again at what is held, if that may be other by now."""
        if self._held is None:
            raise ManifestError("nothing is held of it")
        if self._is_stale:
            self._lacking = None
            return await self.look(self._held.rows)
        return self._held

    def _said_at(self, meet: Meet) -> RestSaid | None:
        placement = meet.placement or self._base_places
        check_placement(self._manifest, placement, self._arena.size)
        said = said_at_rest(meet, rows_of(self._manifest, placement, self._row_bytes))
        if said is not None:
            self._placement = placement
        return said

    def _compare(self, held: Holding, boundary: Boundary, manifest: Manifest, placement: Placement) -> Difference:
        wanted = rows_of(manifest, placement, boundary.row_bytes or self._row_bytes)
        said = said_at_boundary(boundary, self._rest)
        if len(said.digests) != len(wanted):
            raise ManifestError(f"{len(said.digests)} digests are not those of {len(wanted)} rows")
        hints = partial(rolled_from, wanted, manifest, placement, boundary.rolled) if boundary.rolled else None
        which = self._open(held, wanted, said)
        return reconcile(held, wanted, said.digests, self._arena.size, came_from=hints, which=which)

    def _is_all_here(self, boundary: Boundary, manifest: Manifest, placement: Placement) -> bool:
        """Whether what is frozen is what was said at rest, and all of that was brought over."""
        is_said = boundary.changed == b"" and boundary.rows == b"" and not self.unsaid(boundary)
        # A manifest that shares the base's storages differs from it in values alone, so its rows are the same.
        is_laid_out_so = manifest.storages is self._manifest.storages and placement == self._placement
        has_all = self._lacking is not None and not len(self._lacking) and not self._is_stale
        return is_said and is_laid_out_so and has_all and boundary.row_bytes == self._row_bytes

    def _open(self, held: Holding, wanted: Rows, said: BoundarySaid) -> Numbers | None:
        """Return the rows that may not be in place, where the others are known to be."""
        if said.changed is None or self._lacking is None or self._rest is None:
            return None
        if wanted is not held.rows or wanted is not self._rest.rows:
            return None
        return np.union1d(said.changed, self._lacking)


def _rows_under(paths: Sequence[str], base: Rows, manifest: Manifest, placement: Placement) -> NDArray[np.bool_]:
    under = np.zeros(len(base), dtype=bool)
    for path in paths:
        for which in final_rows(base, manifest, placement, path):
            under[which] = True
    return under
