"""A session that is made ahead of its state, and given its values at the boundary: what is proven is what is there."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch

from tests.worker.device_engine import World
from tests.worker.test_device_move import ARENA_BYTES, Unread
from worldmove.engine.base import Block, KeyChange, TakesValues, Tree
from worldmove.engine.scattered import ScatteredEngine
from worldmove.state.capture import Capture
from worldmove.state.device_arena import DeviceArena
from worldmove.state.digest import Pass
from worldmove.state.kits import kit_of
from worldmove.state.manifest import Manifest
from worldmove.state.placement import extents
from worldmove.worker.ahead import resolved_in
from worldmove.worker.freezing import freeze_in, layout_in
from worldmove.worker.installing import install_begun, open_in, practise, rehearse_in, tree_in
from worldmove.worker.states import DIGESTER

NONCE = b"n" * 32


class Staying(Unread):
    """Stays in its slot."""

    installs = 0

    def install(self, state: Tree, into: World | None = None) -> World:
        self.installs += 1
        return super().install(state, into)

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        session.window.add_(torch.randn(1, generator=session.noise))
        session.block, session.number = session.block + 1, session.number + 7
        return super().step(self.open(0), changes)


class Taking(Staying):
    """Takes its values later."""

    def take_values(self, session: World, state: Any) -> None:
        session.noise, session.dice = state["noise"], state["dice"]
        session.block, session.number = state["block"], state["number"]


class Forgets(Taking):
    """Leaves one value as it was."""

    def take_values(self, session: World, state: Any) -> None:
        super().take_values(session, {**state, "number": session.number})


class Writes(Taking):
    """Writes a byte of what has landed, or is landing."""

    def take_values(self, session: World, state: Any) -> None:
        super().take_values(session, state)
        session.window.view(torch.uint8)[5, 5] ^= 1


class Binds(Taking):
    """Has another tensor than the one that it was given, with other bytes."""

    def take_values(self, session: World, state: Any) -> None:
        super().take_values(session, state)
        session.rebound = session.rebound + 1


class Points(Taking):
    """Lets the tensor that it was given view other memory."""

    def take_values(self, session: World, state: Any) -> None:
        super().take_values(session, state)
        session.rebound.data = session.rebound + 1


class Swaps(Taking):
    """Gives back another object over the same memory."""

    def take_values(self, session: World, state: Any) -> None:
        super().take_values(session, state)
        session.rebound = session.rebound.view(-1)


class Views(Taking):
    """Has another view of the same memory after each block."""

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        block = super().step(session, changes)
        session.rebound = session.rebound.view(2, -1)
        return block


def moved(
    engine: Staying | ScatteredEngine, *, practises: bool = False, own: Staying | None = None
) -> tuple[Manifest, bytes, Capture, bytes]:
    """Move a session that is played on after its offer; return what was frozen and what is installed, digested."""
    own = own or Staying()
    kit = kit_of("double")
    assert kit is not None
    here, there = (DeviceArena(ARENA_BYTES, "test", kit) for _ in range(2))
    session, _ = open_in(own, own.open(3), here)
    layout, known = layout_in(own, session, here)
    rehearsal = rehearse_in(engine, layout, there)
    own.step(session, ())
    if practises and rehearsal is not None:
        practise(engine, rehearsal)
    begin = partial(Pass, digester=DIGESTER, nonce=NONCE, layout_digest=layout.digest)
    frozen = freeze_in(own, session, here, resolved_in(own, session, known), begin=begin)
    manifest = frozen.capture.manifest
    for extent in extents(manifest, frozen.placement):
        there.write(extent.offset, here.read(extent.offset, extent.length))
    built = tree_in(engine, manifest, frozen.placement, there, rehearsal)
    _, captured, begun = install_begun(engine, built, begin)
    assert frozen.first is not None
    digests = begun.joined()
    assert digests == begin(captured).joined()
    return manifest, frozen.first.joined(), captured, digests


@pytest.mark.parametrize("practises", [False, True])
@pytest.mark.parametrize("kind", [Taking, Swaps])
def test_a_session_made_ahead_is_what_was_frozen_and_is_installed_once(kind: type[Taking], *, practises: bool) -> None:
    engine = kind()
    manifest, digests, captured, there = moved(engine, practises=practises)
    assert (captured.manifest, there) == (manifest, digests)
    assert engine.installs == 1


@pytest.mark.parametrize("practises", [False, True])
def test_a_session_made_ahead_of_another_view_of_its_memory_is_made_anew(*, practises: bool) -> None:
    engine = Views()
    manifest, digests, captured, there = moved(engine, practises=practises, own=Views())
    assert (captured.manifest, there) == (manifest, digests)
    assert engine.installs == 2


@pytest.mark.parametrize("practises", [False, True])
def test_a_value_that_was_not_taken_is_seen(*, practises: bool) -> None:
    manifest, _, captured, _ = moved(Forgets(), practises=practises)
    assert captured.manifest != manifest
    assert manifest.difference(captured.manifest)[0].startswith("number")


@pytest.mark.parametrize("practises", [False, True])
@pytest.mark.parametrize("kind", [Writes, Binds, Points])
def test_bytes_that_an_engine_changes_as_it_takes_values_are_seen(kind: type[Taking], *, practises: bool) -> None:
    _, digests, _, there = moved(kind(), practises=practises)
    assert there != digests


def test_an_engine_around_another_takes_values_where_that_does() -> None:
    assert isinstance(ScatteredEngine(Taking()), TakesValues)
    assert not isinstance(ScatteredEngine(Staying()), TakesValues)
    inner = Taking()
    manifest, digests, captured, there = moved(ScatteredEngine(inner))
    assert (captured.manifest, there, inner.installs) == (manifest, digests, 1)


def test_an_engine_that_takes_no_values_is_given_the_tree_at_the_boundary() -> None:
    engine = Staying()
    manifest, digests, captured, there = moved(engine)
    assert (captured.manifest, there, engine.installs) == (manifest, digests, 1)
