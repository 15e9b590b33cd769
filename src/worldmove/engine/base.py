"""The contract between WorldMove and whatever generates a world.

A session is a state machine: ``block b = f(state, inputs b)``. An engine offers that function and gives
its whole state away as a plain tree; it knows nothing of slots, moves or networks.

Rules of an engine:

1. ``state`` returns **everything** on which a later block depends: caches, cursors, generators, inputs
   accepted but not yet used. A leaf that is not there is lost in a move.
2. ``step`` draws only from the session's own generators. Two sessions never share one.
3. ``warm_up`` may allocate, compile and tune; it touches no session.
4. Between two calls the engine writes no session's memory, unless ``quiesce`` is there to end it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Tree = Any
"""Nested dicts, lists, tuples and dataclasses with carried leaves: see ``worldmove.state``."""

SessionT = TypeVar("SessionT")
StreamedT_contra = TypeVar("StreamedT_contra", contravariant=True)
RecoveredT_co = TypeVar("RecoveredT_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChange:
    """One key that went down or up. ``number`` is the client's; it never decreases within a session.

    It may go down though it is down, and up though it is not: a client may say so, and a server that was started again
    releases every key, since it does not know which were down.
    """

    number: int
    key: str
    down: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameNote:
    """What an engine says of one frame: where the view stands, what moved it there, and whose change was last.

    ``pose`` is (y, x) in tiles from the place where the session began; ``action`` is the action applied to
    reach this frame; ``number`` is that of the newest key change that the engine had used by this frame.
    """

    pose: tuple[int, int]
    action: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block's pictures. ``frames``: uint8 RGB, [num_frames, height, width, 3], C-contiguous."""

    index: int
    frames: NDArray[np.uint8]
    notes: tuple[FrameNote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSpec:
    """What an engine is, in words and numbers that two processes can compare. Fixed for its life."""

    name: str
    preset: str
    weights_sha256: str
    """Hex digest of the weights in use (of the seed's text, where they are drawn)."""
    height: int
    width: int
    frames_per_block: int
    frames_per_s: float
    keys: tuple[str, ...]
    """The keys that ``step`` understands. Any other is refused by the gateway."""
    num_threads: int
    """Threads of one block's arithmetic: 1 and 2 threads give different bytes."""
    device: str = "cpu"
    """Where its sessions' large tensors lie: ``cpu``, ``cuda`` or ``cuda:NUMBER``."""

    @property
    def period_s(self) -> float:
        """Seconds of play in one block."""
        return self.frames_per_block / self.frames_per_s


class Engine(Protocol[SessionT]):
    """An engine on one device. Not safe for concurrent calls: its worker never makes two at once.

    They come from two threads: one steps what players wait for, the other (of a lower priority) what nobody does.
    """

    @property
    def spec(self) -> EngineSpec: ...

    @property
    def state_types(self) -> Mapping[str, type]:
        """The dataclasses and enums that may stand in a state tree, by the name they are carried under."""
        ...

    def warm_up(self) -> None:
        """Do what the first block would otherwise wait for. Touches no session and no session's generator."""
        ...

    def open(self, seed: int) -> SessionT:
        """Begin a world. Equal seeds and inputs give equal bytes in a controlled configuration."""
        ...

    def step(self, session: SessionT, changes: Sequence[KeyChange]) -> Block:
        """Advance by one block, using this block's closed list of key changes."""
        ...

    def quiesce(self, session: SessionT) -> None:
        """Return when nothing of the engine's will write this session's memory until the next ``step``."""
        ...

    def state(self, session: SessionT) -> Tree:
        """Return the whole state. Tensors are the live ones, not copies; containers are the caller's."""
        ...

    def install(self, state: Tree, into: SessionT | None = None) -> SessionT:
        """Make a session of a state.

        Fresh (``into`` is None): the session adopts the given tensors as its own memory. In place: values are
        copied into ``into``, whose tensors keep their addresses, and ``into`` is returned.
        Raises StateRefused if the tree is not one of this engine's.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolled:
    """How the last step moved a leaf's rows: along ``axis``, all from ``sink`` on, by ``block`` to the front."""

    axis: int
    block: int
    sink: int = 0


@runtime_checkable
class Rolls(Protocol[StreamedT_contra]):
    """An engine that says which leaves its last step has rolled, so that moved rows are not searched for.

    What it says is looked at first and believed of no row: rows are known by their content. A lie costs a search.
    """

    def rolled(self, session: StreamedT_contra) -> Mapping[str, Rolled]:
        """Return the leaves that the last step rolled, by their paths."""
        ...


@runtime_checkable
class InstallsUnread(Protocol):
    """An engine that may be given a state while its bytes are still landing."""

    @property
    def installs_unread(self) -> bool:
        """Whether a fresh ``install`` reads no byte of any tensor or array, and begins no work that would."""
        ...


@runtime_checkable
class TakesValues(Protocol[StreamedT_contra]):
    """An engine that may be given a state ahead, over memory that is still to be written, and its values later.

    So that all but these is done before a move's pause. What it says wrongly costs the move in hand, and nothing else:
    the session's state is resolved after that, and compared.
    """

    def take_values(self, session: StreamedT_contra, state: Tree) -> None:
        """Let a fresh session that was installed of this state, and not played, have its values as they are now.

        All that is neither tensor nor array: those are the same objects as they were. Reads no byte of them, and begins
        no work. Raises StateRefused.
        """
        ...


@runtime_checkable
class Streams(Protocol[StreamedT_contra]):
    """An engine that says during a step which leaves are final: they may be carried off while the rest is computed.

    What it says wrongly costs the move in hand, and nothing else: every byte is compared at the boundary.
    """

    def step_streaming(
        self, session: StreamedT_contra, changes: Sequence[KeyChange], final: Callable[[str], None]
    ) -> Block:
        """Do what ``step`` does, and call ``final`` with the path of a leaf, or of a container of leaves.

        From then on its bytes are in place, and stay so until the next step. Called in the thread of the step.
        """
        ...


@runtime_checkable
class Follows(Protocol[StreamedT_contra]):
    """An engine with a component that can be stepped alone, on little that the rest of a block hands to it.

    A streaming decoder, say: its cache is large and all new in each block, and a function of the block's latents. A
    destination that steps it needs the latents and not the cache. What is wrong with that costs the move what it saves,
    and nothing else: every byte is compared at the boundary.
    """

    @property
    def followed(self) -> tuple[str, ...]:
        """The component: keys of the state, which is a dict then. Empty where a session has none."""
        ...

    def step_handing(
        self,
        session: StreamedT_contra,
        changes: Sequence[KeyChange],
        final: Callable[[str], None],
        hand: Callable[[bytes], None],
    ) -> Block:
        """Do what ``step`` does, and call ``hand`` once with what ``follow`` needs of this block, when that is final.

        At most 4 MiB. ``final`` is called as ``Streams`` has it, or not at all.
        """
        ...

    def follow(self, part: dict[str, Tree], handed: bytes) -> None:
        """Step the component alone by one block: write its memory, or put new leaves into ``part``.

        ``part`` is of no session: what a state has under the keys ``followed``, over memory of its own. Nothing writes
        it any more when this returns. Equal bytes to those of a step, in a controlled configuration.
        """
        ...


class Recovers(Protocol[RecoveredT_co]):
    """An engine that can begin a world from a picture. What such a world lacks is what a move carries."""

    def recover(self, frame: NDArray[np.uint8], seed: int) -> RecoveredT_co:
        """Begin a world that shows ``frame`` (uint8 RGB, [height, width, 3]) and knows nothing else."""
        ...
