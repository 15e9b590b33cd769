"""Makes a session of what lies in a slot, or is landing there. What is given an engine runs in the engine's thread.

Opening and moving use one mechanism: a state is captured, laid into an arena, made a tree again over that
arena, and installed. So a session that was never moved plays from the same kind of memory as one that was.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from worldmove.engine.base import Engine, InstallsUnread, TakesValues, Tree
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.device_digests import prepare
from worldmove.state.digest import BeginPass, Pass
from worldmove.state.gathering import adopt
from worldmove.state.landing import Landing, landing
from worldmove.state.layout import Layout
from worldmove.state.manifest import Manifest
from worldmove.state.materialise import build
from worldmove.state.placement import Placement
from worldmove.state.preview import Preview
from worldmove.state.recapture import Known, recapture, recapture_begun
from worldmove.state.rehearsal import Rehearsal, rehearse
from worldmove.worker.foreign import engine_asked
from worldmove.worker.states import captured_of, known_in


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
    session: Any = None
    """What was made ahead of the same tree, with values that may have changed since; None where nothing was."""


def tree_in(
    engine: Engine[Any], manifest: Manifest, placement: Placement, arena: AnyArena, rehearsal: Rehearsal | None = None
) -> Built:
    """Make a tree of what will lie in an arena, for an engine to install. Raises StateRefused."""
    with engine_asked("be given its state"):
        tree = None if rehearsal is None else rehearsal.tree(manifest, placement, engine.state_types)
        if rehearsal is not None and tree is not None:
            return Built(tree=tree, landing=rehearsal.landing, known=rehearsal.known, session=rehearsal.session)
        types = engine.state_types
    return tree_of(types, manifest, placement, arena)


def tree_of(types: Mapping[str, type], manifest: Manifest, placement: Placement, arena: AnyArena) -> Built:
    """Make a tree of what lies in an arena, without an engine: how long that takes is for whoever wrote it to say.

    Raises StateRefused, ManifestError.
    """
    with engine_asked("be given its state"):
        state = landing(manifest, placement, arena)
        return Built(tree=build(state.capture, types), landing=state)


def rehearse_in(engine: Engine[Any], layout: Layout, arena: AnyArena) -> Rehearsal | None:
    """Make ready for a state that is offered: all of it that will not change. None where the offer does not tell it."""
    preview = Preview.of(layout)
    if preview is None:
        return None
    with engine_asked("be given its state"):
        rehearsal = rehearse(preview.manifest, preview.places, arena, engine.state_types)
        if isinstance(engine, TakesValues) and _reads_nothing(engine, rehearsal.landing):
            rehearsal.session = engine.install(rehearsal.built)
        return rehearsal


def practise(engine: Engine[Any], rehearsal: Rehearsal) -> None:
    """Do with what was offered, right before a freeze, what its boundary will ask for: that finds code and objects at
    hand, and takes a fraction of the time. Raises StateRefused.
    """
    with engine_asked("be given its state"):
        tree = rehearsal.tree(rehearsal.manifest, rehearsal.placement, engine.state_types)
        if rehearsal.session is not None and tree is not None and isinstance(engine, TakesValues):
            engine.take_values(rehearsal.session, tree)
            rehearsal.known = recapture(rehearsal.known, engine.state(rehearsal.session))


def installs_ahead(engine: Engine[Any], built: Built) -> bool:
    """Say whether a tree may be installed while its bytes are landing: nobody reads one of them until they have."""
    with engine_asked("say whether it reads what it installs"):
        return _reads_nothing(engine, built.landing)


def _reads_nothing(engine: Engine[Any], landing: Landing) -> bool:
    return isinstance(engine, InstallsUnread) and engine.installs_unread and not landing.staged


def install_tree(engine: Engine[Any], built: Built) -> tuple[Any, Capture]:
    """Make a session of a tree whose bytes have landed; return it, and its state as it will be played.

    They may still be landing where ``installs_ahead`` says so.
    """
    with engine_asked("install"):
        session = _installed(engine, built)
        if built.known is None:
            return session, captured_of(engine, session)
        return session, recapture(built.known, engine.state(session)).capture


def install_begun(engine: Engine[Any], built: Built, begin: BeginPass) -> tuple[Any, Capture, Pass]:
    """Do what ``install_tree`` does, and begin a pass over it: of what was known ahead, before it is resolved."""
    with engine_asked("install"):
        session = _installed(engine, built)
        if built.known is None:
            captured = captured_of(engine, session)
            return session, captured, begin(captured)
        return session, *recapture_begun(built.known, lambda: engine.state(session), begin)


def _installed(engine: Engine[Any], built: Built) -> Any:
    built.landing.settle()
    if built.session is not None and isinstance(engine, TakesValues):
        session = built.session
        engine.take_values(session, built.tree)
    else:
        session = engine.install(built.tree)
    engine.quiesce(session)
    return session


def install_known(engine: Engine[Any], built: Built) -> tuple[Any, Known]:
    """Make a session of a tree whose bytes have landed; return it, and what makes resolving its state again cheaper."""
    with engine_asked("install"):
        built.landing.settle()
        session = engine.install(built.tree)
        known = known_in(engine, session)
        prepare(known.capture)
        return session, known


def install_landing(
    engine: Engine[Any],
    manifest: Manifest,
    placement: Placement,
    arena: AnyArena,
    rehearsal: Rehearsal | None,
    begin: BeginPass,
) -> tuple[Any, Capture, Pass] | Built:
    """Make a session of what is landing in an arena, and begin a pass that comes after it.

    Only the tree, where the engine would read it.
    """
    built = tree_in(engine, manifest, placement, arena, rehearsal)
    if not installs_ahead(engine, built):
        return built
    return install_begun(engine, built, begin)
