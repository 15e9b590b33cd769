"""What is known of a copy's state from its offer to its freeze, and what was made ready where it stands."""

from contextlib import suppress

from worldmove.errors import ArenaFull, StateRefused
from worldmove.state.layout import Layout
from worldmove.state.placement import in_place_bytes
from worldmove.state.preview import Preview
from worldmove.state.recapture import Known
from worldmove.worker.ahead import Ahead, ahead_in, resolved_in
from worldmove.worker.session import SessionCopy
from worldmove.worker.tools import Tools


class KnownAhead:
    """Of one copy, for one move. What takes the engine is called in the engine's thread."""

    def __init__(self, copy: SessionCopy, tools: Tools) -> None:
        self._copy = copy
        self._tools = tools
        self._known: Known | None = None
        self._ahead: Ahead | None = None
        self._lies_in_slot = False
        """Whether most of it lay there at the offer."""
        self.offered: Preview | None = None
        """What the offer has told."""

    def offer(self, layout: Layout, known: Known) -> None:
        """Note what an offer tells, and what was found out for it."""
        arena = self._copy.slot.arena
        self._known, self._ahead, self.offered = known, None, Preview.of(layout)
        self._lies_in_slot = 2 * in_place_bytes(known.capture, arena) > known.capture.num_bytes

    def make_ready(self, *, is_pulled: bool = True) -> Ahead:
        """Resolve it where it stands, and bring into its slot what has left that, if that is to be pulled.

        Raises StateRefused, ArenaFull.
        """
        self._ahead = None  # by whose plans nothing is read any more
        # Whoever is cancelled meanwhile has still spent what was known, and knows it anew.
        known = self._known = resolved_in(self._tools.engine, self._copy.engine_session, self._known)
        block = self._copy.next_block
        if is_pulled:
            early = self.offered.early if self.offered else ()
            ahead = ahead_in(self._copy.slot.arena, known, block, early)
        else:
            ahead = Ahead(block=block, known=known, placement=(), copied=known.capture)
        self._ahead = ahead
        return ahead

    def make_ready_if_offered(self, *, is_pulled: bool = True) -> None:
        """Do so where an offer has told of it; where it cannot be done, the freeze will say so."""
        if self._known is not None:
            with suppress(StateRefused, ArenaFull):
                self.make_ready(is_pulled=is_pulled)

    def taken(self) -> tuple[Known | None, Ahead | None]:
        """Return what makes a freeze cheaper, and what was made ready before this very block. Once."""
        known, ahead = self._known, self._ahead
        self._known = self._ahead = None
        return known, ahead if ahead is not None and ahead.block == self._copy.next_block else None

    def comes_early(self, ahead: Ahead | None) -> bool:
        """Say whether what an offer tells of may be pulled as soon as nothing writes it any more."""
        if self.offered is None or not self.offered.early:  # none of it lies on a device, say
            return False
        return self._lies_in_slot if ahead is None else ahead.comes_early(self.offered)
