"""Where an engine's sessions meet the slots' memory. Everything here runs in the engine's thread.

Opening and moving use one mechanism: a state is captured, laid into an arena, made a tree again over that
arena, and installed. So a session that was never moved plays from the same kind of memory as one that was.
"""

from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from worldmove.engine.base import Engine, Follows, InstallsUnread, Rolls, Tree
from worldmove.errors import EngineFailed, StateRefused, WorldMoveError
from worldmove.move.message import MAX_COUNT, MAX_ROLLED
from worldmove.move.streaming import can_be_said
from worldmove.state.arena import AnyArena, Gathered, Landing, Placement, adopt, begin_gather, foreseen, gather, landing
from worldmove.state.capture import Capture, capture
from worldmove.state.digest import Pass, Xxh3Digester, prepare, state_digest
from worldmove.state.kits import kit_of
from worldmove.state.leaf_digests import leaf_digests
from worldmove.state.manifest import Layout, Manifest
from worldmove.state.materialise import build
from worldmove.state.part import part_of
from worldmove.state.preview import Preview
from worldmove.state.recapture import Known, recapture, remember
from worldmove.state.rehearsal import Rehearsal, rehearse
from worldmove.state.structure import key_path

CopyAside = Callable[[Engine[Any], Any, AnyArena], tuple[Manifest, Placement]]
"""Copies a session's state, or a part of it, into an arena that is not its own."""

DIGESTER = Xxh3Digester()
RAISED = (Exception, SystemExit, CancelledError)
"""What an engine may raise. A cancel is its own: in its thread nobody else's is raised, and taken for that of whoever
waits it would end them without a word, with the session's slot taken for ever."""


def open_in(engine: Engine[Any], session: Any, arena: AnyArena) -> tuple[Any, Capture]:
    """Move a new session's memory into a slot; return the session over it, and its state there. Raises ArenaFull."""
    engine.quiesce(session)
    first = captured_of(engine, session)
    return install_in(engine, first.manifest, adopt(first, arena), arena)


def install_in(engine: Engine[Any], manifest: Manifest, placement: Placement, arena: AnyArena) -> tuple[Any, Capture]:
    """Make a session of what lies in an arena; return it, and its state as it will be played."""
    return install_tree(engine, tree_in(engine, manifest, placement, arena))


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A tree over an arena in which bytes may still be landing."""

    tree: Tree
    landing: Landing
    known: Known | None = None
    """What was resolved of it before it was there."""


def tree_in(
    engine: Engine[Any], manifest: Manifest, placement: Placement, arena: AnyArena, rehearsal: Rehearsal | None = None
) -> Built:
    """Make a tree of what will lie in an arena, for an engine to install. Raises StateRefused."""
    with engine_asked("be given its state"):
        tree = None if rehearsal is None else rehearsal.tree(manifest, placement, engine.state_types)
        if rehearsal is not None and tree is not None:
            return Built(tree=tree, landing=rehearsal.landing, known=rehearsal.known)
        state = landing(manifest, placement, arena)
        return Built(tree=build(state.capture, engine.state_types), landing=state)


def rehearse_in(engine: Engine[Any], layout: Layout, arena: AnyArena) -> Rehearsal | None:
    """Make ready for a state that is offered: all of it that will not change. None where the offer does not tell it."""
    preview = Preview.of(layout)
    if preview is None:
        return None
    with engine_asked("be given its state"):
        return rehearse(preview.manifest, preview.places, arena, engine.state_types)


def installs_ahead(engine: Engine[Any], built: Built) -> bool:
    """Say whether a tree may be installed while its bytes are landing: nobody reads one of them until they have."""
    return isinstance(engine, InstallsUnread) and engine.installs_unread and not built.landing.staged


def install_tree(engine: Engine[Any], built: Built) -> tuple[Any, Capture]:
    """Make a session of a tree whose bytes have landed; return it, and its state as it will be played.

    They may still be landing where ``installs_ahead`` says so.
    """
    with engine_asked("install"):
        built.landing.settle()
        session = engine.install(built.tree)
        engine.quiesce(session)
        if built.known is None:
            return session, captured_of(engine, session)
        return session, recapture(built.known, engine.state(session)).capture


def install_known(engine: Engine[Any], built: Built) -> tuple[Any, Known]:
    """Make a session of a tree whose bytes have landed; return it, and what makes resolving its state again cheaper."""
    with engine_asked("install"):
        built.landing.settle()
        session = engine.install(built.tree)
        return session, known_in(engine, session)


def known_in(engine: Engine[Any], session: Any) -> Known:
    """Resolve the state of a session, and remember it with what its digests need."""
    engine.quiesce(session)
    known = remember(engine.state(session), engine.state_types, kit_of(engine.spec.device))
    prepare(known.capture)
    return known


def install_landing(
    engine: Engine[Any],
    manifest: Manifest,
    placement: Placement,
    arena: AnyArena,
    rehearsal: Rehearsal | None,
    begin: Callable[[Capture], Pass],
) -> tuple[Any, Capture, Pass] | Built:
    """Make a session of what is landing in an arena, and begin a pass that comes after it.

    Only the tree, where the engine would read it.
    """
    built = tree_in(engine, manifest, placement, arena, rehearsal)
    if not installs_ahead(engine, built):
        return built
    session, captured = install_tree(engine, built)
    return session, captured, begin(captured)


def captured_of(engine: Engine[Any], session: Any) -> Capture:
    """Resolve the state of a session that is still."""
    return capture(engine.state(session), engine.state_types, kit_of(engine.spec.device))


def layout_in(engine: Engine[Any], session: Any, arena: AnyArena) -> tuple[Layout, Known]:
    """Describe a session that goes on being played; the bound is its slot's size. Raises StateRefused.

    With what makes its freeze cheaper; that keeps the tensors alive which the session may drop meanwhile.
    """
    with engine_asked("describe its state"):
        known = known_in(engine, session)
        places = foreseen(known.capture, arena)
        return Layout.of(known.capture.manifest, arena_bytes=arena.size, places=places), known


def rest_in(engine: Engine[Any], session: Any, arena: AnyArena, known: Known | None) -> tuple[Known, Placement]:
    """Bring into the arena what has left it, of a session that may be played on; return where everything lies.

    With what makes its freeze cheaper. Raises StateRefused or ArenaFull.
    """
    with engine_asked("give away its state"):
        engine.quiesce(session)
        tree = engine.state(session)
        now = recapture(known, tree) if known else remember(tree, engine.state_types, kit_of(engine.spec.device))
        return now, gather(now.capture, arena)


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
    begin: Callable[[Capture], Pass] | None = None,
    when_still: Callable[[], None] = lambda: None,
) -> Still:
    """Quiesce a session, resolve its state, and bring into the arena what has left it, if that is to be pulled.

    ``begin`` begins a pass: as soon as it is known where everything lies, while the values are still read.
    ``when_still`` is called before that, once nothing writes what lies in the slot.
    """
    freezing = _Freezing(arena if is_pulled else None, begin)
    with engine_asked("give away its state"):
        engine.quiesce(session)
        when_still()
        if known is None:
            captured = captured_of(engine, session)
        else:
            captured = recapture(known, engine.state(session), freezing.found).capture
    return freezing.still(captured, rolled_in(engine, session) if is_pulled else {})


def quiesced_in(engine: Engine[Any], session: Any) -> bool:
    """Let a session come to rest, and say whether it has: where its engine raises, the freeze will say so."""
    with suppress(StateRefused), engine_asked("come to rest"):
        engine.quiesce(session)
        return True
    return False


class _Freezing:
    """What is begun of a freeze before all of the state is read, and what of it holds in the end."""

    def __init__(self, arena: AnyArena | None, begin: Callable[[Capture], Pass] | None) -> None:
        self._arena = arena
        self._begin = begin
        self._storages: object = None
        self._gathered = Gathered(placement=())
        self._first: Pass | None = None

    def found(self, capture: Capture) -> None:
        """Begin: first what the other end waits for."""
        self._storages = capture.storages
        if self._arena is not None:
            self._gathered = begin_gather(capture, self._arena)
        if self._begin is not None:
            self._first = self._begin(capture)

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
    if not isinstance(engine, Rolls):
        return {}
    with engine_asked("say what it has rolled"):
        said = {path: (int(by.axis), int(by.block), int(by.sink)) for path, by in engine.rolled(session).items()}
    told = (path for path, by in said.items() if can_be_said(path) and min(by) >= 0 and max(by) < MAX_COUNT)
    return {path: said[path] for path in islice(told, MAX_ROLLED)}


def copy_aside_in(engine: Engine[Any], session: Any, arena: AnyArena) -> tuple[Manifest, Placement]:
    """Copy a session's state into an arena that is not its own; the session goes on where it is. Raises ArenaFull."""
    with engine_asked("give away its state"):
        engine.quiesce(session)
        captured = captured_of(engine, session)
        return captured.manifest, adopt(captured, arena)


def followed_paths(engine: Engine[Any]) -> tuple[str, ...]:
    """Return the paths of what of a session could be stepped elsewhere by itself; () where nothing can."""
    if not isinstance(engine, Follows):
        return ()
    paths = tuple(key_path("", key) for key in engine.followed)
    return paths if all(map(can_be_said, paths)) else ()


def component_aside_in(engine: Engine[Any], session: Any, arena: AnyArena) -> tuple[Manifest, Placement]:
    """Copy aside what of a session could be stepped elsewhere by itself, with the paths of the whole state.

    Raises ArenaFull, or StateRefused where there is nothing such.
    """
    if not isinstance(engine, Follows) or not engine.followed:
        raise StateRefused("", "the engine says of nothing that it could be stepped by itself")
    with engine_asked("give a part of its state away"):
        engine.quiesce(session)
        part = part_of(engine.state(session), engine.followed)
        captured = capture(part, engine.state_types, kit_of(engine.spec.device))
        return captured.manifest, adopt(captured, arena)


def capture_still(engine: Engine[Any], session: Any) -> Capture:
    """Quiesce a session and resolve its state."""
    engine.quiesce(session)
    return captured_of(engine, session)


def digest_of(engine: Engine[Any], session: Any) -> str:
    """Return the state digest of a session at a boundary."""
    return state_digest(capture_still(engine, session), DIGESTER).text


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a state is at a boundary, short enough for a record."""

    state_digest: str
    paths: tuple[str, ...]
    leaf_digests: bytes


def account_of(engine: Engine[Any], session: Any) -> Account:
    """Return the digests of a session's state, and of each of its leaves, at a boundary. Raises StateRefused."""
    with engine_asked("account for its state"):
        captured = capture_still(engine, session)
    return Account(
        state_digest=state_digest(captured, DIGESTER).text,
        paths=captured.manifest.paths(),
        leaf_digests=leaf_digests(captured, DIGESTER),
    )


@contextmanager
def engine_asked(what: str) -> Iterator[None]:
    """Call a foreign engine: whatever it raises ends this attempt, and neither the worker nor its other sessions."""
    try:
        yield
    except WorldMoveError:
        raise
    except RAISED as error:
        raise StateRefused("", f"the engine could not {what}: {_text_of(error)}") from error


@contextmanager
def engine_trusted(what: str) -> Iterator[None]:
    """Call a foreign engine where nothing else can be done: whatever it raises ends this session, and no other.

    Raises EngineFailed.
    """
    try:
        yield
    except WorldMoveError:
        raise
    except RAISED as error:
        raise EngineFailed(f"the engine failed to {what}: {_text_of(error)}"[:2000]) from error


def _text_of(error: BaseException) -> str:
    """Return what an engine raised in words, also where that raises in its turn."""
    try:
        return repr(error)
    except RAISED:
        return type(error).__name__
