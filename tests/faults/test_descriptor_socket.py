"""The socket at which a source gives its memory's descriptor away: missing, closed at once, silent, or empty-handed."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.faults.conftest import Ground
from tests.faults.house import House, eventually, played, settled
from tests.faults.hurting import DESTINATION, SOURCE
from worldmove.fleet.reports import MoveReport, Outcome

Serve = Callable[[socket.socket], Awaitable[None]]


async def closes_at_once(asker: socket.socket) -> None:
    asker.close()


async def says_nothing(asker: socket.socket) -> None:
    await asyncio.sleep(60)


async def gives_a_byte_and_no_descriptor(asker: socket.socket) -> None:
    await asyncio.get_running_loop().sock_sendall(asker, b"\0")
    await asyncio.sleep(0.1)


async def shuts_its_half(asker: socket.socket) -> None:
    asker.shutdown(socket.SHUT_WR)
    await asyncio.sleep(0.1)


@asynccontextmanager
async def in_its_place(path: Path, serve: Serve | None) -> AsyncIterator[None]:
    """Have somebody else answer at a source's socket, or nobody."""
    aside = path.with_suffix(".aside")
    path.rename(aside)
    answering = asyncio.create_task(_answer(path, serve)) if serve else None
    try:
        if answering:
            await eventually(path.exists)
        yield
    finally:
        if answering:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
        aside.rename(path)


async def _answer(path: Path, serve: Serve) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.settimeout(0)
        listener.bind(str(path))
        listener.listen()
        while True:
            asker, _ = await asyncio.get_running_loop().sock_accept(listener)
            with asker:
                await serve(asker)


async def moved_with(house: House, serve: Serve | None) -> MoveReport:
    """Try to move a session meanwhile; then move it, to see that nothing is left of the try."""
    run_dir = house.hosts.run_dir
    assert run_dir is not None
    async with played(house, SOURCE) as (session, watcher):
        async with in_its_place(run_dir / f"{SOURCE}-{house.worker(SOURCE).incarnation}.sock", serve):
            tried = await house.move(session, DESTINATION)
            found = await settled(house, session, watcher, tried)
            assert (found.owner, found.epoch) == (SOURCE, 1)
        assert (await house.move(session, DESTINATION)).outcome is Outcome.COMMITTED
        await settled(house, session, watcher, tried)
    return tried


@pytest.mark.parametrize(
    ("serve", "says"),
    [
        (None, "No such file or directory"),
        (closes_at_once, ""),
        (shuts_its_half, ""),
        (gives_a_byte_and_no_descriptor, "the source lets nothing be read under this ticket any more"),
        (says_nothing, ""),
    ],
)
def test_a_source_whose_memory_cannot_be_had_is_not_moved_and_plays_on(
    ground: Ground, serve: Serve | None, says: str
) -> None:
    report = ground.run(moved_with(ground.house, serve))
    assert report.outcome is Outcome.REFUSED
    assert report.reason in ("transport", "silent", "time_out")
    assert says in report.detail
