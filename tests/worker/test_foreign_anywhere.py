"""Whatever an engine raises, and wherever its code runs: an error of ours gets out of its thread, and nothing else."""

import asyncio
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.worker.bench_worker import Bench, bench
from tests.worker.minefield import KINDS, MEMBERS, Minefield
from worldmove.errors import EngineFailed, NoMemory, StateRefused, TransportError
from worldmove.state.arena import Arena
from worldmove.state.digest import Pass
from worldmove.units import MIB
from worldmove.worker.ahead import resolved_in
from worldmove.worker.freezing import freeze_in, layout_in, resolved_anew, rolled_in
from worldmove.worker.habits import habits
from worldmove.worker.installing import (
    install_begun,
    install_in,
    install_known,
    install_landing,
    install_tree,
    installs_ahead,
    open_in,
    practise,
    rehearse_in,
    tree_in,
)
from worldmove.worker.messages import BlockDone, Describe, Failed, NotDone, Open, Opened
from worldmove.worker.states import DIGESTER, account_of, component_aside_in, copy_aside_in, digest_of, followed_paths
from worldmove.worker.stepping import step
from worldmove.worker.threads import OneThread
from worldmove.worker.warm_up import warm_up

Act = Callable[[], object]


class Ground:
    """A session of an engine in its slot, frozen and described, with a second slot beside it."""

    def __init__(self) -> None:
        self.engine, self.arena, self.aside = Minefield(), Arena(MIB, "test"), Arena(MIB, "aside")
        self.session, _ = open_in(self.engine, self.engine.open(1), self.arena)
        self.layout, self.known = layout_in(self.engine, self.session, self.arena)
        self.manifest, self.placement = copy_aside_in(self.engine, self.session, self.aside)
        self.rehearsal = rehearse_in(self.engine, self.layout, self.aside)
        assert self.rehearsal is not None
        assert self.rehearsal.session is not None
        self.built = tree_in(self.engine, self.manifest, self.placement, self.aside)
        self.ahead = tree_in(self.engine, self.manifest, self.placement, self.aside, self.rehearsal)

    def step(self, **options: Any) -> object:
        return step(self.engine, self.session, (), lambda: 0.0, wants_digest=False, **options)


def begun(captured: Any) -> Pass:
    return Pass(captured, DIGESTER, bytes(32), bytes(32))


PLACES: dict[str, Callable[[Ground], object]] = {
    "step": lambda g: g.step(),
    "step, streaming": lambda g: g.step(final=lambda _: None),
    "step, handing": lambda g: g.step(hand=lambda _: None),
    "digest": lambda g: digest_of(g.engine, g.session),
    "account": lambda g: account_of(g.engine, g.session),
    "describe": lambda g: layout_in(g.engine, g.session, g.arena),
    "freeze": lambda g: freeze_in(g.engine, g.session, g.arena),
    "freeze what is known": lambda g: freeze_in(g.engine, g.session, g.arena, g.known),
    "resolve anew": lambda g: resolved_anew(g.engine, g.session, g.known),
    "resolve ahead": lambda g: resolved_in(g.engine, g.session, None),
    "resolve ahead what is known": lambda g: resolved_in(g.engine, g.session, g.known),
    "say what it has rolled": lambda g: rolled_in(g.engine, g.session),
    "copy aside": lambda g: copy_aside_in(g.engine, g.session, g.aside),
    "copy a component aside": lambda g: component_aside_in(g.engine, g.session, g.aside),
    "say what is followed": lambda g: followed_paths(g.engine),
    "make a tree": lambda g: tree_in(g.engine, g.manifest, g.placement, g.aside),
    "rehearse": lambda g: rehearse_in(g.engine, g.layout, g.aside),
    "practise": lambda g: practise(g.engine, g.rehearsal),  # type: ignore[arg-type]
    "say whether it installs ahead": lambda g: installs_ahead(g.engine, g.built),
    "install": lambda g: install_in(g.engine, g.manifest, g.placement, g.aside),
    "install a tree": lambda g: install_tree(g.engine, g.built),
    "install what was made ahead": lambda g: install_tree(g.engine, g.ahead),
    "install, and begin": lambda g: install_begun(g.engine, g.built, begun),
    "install what lands": lambda g: install_landing(g.engine, g.manifest, g.placement, g.aside, None, begun),
    "install what is followed": lambda g: install_known(g.engine, g.built),
    "habits": lambda g: habits(g.engine, g.session, g.aside, lambda: 0.0),
    "warm up": lambda g: warm_up(g.engine, lambda: 0.0),
}
OURS = (EngineFailed, NoMemory, StateRefused, TransportError)


@cache
def touched(place: str) -> tuple[str, ...]:
    """Return the engine's members that are called there."""
    ground = Ground()
    ground.engine.touched.clear()
    assert outcome(ground, lambda: PLACES[place](ground)) is None
    return tuple(ground.engine.touched)


def outcome(ground: Ground, act: Act) -> BaseException | None:
    """Return what gets out of the engine's thread; fails where that is nothing that a session may end by."""

    async def run() -> BaseException | None:
        thread = OneThread("engine")
        try:
            async with asyncio.timeout(20):
                await thread(act)
        except OURS as error:
            return error
        finally:
            thread.close()
        return None

    return asyncio.run(run())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [place for place in PLACES if place != "habits"])
def test_whatever_an_engine_raises_is_told_as_one_of_our_errors(place: str, kind: str) -> None:
    members = touched(place)
    assert members
    for member in members:
        ground = Ground()
        ground.engine.what, ground.engine.armed = KINDS[kind], member
        error = outcome(ground, lambda ground=ground: PLACES[place](ground))  # type: ignore[misc]
        ground.engine.armed = ""
        assert ground.engine.num_raised
        if error is None:
            assert place == "warm up" or member == "rolled"  # what it cannot measure, and a hint, are done without
            continue
        assert type(error) in OURS
        assert type(str(error)) is str
        assert "an engine's code raised" not in str(error)  # the thread's own net is for what nobody foresaw


def test_every_member_of_an_engine_is_called_at_one_of_these_places() -> None:
    assert {member for place in PLACES for member in touched(place)} == set(MEMBERS)


@pytest.mark.parametrize("kind", KINDS)
def test_what_nobody_foresaw_in_a_thread_is_an_error_too_and_whoever_waits_hears_of_it(kind: str) -> None:
    async def run() -> None:
        thread = OneThread("engine")

        def raise_it() -> None:
            error = KINDS[kind]()
            raise error

        try:
            async with asyncio.timeout(5):
                await thread(raise_it)
        except TimeoutError:
            pytest.fail("nobody heard of it")
        except Exception:  # noqa: BLE001  (a failure, and nothing beside it)
            return
        finally:
            thread.close()

    asyncio.run(run())


def with_thread(work: Callable[[Bench, Minefield], Any]) -> None:
    """Have two sessions on one worker whose engine has a real thread."""

    async def run() -> None:
        engine, thread = Minefield(), OneThread("engine")
        worker = bench(engine, engine_thread=thread)
        try:
            for session in ("s-1", "s-2"):
                worker.worker.take(Open(session=session, epoch=1, seed=5))
            async with asyncio.timeout(20):
                while len(worker.of(Opened)) < 2:  # noqa: ASYNC110
                    await asyncio.sleep(0.002)
                await work(worker, engine)
        finally:
            await worker.background.stop()
            thread.close()

    asyncio.run(run())


async def played(worker: Bench, session: str, block: int) -> None:
    worker.inputs(block, session=session)
    while not any(done.session == session and done.block == block for done in worker.of(BlockDone)):  # noqa: ASYNC110
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_whose_engine_raises_ends_and_its_neighbour_plays_on(kind: str) -> None:
    async def work(worker: Bench, engine: Minefield) -> None:
        await played(worker, "s-1", 0)
        await played(worker, "s-2", 0)
        engine.what, engine.armed = KINDS[kind], "step"
        worker.inputs(1)
        while not worker.of(Failed):  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        engine.armed = ""
        assert [(failed.session, failed.code) for failed in worker.of(Failed)] == [("s-1", "engine_failed")]
        await played(worker, "s-2", 1)
        assert worker.failures == []

    with_thread(work)


@pytest.mark.parametrize("member", ["state", "quiesce", "state_types"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_session_whose_state_is_only_looked_at_plays_on_whatever_that_raises(kind: str, member: str) -> None:
    async def work(worker: Bench, engine: Minefield) -> None:
        await played(worker, "s-1", 0)
        engine.what, engine.armed = KINDS[kind], member
        worker.worker.copies.get("s-1").accounts.ask(1)  # type: ignore[union-attr]
        await played(worker, "s-1", 1)
        worker.worker.take(Describe(session="s-1", request=7))
        while not (worker.of(NotDone) and engine.num_raised >= 2):  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        await played(worker, "s-1", 2)
        assert worker.of(Failed) == []
        assert worker.failures == []

    with_thread(work)
