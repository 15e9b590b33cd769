"""Round after round of what changes while a session is played, for as long as it pays (``precopy.decide``)."""

from collections.abc import Callable
from dataclasses import replace

from worldmove.move.attempt import GaveUpError
from worldmove.move.held_state import HeldState
from worldmove.move.precopy import Next, PrecopyConfig, Seen, decide
from worldmove.move.protocol import DestinationEvent
from worldmove.state.held import Holding, Mask

LEAST_S = 1e-9
"""No round is said to take less."""


class Approach:
    """One attempt's."""

    def __init__(
        self,
        *,
        state: HeldState,
        clock: Callable[[], float],
        ends_at: float,
        affordable_bytes: int | None,
        config: PrecopyConfig,
    ) -> None:
        """``ends_at``: when there is no more patience, by ``clock``. ``affordable_bytes``: see ``precopy.Seen``."""
        self._state = state
        self._clock = clock
        self._ends_at = ends_at
        self._config = config
        self._changing: Mask = ~state.is_followed
        """The rows that were seen to change; all, until that was seen."""
        self._begun: float | None = None
        """When the last round began."""
        self._held: Holding | None = None
        self._seen = Seen(
            num_rounds=0,
            state_bytes=int(state.base.lengths[self._changing].sum()),
            time_left_s=0.0,
            affordable_bytes=affordable_bytes,
        )

    async def run(self) -> None:
        """Return when the boundary is next. Raises GaveUpError(ABANDON), or TransportError."""
        while True:
            now = self._clock()
            round_s = 0.0 if self._begun is None else now - self._begun
            verdict = decide(replace(self._seen, time_left_s=self._ends_at - now, round_s=round_s), self._config)
            if verdict.next is Next.GIVE_UP:
                raise GaveUpError(DestinationEvent.ABANDON, "does_not_converge", verdict.why)
            if verdict.next is Next.BOUNDARY:
                return
            await self._round(now)

    def include(self, which: Mask) -> None:
        """Bring over what was left out until now. ``run`` follows; what changes of it shows in the rounds to come."""
        lengths = self._state.base.lengths
        self._changing, self._held = self._changing | which, None
        self._seen = replace(
            self._seen,
            state_bytes=self._seen.state_bytes + int(lengths[which].sum()),
            changing_bytes=int(lengths[self._changing].sum()),
            new_bytes_per_s=None,
        )

    async def _round(self, now: float) -> None:
        rows = self._state.base
        num_bytes = int(rows.lengths[self._changing].sum())
        await self._state.pull(rows.extents(self._changing))
        rate = num_bytes / max(self._clock() - now, LEAST_S)
        before, self._held = self._held, await self._state.look(rows)
        self._seen = replace(self._seen, num_rounds=self._seen.num_rounds + 1, path_bytes_per_s=rate)
        if before is not None:
            self._compare(before, self._held, max(now - (self._begun or 0.0), LEAST_S))
        self._begun = now

    def _compare(self, before: Holding, held: Holding, apart_s: float) -> None:
        rows, differs = self._state.base, (held.digests != before.digests) & ~self._state.is_followed
        new = differs & before.lacks(held.digests)
        # Two rounds show what changes in a block only if one has ended between them; more show more of it.
        self._changing = differs if self._seen.num_rounds == 2 else self._changing | differs
        new_bytes = int(rows.lengths[new].sum())
        self._seen = replace(
            self._seen,
            changing_bytes=int(rows.lengths[self._changing].sum()),
            new_bytes_per_s=new_bytes / apart_s,
        )
