"""An engine of which any member can be made to raise, and what code may raise at all."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.worker.counting import CountingEngine, World
from worldmove.engine.base import Block, FrameNote, KeyChange, Rolled
from worldmove.errors import EngineFailed, StateRefused, TransportError, UserError


class OddError(BaseException):
    """Of no kind that anybody knows."""


class UnsayableError(Exception):
    """Interrupts whoever asks what it is."""

    def __repr__(self) -> str:
        raise KeyboardInterrupt

    __str__ = __repr__


class OwnText(str):
    """A text that interrupts whoever does anything with it."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> str:
        raise KeyboardInterrupt

    __format__ = __str__ = __getitem__  # type: ignore[assignment]


class SaidOddlyError(BaseException):
    """Says what it is in a text of its own kind."""

    def __repr__(self) -> str:
        return OwnText("said oddly")


class OwnRefusalError(StateRefused):
    """One of ours with a method of its own."""

    def __str__(self) -> str:
        raise KeyboardInterrupt


class OwnTransportError(TransportError):
    __str__ = OwnRefusalError.__str__


class Lies:
    """No words."""

    __str__ = __repr__ = UnsayableError.__repr__


KINDS: Mapping[str, Callable[[], BaseException]] = {
    "interrupt": KeyboardInterrupt,
    "exit": lambda: SystemExit("of its own"),
    "generator's exit": GeneratorExit,
    "cancel": asyncio.CancelledError,
    "group": lambda: BaseExceptionGroup("of its own", [KeyboardInterrupt(), asyncio.CancelledError()]),
    "kind of its own": OddError,
    "end of an iteration": lambda: StopIteration(3),
    "end of an asynchronous one": StopAsyncIteration,
    "no memory": MemoryError,
    "recursion": RecursionError,
    "value": lambda: ValueError("\ud800" * 10_000),
    "unsayable": UnsayableError,
    "said oddly": SaidOddlyError,
    "a refusal of its own": lambda: OwnRefusalError("", ""),
    "a path's error of its own": lambda: OwnTransportError("x"),
    "one of ours that lies": lambda: UserError(Lies()),  # type: ignore[arg-type]
    "ours": lambda: EngineFailed("as it should"),
}


class Minefield(CountingEngine):
    """Raises ``what`` from the member ``armed``, and counts how often it has."""

    def __init__(self) -> None:
        super().__init__()
        self.armed = ""
        self.what: Callable[[], BaseException] = ValueError
        self.num_raised = 0
        self.touched: dict[str, None] = {}

    def mine(self, member: str) -> None:
        self.touched[member] = None
        if member == self.armed:
            self.num_raised += 1
            raise self.what()

    @property
    def state_types(self) -> Mapping[str, type]:
        self.mine("state_types")
        return {}

    @property
    def installs_unread(self) -> bool:
        self.mine("installs_unread")
        return True

    @property
    def followed(self) -> tuple[str, ...]:
        self.mine("followed")
        return ("numbers",)

    def warm_up(self) -> None:
        self.mine("warm_up")

    def open(self, seed: int) -> World:
        self.mine("open")
        return super().open(seed)

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        self.mine("step")
        made = super().step(session, changes)
        return Block(index=made.index, frames=made.frames, notes=Notes(self, made.notes))  # type: ignore[arg-type]

    def step_streaming(self, session: World, changes: Sequence[KeyChange], final: Callable[[str], None]) -> Block:
        self.mine("step_streaming")
        final("numbers")
        return self.step(session, changes)

    def step_handing(
        self,
        session: World,
        changes: Sequence[KeyChange],
        final: Callable[[str], None],
        hand: Callable[[bytes], None],
    ) -> Block:
        self.mine("step_handing")
        hand(b"all")
        return self.step(session, changes)

    def follow(self, part: dict[str, Any], handed: bytes) -> None:
        self.mine("follow")

    def rolled(self, session: World) -> Mapping[str, Rolled]:
        self.mine("rolled")
        return {}

    def quiesce(self, session: World) -> None:
        self.mine("quiesce")

    def state(self, session: World) -> dict[str, Any]:
        self.mine("state")
        return super().state(session)

    def install(self, state: dict[str, Any], into: World | None = None) -> World:
        self.mine("install")
        return super().install(state, into)

    def take_values(self, session: World, state: dict[str, Any]) -> None:
        self.mine("take_values")
        session.block, session.number = state["block"], state["number"]


MEMBERS = (
    *("state_types", "installs_unread", "followed", "warm_up", "open", "step", "notes", "step_streaming"),
    *("step_handing", "follow", "rolled", "quiesce", "state", "install", "take_values"),
)


class Notes:
    """An engine's notes, which are the engine's code as well."""

    def __init__(self, engine: Minefield, notes: Sequence[FrameNote]) -> None:
        self._engine = engine
        self._notes = notes

    def __iter__(self) -> Iterator[FrameNote]:
        for note in self._notes:
            self._engine.mine("notes")
            yield note
