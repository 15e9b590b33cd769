"""A session that stands still before its freeze is resolved then, and told so: what changes after that is found."""

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.worker.device_engine import World
from tests.worker.test_device_move import ARENA_BYTES, peer
from tests.worker.test_device_order import Aligned
from tests.worker.test_move_between_workers import Pair
from worldmove.move.messages import Ended, Ready
from worldmove.state.arena import Arena
from worldmove.state.gathering import gather
from worldmove.state.layout import Layout
from worldmove.state.recapture import remember
from worldmove.worker import known_ahead, source_copy
from worldmove.worker.ahead import ahead_in, resolved_in
from worldmove.worker.freezing import resolved_anew
from worldmove.worker.known_ahead import KnownAhead


def nothing(world: World) -> None:
    """An engine whose state stays what it is."""


def counts(world: World) -> None:
    world.number += 1


def draws(world: World) -> None:
    world.dice.manual_seed(99)


def binds_the_same(world: World) -> None:
    world.window = world.window.clone()


def binds_another(world: World) -> None:
    world.window = world.window + 1


def points_elsewhere(world: World) -> None:
    world.window.data = world.window + 1


def reshapes(world: World) -> None:
    assert world.late is not None
    world.late.t_()


CHANGES: Mapping[Callable[[World], None], tuple[str, str]] = {
    nothing: ("committed", ""),
    binds_the_same: ("committed", ""),
    counts: ("aborted", "number"),
    draws: ("aborted", "dice"),
    binds_another: ("aborted", "window"),
    points_elsewhere: ("aborted", "window"),
    reshapes: ("aborted", "late"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_between_the_resolving_and_the_freeze_is_not_moved_as_it_was(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[World], None]
) -> None:
    anew: list[Any] = []

    def noted(*asked: Any) -> Any:
        anew.append(resolved_anew(*asked))
        return anew[-1]

    monkeypatch.setattr(source_copy, "resolved_anew", noted)

    async def run() -> tuple[Ended, list[int]]:
        def struck(message: Any) -> bool:
            if isinstance(message, Ready):
                copy = pair.benches["a"].worker.copies.get("s-1")
                assert copy is not None
                change(copy.engine_session)
            return False

        pair = Pair(engines=(Aligned(), Aligned()), transports={"path": peer()}, arena_bytes=ARENA_BYTES, loses=struck)
        try:
            await pair.open_on_a(4)
            await pair.start_move("path")
            ended = await pair.hears(Ended)
            await pair.settle()
            a = pair.benches["a"]
            if ended.outcome == "aborted":
                a.inputs(4)
                await a.rest()
            return ended, a.blocks()
        finally:
            await pair.close()

    ended, blocks = asyncio.run(run())
    outcome, path = CHANGES[change]
    assert len(anew) == 1
    assert (ended.outcome, path in ended.detail) == (outcome, True)
    assert ended.reason == ("engine_wrote" if path else "done")
    assert blocks == [0, 1, 2, 3, 4][: 5 if path else 4]


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_between_the_resolving_and_the_freeze_is_not_what_its_follower_has_computed(
    monkeypatch: pytest.MonkeyPatch, change: Callable[[World], None]
) -> None:
    """A replay: nothing is pulled, and the session was resolved where it is met."""
    resolved: list[Any] = []

    def then_changed(engine: Any, session: World, known: Any) -> Any:
        resolved.append(resolved_in(engine, session, known))
        change(session)
        return resolved[-1]

    monkeypatch.setattr(known_ahead, "resolved_in", then_changed)

    async def run() -> Ended:
        pair = Pair(
            engines=(Aligned(), Aligned()),
            transports={"path": peer()},
            arena_bytes=ARENA_BYTES,
            heard_of=lambda done: pair.acknowledge("a", done.block),
            num_slots=3,
        )
        pair.strategy = "replay"
        try:
            await pair.open_on_a(4)
            await pair.open_attempt("path")
            pair.begin()
            await pair.settle()
            for each in pair.benches.values():
                each.inputs(4, 5, 6)
            await pair.hears(Ready)
            pair.start()
            found: Ended = await pair.hears(Ended)
            return found
        finally:
            await pair.close()

    ended = asyncio.run(run())
    outcome, path = CHANGES[change]
    assert len(resolved) == 1
    assert (ended.outcome, path in ended.detail) == (outcome, True), ended.detail
    assert ended.reason == ("engine_wrote" if path else "done")


def test_of_a_session_in_host_memory_nothing_comes_early() -> None:
    arena = Arena(1 << 16, "here")
    known = remember({"all": torch.zeros(2048)}, {}, None)
    places = gather(known.capture, arena)
    ahead = KnownAhead(SimpleNamespace(slot=SimpleNamespace(arena=arena)), SimpleNamespace())  # type: ignore[arg-type]
    ahead.offer(Layout.of(known.capture.manifest, arena_bytes=arena.size, places=places), known)
    assert ahead.offered is not None
    assert not ahead.comes_early(None)
    assert not ahead.comes_early(ahead_in(arena, known, 3))
