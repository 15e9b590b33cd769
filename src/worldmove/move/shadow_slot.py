"""The slot that a session is brought to, as the destination's driver sees it."""

from collections.abc import Callable
from typing import Protocol

from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.digest import BeginPass, Pass
from worldmove.state.layout import Layout
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement


class ShadowSlot(Protocol):
    """A slot that waits for a session, as the destination's driver sees it."""

    @property
    def arena(self) -> AnyArena: ...

    async def poison(self, gets_on: Callable[[], None]) -> None:
        """Fill the arena so that nothing in it can be right by luck, and touch its pages.

        ``gets_on`` hears of each piece.
        """
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
        """Make room for a part of the session that is stepped by itself meanwhile.

        Raises MoveRefused, ArenaFull, NoMemory: however it ends without, there is nothing to be given back.
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
