"""Several workers that are to end at once: what one of them sends somewhere takes room from the others."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from tests.fleet.fakes import server_of
from tests.fleet.test_drain import CONFIG, MOVE_S, Moves
from tests.move import virtual
from worldmove.fleet.drain import Drain
from worldmove.fleet.sessions import SessionRecord, SessionTable
from worldmove.move.ledger_row import Row
from worldmove.worker.background import Background


@pytest.mark.parametrize("num_free", [1, 2, 3])
def test_no_more_are_sent_to_a_worker_than_it_has_room_for_whoever_sends_them(num_free: int) -> None:
    async def run() -> tuple[list[tuple[float, str]], int]:
        server, sessions, moves = await server_of("a", "b", "c", "d"), SessionTable(), Moves()
        loop, asked = asyncio.get_running_loop(), list[tuple[float, str]]()
        for number, owner in enumerate("abcabc"):
            name = f"s-{number}"
            sessions.add(SessionRecord(name=name, seed=1, worker=owner, incarnation=1, throwaway=False))
            moves.rows[name] = Row(session=name, owner=owner, incarnation=1, epoch=1)
        haven = server.workers.get("d")
        haven.slots_free = num_free

        async def move(session: str, to: str, **how: Any) -> Any:
            asked.append((loop.time() - begun, to))
            made = await Moves.move(moves, session, to, **how)
            haven.slots_free -= 1
            return made

        moves.move = move  # type: ignore[method-assign]
        desk = SimpleNamespace(row=moves.rows.get, owner_is_missing=lambda row: False)
        books: Any = SimpleNamespace(config=CONFIG, workers=server.workers, sessions=sessions, desk=desk)
        background, mover, begun = Background(lambda name, error: None), moves, loop.time()
        drains = []
        for name in "abc":
            leaving = server.workers.get(name)
            leaving.leaving, leaving.leaving_since, leaving.is_emptied, leaving.slots_free = True, begun, True, 0
            drain: Any = Drain(books, mover, background, leaving, lambda event, fields: None)  # type: ignore[arg-type]
            drains.append(asyncio.create_task(drain.run()))
        await asyncio.sleep(2 * MOVE_S)
        for task in drains:
            task.cancel()
        await background.stop()
        return asked, len(haven.coming)

    asked, num_coming = virtual.run(run())
    assert [to for _, to in asked] == ["d"] * num_free
    assert num_coming == 0
