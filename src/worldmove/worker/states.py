"""Where an engine's sessions meet the slots' memory. Everything here runs in the engine's thread.

Opening and moving use one mechanism: a state is captured, laid into an arena, made a tree again over that
arena, and installed. So a session that was never moved plays from the same kind of memory as one that was.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from worldmove.engine.base import Engine, Tree
from worldmove.errors import EngineFailed, StateRefused, WorldMoveError
from worldmove.state.arena import Arena, Placement, adopt, gather, materialise
from worldmove.state.capture import Capture, capture
from worldmove.state.digest import Xxh3Digester, state_digest
from worldmove.state.leaf_digests import leaf_digests
from worldmove.state.manifest import Layout, Manifest

DIGESTER = Xxh3Digester()


def open_in(engine: Engine[Any], session: Any, arena: Arena) -> tuple[Any, Capture]:
    """Move a new session's memory into a slot; return the session over it, and its state there. Raises ArenaFull."""
    first = capture(engine.state(session), engine.state_types)
    return install_in(engine, first.manifest, adopt(first, arena), arena)


def install_in(engine: Engine[Any], manifest: Manifest, placement: Placement, arena: Arena) -> tuple[Any, Capture]:
    """Make a session of what lies in an arena; return it, and its state as it will be played."""
    return install_tree(engine, tree_in(engine, manifest, placement, arena))


def tree_in(engine: Engine[Any], manifest: Manifest, placement: Placement, arena: Arena) -> Tree:
    """Make a tree of what lies in an arena, for an engine to install. Raises StateRefused."""
    with engine_asked("be given its state"):
        return materialise(manifest, placement, arena, engine.state_types)


def install_tree(engine: Engine[Any], tree: Tree) -> tuple[Any, Capture]:
    """Make a session of a tree over an arena; return it, and its state as it will be played."""
    with engine_asked("install"):
        session = engine.install(tree)
        return session, capture(engine.state(session), engine.state_types)


def layout_in(engine: Engine[Any], session: Any, arena: Arena) -> Layout:
    """Describe a session that goes on being played; the bound is its slot's size. Raises StateRefused."""
    with engine_asked("describe its state"):
        engine.quiesce(session)
        return Layout.of(capture(engine.state(session), engine.state_types).manifest, arena_bytes=arena.size)


def freeze_in(engine: Engine[Any], session: Any, arena: Arena) -> tuple[Capture, Placement]:
    """Quiesce a session, resolve its state, and bring into the arena what has left it."""
    with engine_asked("give away its state"):
        engine.quiesce(session)
        captured = capture(engine.state(session), engine.state_types)
        return captured, gather(captured, arena)


def digest_of(engine: Engine[Any], session: Any) -> str:
    """Return the state digest of a session at a boundary."""
    engine.quiesce(session)
    return state_digest(capture(engine.state(session), engine.state_types), DIGESTER).text


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What a state is at a boundary, short enough for a record."""

    state_digest: str
    paths: tuple[str, ...]
    leaf_digests: bytes


def account_of(engine: Engine[Any], session: Any) -> Account:
    """Return the digests of a session's state, and of each of its leaves, at a boundary. Raises StateRefused."""
    with engine_asked("account for its state"):
        engine.quiesce(session)
        state = engine.state(session)
    captured = capture(state, engine.state_types)
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
    except (Exception, SystemExit) as error:
        raise StateRefused("", f"the engine could not {what}: {error!r}") from error


@contextmanager
def engine_trusted(what: str) -> Iterator[None]:
    """Call a foreign engine where nothing else can be done: whatever it raises ends this session, and no other.

    Raises EngineFailed.
    """
    try:
        yield
    except WorldMoveError:
        raise
    except (Exception, SystemExit) as error:
        raise EngineFailed(f"the engine failed to {what}: {error!r}"[:2000]) from error
