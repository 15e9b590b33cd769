"""What the state of an engine's session is: resolved, accounted for, copied aside. Here in the engine's thread."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from worldmove.engine.base import Engine, Follows
from worldmove.errors import StateRefused
from worldmove.move.streaming import can_be_said
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture, capture
from worldmove.state.digest import Xxh3Digester, state_digest
from worldmove.state.gathering import adopt
from worldmove.state.kits import kit_of
from worldmove.state.leaf_digests import leaf_digests
from worldmove.state.manifest import Manifest
from worldmove.state.part import part_of
from worldmove.state.placement import Placement
from worldmove.state.progress import GetsOn, unheard
from worldmove.state.recapture import Known, remember
from worldmove.state.structure import key_path
from worldmove.worker.foreign import engine_asked

DIGESTER = Xxh3Digester()


def captured_of(engine: Engine[Any], session: Any) -> Capture:
    """Resolve the state of a session that is still."""
    return capture(engine.state(session), engine.state_types, kit_of(engine.spec.device))


def capture_still(engine: Engine[Any], session: Any) -> Capture:
    """Quiesce a session and resolve its state."""
    engine.quiesce(session)
    return captured_of(engine, session)


def known_in(engine: Engine[Any], session: Any) -> Known:
    """Resolve the state of a session, and remember it."""
    engine.quiesce(session)
    return remember(engine.state(session), engine.state_types, kit_of(engine.spec.device))


def digest_of(engine: Engine[Any], session: Any) -> str:
    """Return the state digest of a session at a boundary. Raises StateRefused."""
    with engine_asked("account for its state"):
        captured = capture_still(engine, session)
    return state_digest(captured, DIGESTER).text


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


CopyAside = Callable[[Engine[Any], Any, AnyArena, Callable[[], None]], tuple[Manifest, Placement]]
"""Copies a session's state, or a part of it, into an arena that is not its own. The last hears of each piece."""


def copy_aside_in(
    engine: Engine[Any], session: Any, arena: AnyArena, gets_on: GetsOn = unheard
) -> tuple[Manifest, Placement]:
    """Copy a session's state into an arena that is not its own; the session goes on where it is. Raises ArenaFull."""
    with engine_asked("give away its state"):
        engine.quiesce(session)
        captured = captured_of(engine, session)
        return captured.manifest, adopt(captured, arena, gets_on)


def component_aside_in(
    engine: Engine[Any], session: Any, arena: AnyArena, gets_on: GetsOn = unheard
) -> tuple[Manifest, Placement]:
    """Copy aside what of a session could be stepped elsewhere by itself, with the paths of the whole state.

    Raises ArenaFull, or StateRefused where there is nothing such.
    """
    with engine_asked("give a part of its state away"):
        if not isinstance(engine, Follows) or not engine.followed:
            raise StateRefused("", "the engine says of nothing that it could be stepped by itself")
        engine.quiesce(session)
        part = part_of(engine.state(session), engine.followed)
        captured = capture(part, engine.state_types, kit_of(engine.spec.device))
        return captured.manifest, adopt(captured, arena, gets_on)


def followed_paths(engine: Engine[Any]) -> tuple[str, ...]:
    """Return the paths of what of a session could be stepped elsewhere by itself; () where nothing can.

    Raises StateRefused.
    """
    with engine_asked("say what of it could be stepped by itself"):
        if not isinstance(engine, Follows):
            return ()
        paths = tuple(key_path("", key) for key in engine.followed)
        return paths if all(map(can_be_said, paths)) else ()
