"""The copy of a session that a move takes it from, as the source's driver sees it.

A driver orders one copy about; how it computes, and on which thread, is the worker's business.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.digest import BeginPass, Pass
from worldmove.state.layout import Layout
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement
from worldmove.state.preview import Preview


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """A session at a block boundary: resolved, quiescent, every storage in its slot's arena."""

    block: int
    """The next block."""
    capture: Capture
    placement: Placement
    rolled: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """What the engine says of leaves that its last step has rolled: axis, by how much, and what stayed in front."""
    first: Pass | None = None
    """The first pass over it, where it has begun."""
    offered: Preview | None = None
    """What its last layout has told ahead."""
    moved: tuple[int, ...] = ()
    """Which storages were brought into the arena by the freeze."""
    resolve: Callable[[], Coroutine[Any, Any, Capture]] | None = None
    """Resolves it now, where all this was known of it before it was frozen: it may not be so any more."""
    stopped_at: float | None = None
    """When it came to rest: the end of its last block, by the event loop's clock. None: at the asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resting:
    """A session that stands still before a block, and may be played on: what it is, and where in its slot."""

    block: int
    """The next block."""
    manifest: Manifest
    placement: Placement
    rolled: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    """As of ``Frozen``."""


class Aside(Protocol):
    """A state before one block, copied into a slot of its own while its session is played on."""

    @property
    def block(self) -> int: ...

    @property
    def manifest(self) -> Manifest: ...

    @property
    def placement(self) -> Placement: ...

    @property
    def arena(self) -> AnyArena: ...

    def capture(self) -> Capture:
        """Return it as a state, to be digested: not for the event loop's thread."""
        ...

    def free(self) -> None:
        """Give its slot back. Idempotent."""
        ...


WhenReady = Callable[[], Coroutine[Any, Any, None]]
"""Returns when the other end waits for the freeze, and computes nothing meanwhile; it may never. Asked again, anew."""


class SourceCopy(Protocol):
    """A session's copy that is played, or was, as its driver sees it."""

    @property
    def arena(self) -> AnyArena: ...

    @property
    def block_s(self) -> float:
        """The session's recent block time, seconds (a high quantile)."""
        ...

    @property
    def reach(self) -> tuple[int, int]:
        """(acknowledged, computed): the first block that the gateway has not taken, and the next to compute."""
        ...

    def stay(self, *, stays: bool) -> None:
        """Whether it stays, once it has retired, until it is let pass."""
        ...

    async def layout(self) -> Layout:
        """Describe the state while it goes on being played. Raises StateRefused."""
        ...

    async def snapshot(self) -> Aside:
        """Copy the state aside at the next block boundary, and play on.

        Raises MoveRefused('no_slot' | 'not_played'), StateRefused or ArenaFull.
        """
        ...

    def finals(self) -> tuple[str, ...]:
        """Return what the engine has called final since this was asked last; from the first time on it is asked to say.

        Paths of leaves, or of containers of leaves, that stay as they are until the next block.
        """
        ...

    def hush(self) -> None:
        """Nobody wants to know any more what is final, or handed on."""
        ...

    def hush_handed(self) -> None:
        """Nobody wants to know any more what is handed on; what was not told is dropped."""
        ...

    @property
    def followed(self) -> tuple[str, ...]:
        """The paths of what of it could be stepped elsewhere by itself; () where nothing can."""
        ...

    def handed(self) -> tuple[tuple[int, bytes], ...]:
        """Return what blocks have handed to that since this was asked last, each with its block.

        From the first time on the engine is asked to hand it on.
        """
        ...

    async def component(self) -> Aside:
        """Copy that alone aside, as ``snapshot`` does the state. Raises what that raises."""
        ...

    async def meet(self, tell: Callable[[int], None]) -> None:
        """Fix a block to stop before, tell it, and return once that is the next one: ``freeze`` follows, or ``thaw``.

        Far enough ahead that whoever is told can compute the last block at the same time; where the world rests, the
        block that it stands before. If it comes to rest on the way there, an earlier one is told.
        """
        ...

    async def settle(self, ready: WhenReady | None = None, *, brings: bool = False) -> None:
        """Come to stand before a block: ``freeze`` follows, or ``thaw``. Nobody waits for the session meanwhile.

        Before the next one at which both ends are quiet (``ready``) before its list is here; if there is none among the
        next few, before the last of them. Where it is met, before that block alone: ``ready`` is waited for until its
        list is here. So it is before the last of them where what differs comes over until then (``brings``): what has
        not come would come in the pause. Raises StateRefused where the copy is being freed.
        """
        ...

    async def rest(self) -> Resting:
        """While it stands still to be frozen, bring into the arena what has left it, as ``freeze`` will.

        It may be played on at any time: then what lies there is of before. Raises StateRefused or ArenaFull.
        """
        ...

    async def freeze(
        self, *, is_pulled: bool = True, begin: BeginPass | None = None, still: Callable[[], None] | None = None
    ) -> Frozen:
        """Stop where it has settled, or settle first; quiesce the engine, resolve and gather the state.

        ``begin`` begins the first pass, as soon as that is possible. Nothing is gathered of a state that is not pulled.
        ``still`` is called before the state is resolved, once nothing writes what lies in the arena, if that is on a
        device and most of the state lies there.
        Raises StateRefused or ArenaFull; then, or cancelled,
        ``thaw`` follows.
        """
        ...

    def thaw(self, epoch: int) -> None:
        """Compute on as the owner in ``epoch``, and send the unacknowledged frames again."""
        ...

    def supersede(self) -> None:
        """Compute no further; keep the copy."""
        ...

    def retire(self, attempt: str) -> None:
        """Step the check blocks from the input log; nothing of them is shown.

        An empty ``attempt``: it was superseded outside a move, and there is nothing to compare them with.
        """
        ...

    def replay(self, epoch: int, block: int) -> None:
        """Compute from the input log up to ``block``, send nothing of it, and play on as the owner in ``epoch``."""
        ...

    async def acknowledged(self, block: int) -> None:
        """Send unacknowledged frames again; return once the gateway has taken every block before ``block``."""
        ...

    async def passed(self, block: int) -> None:
        """Return once block ``block`` has left the gateway, and the check blocks are done."""
        ...

    def free(self) -> None:
        """Give the slot back."""
        ...
