"""Takes a session's state to be moved: described, brought into its slot, and at last still. In the engine's thread."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from worldmove.engine.base import Engine, Rolls
from worldmove.errors import WorldMoveError
from worldmove.limits import MAX_COUNT
from worldmove.move.message import MAX_ROLLED
from worldmove.move.streaming import can_be_said
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.device_digests import prepare
from worldmove.state.digest import BeginPass, Pass
from worldmove.state.gathering import Gathered, begin_gather
from worldmove.state.layout import Layout
from worldmove.state.placement import Placement, early_of, foreseen
from worldmove.state.recapture import Known, recapture
from worldmove.worker.ahead import Ahead
from worldmove.worker.foreign import engine_asked
from worldmove.worker.states import captured_of, known_in


def layout_in(engine: Engine[Any], session: Any, arena: AnyArena) -> tuple[Layout, Known]:
    """Describe a session that goes on being played; the bound is its slot's size. Raises StateRefused.

    With what makes its freeze cheaper; that keeps the tensors alive which the session may drop meanwhile.
    """
    with engine_asked("describe its state"):
        known = known_in(engine, session)
        manifest, places = known.capture.manifest, foreseen(known.capture, arena)
        prepare(known.capture, early_of(manifest, places))
        return Layout.of(manifest, arena_bytes=arena.size, places=places), known


def resolved_anew(engine: Engine[Any], session: Any, known: Known) -> Capture:
    """Resolve a frozen session once more, while passes over what is known of it may be under way. Raises StateRefused.

    The capture that is known where it is the same in every value and place.
    """
    apart = replace(known, capture=replace(known.capture, plans=[]))  # what the device reads by is not changed
    with engine_asked("give away its state"):
        found = recapture(apart, engine.state(session)).capture
    is_same = found.manifest == known.capture.manifest and found.lies_as(known.capture)
    return known.capture if is_same else found


def quiesced_in(engine: Engine[Any], session: Any) -> bool:
    """Let a session come to rest, and say whether it has: where its engine raises, the freeze will say so."""
    with suppress(WorldMoveError), engine_asked("come to rest"):
        engine.quiesce(session)
        return True
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Still:
    """A session's state, resolved while nothing writes it."""

    capture: Capture
    placement: Placement
    """Where in the arena it lies; () where it is not to be pulled."""
    moved: tuple[int, ...]
    """Which storages were brought there now: what was pulled of them before is not what they hold."""
    first: Pass | None
    """The first pass over it, which has begun, where one was asked for."""
    rolled: Mapping[str, tuple[int, int, int]]
    """See ``rolled_in``."""


def freeze_in(
    engine: Engine[Any],
    session: Any,
    arena: AnyArena,
    known: Known | None = None,
    *,
    is_pulled: bool = True,
    begin: BeginPass | None = None,
    when_still: Callable[[], None] = lambda: None,
    says_rolled: bool = True,
    ahead: Ahead | None = None,
) -> Still:
    """Quiesce a session, resolve its state, and bring into the arena what has left it, if that is to be pulled.

    ``begin`` begins a pass: as soon as it is known where everything lies, while the values are still read.
    ``when_still`` is called before that, once nothing writes what lies in the slot. ``says_rolled``: whether anybody
    wants to know what the engine has rolled. ``ahead``: what was made ready since the last step. Then that is what is
    said at once, and ``resolved_anew`` has to be asked whether it is so.
    """
    freezing = _Freezing(arena if is_pulled else None, begin, ahead)
    with engine_asked("give away its state"):
        engine.quiesce(session)
        when_still()
        if ahead is not None:
            captured = ahead.known.capture
        elif known is None:
            captured = captured_of(engine, session)
        else:
            captured = recapture(known, engine.state(session), freezing.found).capture
    return freezing.still(captured, rolled_in(engine, session) if is_pulled and says_rolled else {})


class _Freezing:
    """What is begun of a freeze before all of the state is read, and what of it holds in the end."""

    def __init__(self, arena: AnyArena | None, begin: BeginPass | None, ahead: Ahead | None) -> None:
        self._arena = arena
        self._begin = begin
        self._ahead = ahead
        self._storages: object = None
        self._gathered = Gathered(placement=())
        self._first: Pass | None = None

    def found(self, capture: Capture) -> None:
        """Begin: first what the other end waits for."""
        self._storages, read = capture.storages, capture
        if self._arena is not None and self._ahead is not None:
            self._gathered, read = self._ahead.gathered(self._arena), self._ahead.copied
        elif self._arena is not None:
            self._gathered = begin_gather(capture, self._arena)
        if self._begin is not None:
            self._first = self._begin(read)

    def still(self, capture: Capture, rolled: Mapping[str, tuple[int, int, int]]) -> Still:
        """Return what holds of this state; what was begun for other memory is waited for, and begun anew."""
        if capture.storages is not self._storages:
            self._gathered.wait()
            if self._first is not None:
                self._first.joined()
            self.found(capture)
        self._gathered.wait()
        gathered = self._gathered
        return Still(
            capture=capture, placement=gathered.placement, moved=gathered.moved, first=self._first, rolled=rolled
        )


def rolled_in(engine: Engine[Any], session: Any) -> Mapping[str, tuple[int, int, int]]:
    """Return what an engine says of the leaves that its last step has rolled; nothing, where it says nothing.

    What no message can say is left out: an axis that is counted from the end, say. It would end the link.
    """
    try:
        with engine_asked("say what it has rolled"):
            if not isinstance(engine, Rolls):
                return {}
            said = {path: (int(by.axis), int(by.block), int(by.sink)) for path, by in engine.rolled(session).items()}
    except WorldMoveError:  # without its word what was moved is searched for
        return {}
    told = (path for path, by in said.items() if can_be_said(path) and min(by) >= 0 and max(by) < MAX_COUNT)
    return {path: said[path] for path in islice(told, MAX_ROLLED)}
