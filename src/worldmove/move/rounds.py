"""The destination's half of a pre-copy: hold as much as it can of what will be frozen, and find it at the boundary.

    rounds      pull what changes while the session is played on, and digest the rows of what has come
    ready       say so, until the session is frozen
    rest        while it stands still before that, bring over what differs: what is found then costs no pause
    reconcile   compare the frozen rows with those that are held: move what has moved, and say what is to be pulled

What is pulled before the boundary may be torn, late or of another state: it is known by its content and by nothing
else. The write window is closed before anything is digested or moved, and opened anew for what is pulled.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from worldmove.errors import ManifestError, StateRefused
from worldmove.move.attempt import Attempt, Brought, GaveUpError
from worldmove.move.fetching import Fetching, FetchingConfig
from worldmove.move.messages import CONTROLLER, Base, Begin, Boundary, Final, Meet, Offer, Ready
from worldmove.move.patience import Patience
from worldmove.move.precopy import Next, PrecopyConfig, Seen, decide
from worldmove.move.protocol import DestinationEvent
from worldmove.move.reception import Reception
from worldmove.move.reconcile import Difference, reconcile
from worldmove.state.arena import check_placement, extents
from worldmove.state.arena_rows import held_in, move_in
from worldmove.state.extent import Extent
from worldmove.state.held import Holding
from worldmove.state.manifest import Manifest
from worldmove.state.row_digests import Digests
from worldmove.state.rows import Rows, final_rows, rolled_from, rows_of

READY_S = 0.5
"""Silence after which it says again that it is ready."""

MOST_FINALS = 1 << 16
"""Whoever tells more paths has more than any engine has leaves."""

LEAST_S = 1e-9
"""No round is said to take less."""


class Rounds:
    """One attempt's."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        offer: Offer,
        reception: Reception,
        fetching: FetchingConfig,
        config: PrecopyConfig,
    ) -> None:
        self.brought = Brought()
        """How the state has come, once it has."""
        self._attempt = attempt
        self._offer = offer
        self._arena = reception.slot.arena
        self._transport = reception.transport
        self._fetching = fetching
        self._config = config
        self._patience = Patience(patience_s=offer.patience_s, lease_s=offer.lease_s)
        self._ends_at = 0.0
        self._base: asyncio.Future[Base] = asyncio.get_running_loop().create_future()
        self._frozen = asyncio.Event()
        self._turn = asyncio.Event()
        """Set when there is something to look at while it is ready."""
        self._finals: dict[str, None] = {}
        """Paths of what is final and has not been brought over since, each once, in the order in which they came."""
        self._manifest: Manifest | None = None
        self._placement: tuple[int, ...] = ()
        self._fetch: Fetching | None = None
        self._held: Holding | None = None
        self._is_stale = False
        """Whether what is held is no longer what was looked at: something was moved or pulled since."""
        self._said: tuple[int, Digests] | None = None
        """The digests of all rows, before this block."""
        self._alone = asyncio.Lock()
        """Held by whoever writes to the slot."""
        self._plain = ""

    # what the driver's filter lets through

    def take(self, message: Begin | Base | Final) -> None:
        match message:
            case Begin():
                self._patience.renew()
            case Base():
                if not self._base.done():
                    self._base.set_result(message)
            case Final(paths=paths):
                self._take_finals(paths)

    def _take_finals(self, paths: Sequence[str]) -> None:
        """Note them for when it is ready: by then a block's are told anew, and before that they are of no use."""
        if self._held is not None:
            self._finals.update(dict.fromkeys(paths[: MOST_FINALS - len(self._finals)]))
            self._turn.set()

    def at_boundary(self) -> None:
        """The session is frozen."""
        self._frozen.set()
        self._turn.set()

    async def run(self) -> None:
        """Return when rounds gain nothing more, and the session is frozen.

        Raises GaveUpError, TransportError or ManifestError.
        """
        self._ends_at = self._attempt.host.clock() + self._offer.patience_s
        times = self._attempt.times
        try:
            async with self._patience.limit():
                with times.phase("await_base"):
                    base = await self._base
                with times.phase("rounds"):
                    await self._approach(base)
                await self._say_ready()
        except TimeoutError as error:
            reason, detail = self._patience.why(self._how_far())
            raise GaveUpError(DestinationEvent.TIME_OUT, reason, detail) from error
        finally:
            await self.release()

    async def rest(self, meet: Meet) -> None:
        """The session stands still, as is said there: hold all of that. What comes of it is looked at anew."""
        held = self._held
        if held is None or len(meet.rows) != 8 * len(held.rows):
            return
        digests: Digests = np.frombuffer(meet.rows, dtype="<u8")
        async with self._alone:
            self._said = meet.block, digests
            with self._attempt.times.phase("rest"):
                await self._hold(held.rows, digests)

    async def _hold(self, rows: Rows, digests: Digests) -> None:
        """Bring over what differs from these rows. However it ends, it is known whether what is held is."""
        blocking = self._attempt.host.blocking
        held = await self._fresh()
        found = await blocking(lambda: reconcile(held, rows, digests, self._arena.size))
        if not len(found.moves) and not len(found.pulls):
            return
        self._is_stale = True
        await blocking(lambda: move_in(self._arena, found.moves))
        await self._pull(found.pulls)
        await self._fresh()

    async def _fresh(self) -> Holding:
        """Look again at what is held, if that may be other by now."""
        if self._held is None:
            raise ManifestError("nothing is held of it")
        if self._is_stale:
            self._held = await self._look(self._held.rows)
            self._is_stale = False
        return self._held

    async def bring(self, boundary: Boundary, manifest: Manifest) -> Sequence[Extent]:
        """Move what has moved, and return what is to be pulled. Raises ManifestError."""
        placement = boundary.placement
        plain = self._plain or boundary.plain or self._unsaid(boundary)
        if self._held is None or boundary.row_bytes is None or plain:
            self.brought = Brought(pulled_bytes=manifest.num_bytes, plain=plain)
            return extents(manifest, placement)
        row_bytes, host = boundary.row_bytes, self._attempt.host
        with self._attempt.times.phase("reconcile"):
            held = await self._fresh()
            found = await host.blocking(lambda: self._compare(held, manifest, boundary, row_bytes))
        with self._attempt.times.phase("moves"):
            await host.blocking(lambda: move_in(self._arena, found.moves))
        self.brought = Brought(
            in_place_bytes=found.in_place_bytes, moved_bytes=found.moved_bytes, pulled_bytes=found.pulled_bytes
        )
        return found.pulls

    async def release(self) -> None:
        """Let go of the path, where it is still held."""
        if self._fetch is not None:
            await self._fetch.release()

    async def _approach(self, base: Base) -> None:
        """Pull round after round, for as long as it pays."""
        manifest = self._manifest = Manifest.from_bytes(base.manifest)
        self._placement = base.placement
        check_placement(manifest, base.placement, self._arena.size)
        if base.row_bytes is None:
            raise ManifestError("it does not say how finely it is to be looked at")
        self._fetch = Fetching(
            attempt=self._attempt,
            transport=self._transport,
            ticket=base.ticket,
            arena=self._arena,
            manifest=manifest,
            placement=base.placement,
            config=self._fetching,
        )
        try:
            await self._go_round(rows_of(manifest, base.placement, base.row_bytes))
        except StateRefused as error:
            self._plain = str(error)  # then all of it comes at the boundary

    async def _go_round(self, rows: Rows) -> None:
        clock = self._attempt.host.clock
        seen = Seen(num_rounds=0, state_bytes=rows.num_bytes, time_left_s=self._offer.patience_s)
        changing = np.ones(len(rows), dtype=bool)
        begun: float | None = None
        while True:
            now = clock()
            round_s = 0.0 if begun is None else now - begun
            verdict = decide(replace(seen, time_left_s=self._ends_at - now, round_s=round_s), self._config)
            if verdict.next is Next.GIVE_UP:
                raise GaveUpError(DestinationEvent.ABANDON, "does_not_converge", verdict.why)
            if verdict.next is Next.BOUNDARY:
                return
            pulled = int(rows.lengths[changing].sum())
            await self._pull(rows.extents(changing))
            rate = pulled / max(clock() - now, LEAST_S)
            before, self._held = self._held, await self._look(rows)
            if before is None:
                seen = replace(seen, num_rounds=1, path_bytes_per_s=rate)
            else:
                differs = self._held.digests != before.digests
                new = differs & before.lacks(self._held.digests)
                # Two rounds show what changes in a block only if one has ended between them; more show more of it.
                changing = differs if seen.num_rounds == 1 else changing | differs
                seen = replace(
                    seen,
                    num_rounds=seen.num_rounds + 1,
                    changing_bytes=int(rows.lengths[changing].sum()),
                    new_bytes_per_s=int(rows.lengths[new].sum()) / max(now - (begun or 0.0), LEAST_S),
                    path_bytes_per_s=rate,
                )
            begun = now

    async def _pull(self, wanted: Sequence[Extent]) -> None:
        if self._fetch is not None:
            await self._fetch.pull(wanted)

    async def _look(self, rows: Rows) -> Holding:
        """Digest what has come, whatever it is."""
        return await self._attempt.host.blocking(lambda: held_in(self._arena, rows))

    def _compare(self, held: Holding, manifest: Manifest, boundary: Boundary, row_bytes: int) -> Difference:
        wanted = rows_of(manifest, boundary.placement, row_bytes)
        digests = self._digests(boundary)
        if len(digests) != len(wanted):
            raise ManifestError(f"{len(digests)} digests are not those of {len(wanted)} rows")
        hints = partial(rolled_from, wanted, manifest, boundary.placement, boundary.rolled)
        return reconcile(held, wanted, digests, self._arena.size, came_from=hints if boundary.rolled else None)

    def _unsaid(self, boundary: Boundary) -> str:
        """Say why the digests of all rows cannot be known, where that is so."""
        is_said = self._said is not None and self._said[0] == boundary.block
        return "" if boundary.changed is None or is_said else "what was said of its rows before has not come"

    def _digests(self, boundary: Boundary) -> Digests:
        """Return the digests of all rows. Raises ManifestError."""
        if len(boundary.rows) % 8:
            raise ManifestError(f"{len(boundary.rows)} bytes are no digests of rows")
        digests: Digests = np.frombuffer(boundary.rows, dtype="<u8")
        if boundary.changed is None or self._said is None:
            return digests
        if 2 * len(boundary.changed) != len(boundary.rows):
            raise ManifestError(f"{len(boundary.changed)} bytes are not the numbers of {len(digests)} rows")
        numbers, found = np.frombuffer(boundary.changed, dtype="<u4"), self._said[1].copy()
        if numbers.max(initial=0) >= max(len(found), 1):
            raise ManifestError(f"there is no row {numbers.max()}")
        found[numbers] = digests
        return found

    async def _say_ready(self) -> None:
        """Say so again and again, and bring over what is final meanwhile, one leaf after the other."""
        clock = self._attempt.host.clock
        self._finals.clear()  # of a block that is over
        said_at = float("-inf")
        while not self._frozen.is_set():
            if clock() - said_at >= READY_S:
                said_at = clock()
                self._attempt.send(CONTROLLER, Ready)
            self._turn.clear()
            if self._finals:
                path = next(iter(self._finals))
                del self._finals[path]
                await self._bring_final(path)
                continue
            try:
                async with asyncio.timeout(READY_S):
                    await self._turn.wait()
            except TimeoutError:
                continue

    async def _bring_final(self, path: str) -> None:
        """Pull what is final under a path, leaf by leaf, unless it is frozen by then: the boundary knows the rest."""
        held, manifest = self._held, self._manifest
        if held is None or manifest is None:
            return
        for which in final_rows(held.rows, manifest, self._placement, path):
            if self._frozen.is_set():
                return
            rows = held.rows.some(which)
            async with self._alone:
                held = await self._fresh()
                self._is_stale = True
                await self._pull(rows.extents(np.ones(len(rows), dtype=bool)))
                await self._attempt.host.blocking(partial(held.look_again, which))
                self._is_stale = False

    def _how_far(self) -> str:
        """Say where it stood when its time was over."""
        if self._fetch is None:
            return "its source did not say what may be pulled"
        return "it was not frozen" if self._held is not None else "its first round did not end"
