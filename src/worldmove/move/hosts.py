"""What the two drivers of a move ask of the worker that runs them: the contracts of its edges.

A worker holds *copies* of sessions, each in a slot of its own. A driver orders one copy about; how a copy
computes, and on which thread, is the worker's business.
"""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from worldmove.move.ledger_messages import Answer, Operation
from worldmove.move.messages import AnyMoveMessage
from worldmove.state.arena import AnyArena, Placement
from worldmove.state.capture import Capture
from worldmove.state.digest import Digester, Pass
from worldmove.state.environment import Environment
from worldmove.state.manifest import Layout, Manifest
from worldmove.state.preview import Preview
from worldmove.transport.base import Blocking, Transport

__all__ = [
    "Aside",
    "BeginPass",
    "Blocking",
    "ComponentSlot",
    "Frozen",
    "Host",
    "LedgerClient",
    "Post",
    "Resting",
    "ShadowSlot",
    "Slots",
    "SourceCopy",
    "WhenReady",
]


BeginPass = Callable[[Capture], Pass]
"""Begins a pass over a state (``state.digest.Pass``)."""


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
    stopped_at: float | None = None
    """When it came to rest: the end of its last block, by the event loop's clock. None: at the asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resting:
    """A session that stands still before a block, and may be played on: what it is, and where in its slot."""

    block: int
    """The next block."""
    manifest: Manifest
    placement: Placement


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


class Post(Protocol):
    def __call__(self, message: AnyMoveMessage, /) -> None:
        """Send a message to whom its ``to`` names. It may be lost; it never waits."""
        ...


class LedgerClient(Protocol):
    async def ask(self, operation: Operation) -> Answer | None:
        """Put one operation to the ledger. None is silence: it may or may not have been done."""
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

    async def settle(self, ready: WhenReady | None = None) -> None:
        """Come to stand before a block: ``freeze`` follows, or ``thaw``. Nobody waits for the session meanwhile.

        Before the next one at which both ends are quiet (``ready``) before its list is here; if there is none among the
        next few, before the last of them. Where it is met, before that block alone: ``ready`` is waited for until its
        list is here. Raises StateRefused where the copy is being freed.
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


class ShadowSlot(Protocol):
    """A slot that waits for a session, as the destination's driver sees it."""

    @property
    def arena(self) -> AnyArena: ...

    async def poison(self) -> None:
        """Fill the arena so that nothing in it can be right by luck, and touch its pages."""
        ...

    async def clear(self, block: int, ready: Callable[[], None]) -> None:
        """Call ``ready`` when nothing else computes here. After that nothing else begins: for a little while.

        It returns when that is over because the list of ``block`` is here: the session was not frozen before it.
        """
        ...

    async def build(self, manifest: Manifest, placement: Placement) -> None:
        """Make the state's tree over the arena. Reads no byte of it: they may still be landing."""
        ...

    async def install_landing(
        self, manifest: Manifest, placement: Placement, begin: BeginPass
    ) -> tuple[Capture, Pass] | None:
        """Do what ``build`` and ``install`` do while bytes are landing, and begin a pass that comes after them.

        None where the engine would read them: then it is only built.
        """
        ...

    async def install(self) -> Capture:
        """Make a session of the tree, once every byte has landed, and resolve its state anew as it will be played."""
        ...

    def follow(self, block: int, attempt: str) -> None:
        """What is installed is the state before ``block``: step the lists from there on.

        As spare work, and only blocks that have left the gateway. Nothing of them is sent but their frames' digests.
        """
        ...

    async def caught_up(self) -> None:
        """Return once every block that has left is stepped. Raises MoveRefused('log_gap' | 'engine_failed')."""
        ...

    def stop_before(self, block: int) -> None:
        """Step up to ``block`` with an owner's urgency, also what has not left, and no further. The earliest counts."""
        ...

    async def halt(self, begin: BeginPass) -> tuple[int, Capture, Pass | None]:
        """Stand still before the block that was said (``stop_before``); return it, and the state.

        ``begin`` begins a pass over it, as soon as that is possible. Nothing else begins here after it: for a little
        while. Raises MoveRefused('overshot' | 'log_gap' | 'engine_failed'), StateRefused.
        """
        ...

    @property
    def next_block(self) -> int:
        """The next block of what is installed."""
        ...

    async def beside(self, num_bytes: int) -> "ComponentSlot":
        """Make room for a part of the session that is stepped by itself meanwhile. Raises MoveRefused, ArenaFull.

        However it ends without, there is nothing to be given back.
        """
        ...

    async def still(self) -> None:
        """Return once nothing computes in the slot any more, after ``discard``."""
        ...

    def verified(self, block: int) -> None:
        """It is complete, and ``block`` is the next one of it. Whatever came before has left the gateway."""
        ...

    def promote(self, epoch: int, block: int) -> None:
        """Play it, as the owner in ``epoch``."""
        ...

    def retire(self) -> None:
        """Keep it as a copy of last resort."""
        ...

    def discard(self) -> None:
        """Drop the session and put the slot into quarantine: nobody gets it before ``release``."""
        ...

    def release(self) -> None:
        """The transport's handle is released: the slot may be used again."""
        ...


class ComponentSlot(Protocol):
    """A part of a session that is to come, in memory of its own, as the destination's driver sees it."""

    @property
    def arena(self) -> AnyArena:
        """Where it lands."""
        ...

    async def install(self, manifest: Manifest, placement: Placement) -> None:
        """Make it of what has landed. Raises StateRefused, ManifestError."""
        ...

    async def step(self, handed: bytes) -> None:
        """Step it by one block, as spare work: no player waits for it. Raises StateRefused."""
        ...

    def hurry(self) -> None:
        """Somebody waits for the step in hand, or for the next one, from now on."""
        ...

    async def lay(self, whole: Manifest, placement: Placement) -> tuple[int, ...]:
        """Copy it to where the whole state has it in the slot. Return which of that's storages this has filled."""
        ...

    def free(self) -> None:
        """Give its memory back: no step is in hand. Idempotent.

        Not for the event loop's thread: a device may be waited for.
        """
        ...


class Slots(Protocol):
    def reserve(self, session: str, layout: Layout, *, is_followed: bool = False) -> ShadowSlot:
        """Take a free slot for a shadow. ``is_followed``: no player waits for it before it is met.

        Raises MoveRefused('no_slot' | 'state_too_large' | 'copy_held').

        A worker holds at most one copy of a session, whatever its phase: the ledger's answers name a worker,
        not a copy, so a second one would take an answer for its own.
        """
        ...


def unlogged(event: str, **fields: object) -> None:
    """A log that keeps nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What one worker lends to the drivers of all its moves."""

    worker: str
    incarnation: int
    environment: Environment
    post: Post
    ledger: LedgerClient
    blocking: Blocking
    digester: Digester
    transports: Mapping[str, Transport]
    """By the name that an offer gives."""
    clock: Callable[[], float]
    """Monotonic, seconds; ``loop.time``. Two workers on one host share its axis."""
    log: Callable[..., None] = unlogged
    """An event and its fields, on each change of phase. ``at``: when it was, by ``clock``, where it is said later."""
