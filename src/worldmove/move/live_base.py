"""What a source does for a pre-copy before it is frozen: it says where its leaves lie, and plays on.

What is read of them meanwhile may be torn, and whoever reads it knows that. Nothing here has a part in who owns it.
"""

import asyncio

from worldmove.errors import MoveRefused, StateRefused
from worldmove.move.attempt import Attempt
from worldmove.move.component_ground import ComponentGround
from worldmove.move.early import early_part
from worldmove.move.export import Export
from worldmove.move.messages import AnyMoveMessage, Base, Begin
from worldmove.move.patience import Patience
from worldmove.move.source_copy import SourceCopy
from worldmove.move.strategy import Strategy
from worldmove.move.streaming import tell_finals
from worldmove.move.told_rows import ToldRows
from worldmove.state.layout import Layout
from worldmove.state.rows import min_row_bytes

LONGEST_LOOK_S = 0.05
"""The session stands still for it."""


class LiveBase:
    """One attempt's."""

    def __init__(
        self,
        *,
        attempt: Attempt,
        begin: Begin,
        copy: SourceCopy,
        export: Export,
        row_bytes: int | None,
    ) -> None:
        """``export``: how its arena is read. ``row_bytes``: how finely it is to be looked at; None goes by its size."""
        self.attempt = attempt
        self._copy = copy
        self._ticket = export.prepared.ticket
        self._row_bytes = row_bytes
        self.is_streamed = begin.strategy == Strategy.STREAMING.value
        """Whether each leaf is told of when it is final."""
        self.rows: ToldRows | None = None
        """What is told of its rows, once it is known how finely it is looked at."""
        self._component: ComponentGround | None = None
        if self.is_streamed and copy.followed:
            self._component = ComponentGround(
                attempt=attempt,
                begin=begin,
                copy=copy,
                transport=attempt.host.transports[export.transport],
                layout_digest=export.layout_digest,
            )
        self._layout: Layout | None = None
        self._patience = Patience(patience_s=begin.patience_s, lease_s=begin.lease_s)

    def take(self, message: AnyMoveMessage) -> None:
        """Hear that the attempt goes on: what was said may have been lost; or that the component was fetched."""
        if self._component is not None:
            self._component.take(message)
        if isinstance(message, Begin):
            self._patience.renew()
            if self._layout is not None:
                self._say(self._layout)

    def hands(self) -> bool:
        """Whether the destination steps a component of it, and is told what blocks hand to that."""
        return self._component is not None and self._component.hands

    async def run(self) -> bool:
        """Go on until somebody ends it. False: it is given up, and whoever has a part in it was told."""
        return await early_part(self.attempt, self._patience, self._stand_by(), "the destination was not ready")

    async def _stand_by(self) -> None:
        layout = await self._copy.layout()
        if not layout.preview:
            raise MoveRefused("state_too_large", "its manifest is larger than what is told before a boundary")
        row_bytes = self._row_bytes or min_row_bytes(sum(layout.storages))
        rows = self.rows = ToldRows(copy=self._copy, blocking=self.attempt.host.blocking, row_bytes=row_bytes)
        self._layout = layout
        self._say(layout)
        await self._prepare(rows, layout)
        async with asyncio.TaskGroup() as beside:
            if self._component is not None:
                beside.create_task(self._component.run())
            if self.is_streamed:
                await tell_finals(self.attempt, self._copy, self.hands)
            await asyncio.get_running_loop().create_future()

    async def _prepare(self, rows: ToldRows, layout: Layout) -> None:
        """Lay the rows out, and see how long a look at them takes; the one in the pause has its plan then."""
        blocking, clock = self.attempt.host.blocking, self.attempt.host.clock
        try:
            await blocking(lambda: rows.lay_out(layout))
        except StateRefused:
            return  # the destination says so
        await blocking(rows.look)
        begun = clock()
        await blocking(rows.look)
        if clock() - begun >= LONGEST_LOOK_S:
            rows.give_up_rest()

    def _say(self, layout: Layout) -> None:
        self.attempt.send(
            self.attempt.peer,
            Base,
            block=self._copy.reach[1],
            manifest=layout.preview,
            placement=layout.places,
            ticket=self._ticket,
            row_bytes=None if self.rows is None else self.rows.row_bytes,
            followed=() if self._component is None else self._copy.followed,
        )
