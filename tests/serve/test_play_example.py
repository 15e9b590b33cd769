"""The example client ends, and says why, whatever becomes of the world that it plays."""

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable
from types import ModuleType

import pytest

from tests.cli.breaking_server import breaking
from tests.cli.test_broken_answers import WAYS
from tests.own_path import ROOT
from tests.serve.test_app import Site, message, on_site
from worldmove.fleet.reports import Outcome

EXAMPLE = ROOT / "examples" / "play.py"
Harm = Callable[[Site, str], Awaitable[None]]


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("play_example", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def lost(site: Site, session: str) -> None:
    site.gateway.lost(session, "The process that ran it ended.")


async def closed(site: Site, session: str) -> None:
    await site.http.delete(f"/api/sessions/{session}")


async def taken_over(site: Site, session: str) -> None:
    async with site.play(session) as other:
        await message(other, "hello")
        await asyncio.sleep(0.5)


async def ended(site: Site, session: str) -> None:
    await site.gateway.end()


async def silent(site: Site, session: str) -> None:
    site.fleet.on_block = lambda _worker, _block: None


HARMS: list[tuple[Harm, str]] = [
    (lost, "the world is lost: The process that ran it ended."),
    (closed, "the connection has ended"),
    (taken_over, "another connection has the controls"),
    (ended, "the server has ended the connection"),
    (silent, "nothing has come for 2 s"),
]


def played(site: Site, moves: int) -> "asyncio.Task[tuple[int, str]]":
    """Play as the example does; its exit status and every fault."""

    async def run() -> tuple[int, str]:
        client = example()
        seen, moved = await client.play(site.url, moves, silence_s=2.0)
        return client.tell(seen, moved), "; ".join([*seen.faults, *(each["sentence"] for each in moved)])

    return asyncio.create_task(run())


@pytest.mark.parametrize(("harm", "says"), HARMS)
def test_it_ends_and_says_why_no_more_comes(harm: Harm, says: str) -> None:
    async def work(site: Site) -> None:
        site.fleet.compute_s = 0.02
        playing = played(site, 10_000)
        while not site.gateway.lives or next(iter(site.gateway.lives.values())).screen.next_block < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await harm(site, next(iter(site.gateway.lives)))
        async with asyncio.timeout(10):
            status, faults = await playing
        assert status == 1
        assert says in faults

    on_site(work)


@pytest.mark.parametrize("outcome", [Outcome.REFUSED, Outcome.ABORTED])
def test_a_move_that_is_not_committed_is_said_and_the_play_goes_on_to_its_end(outcome: Outcome) -> None:
    async def work(site: Site) -> None:
        site.fleet.outcome = outcome
        async with asyncio.timeout(20):
            status, said = await played(site, 1)
        assert status == 1
        assert said
        assert "connection" not in said

    on_site(work)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "elsewhere"])  # it follows, as urllib does
def test_a_request_whose_answer_breaks_is_said_to_have_been_done_perhaps(way: str) -> None:
    client = example()
    with breaking(WAYS[way]) as server:
        for asked in (client.move(server.url, "s-1"), client.play(server.url, 1)):
            with pytest.raises(client.OverError, match=r"POST .* may have been done: its answer did not come whole"):
                asyncio.run(asked)
    assert [line.split()[1] for line in server.taken] == ["/api/sessions/s-1/move", "/api/sessions"]


def test_a_move_that_nobody_was_asked_for_is_said_to_be_none() -> None:
    client = example()
    with breaking(b"") as server:
        pass
    with pytest.raises(client.OverError, match="the move was not asked for"):
        asyncio.run(client.move(server.url, "s-1"))


def test_where_nothing_is_wrong_it_ends_with_0() -> None:
    async def work(site: Site) -> None:
        async with asyncio.timeout(20):
            status, _ = await played(site, 0)
        assert status == 0

    on_site(work)
