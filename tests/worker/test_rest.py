"""A source that stands still before its freeze brings its state to where it is pulled from: its pause pulls nothing."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.worker.device_engine import WIDTH, DeviceEngine, World
from tests.worker.test_device_move import ARENA_BYTES, peer
from tests.worker.test_move_between_workers import Pair
from worldmove.engine.base import Block, KeyChange
from worldmove.move.ledger_row import Facts
from worldmove.move.messages import Boundary, Ended, Meet, MoveMessage, Ready


class Rebinding(DeviceEngine):
    """Binds a tensor anew in each block, of the same size: it lies outside the slot until it is brought there."""

    def step(self, session: World, changes: Sequence[KeyChange]) -> Block:
        block = super().step(session, changes)
        session.rebound = session.rebound[:WIDTH].clone()
        return block


@pytest.mark.parametrize("strategy", ["pre-copy", "streaming"])
def test_nothing_is_pulled_in_the_pause_of_a_session_whose_rest_was_heard(strategy: str) -> None:
    said: list[MoveMessage] = []

    def heard(message: MoveMessage) -> bool:
        said.append(message)
        return False

    async def run() -> Ended:
        pair = Pair(engines=(Rebinding(), Rebinding()), transports={"path": peer()}, arena_bytes=ARENA_BYTES)
        pair.strategy = strategy
        pair.loses = heard
        try:
            await pair.open_on_a(3)
            pair.facts = Facts(owner="a", incarnation=1, epoch=1, owner_gone=False, next_block=3)
            await pair.open_attempt("path")
            pair.begin()
            await pair.hears(Ready)
            pair.start()
            await pair.hears(Ended)
            ended = [message for message in pair.heard if isinstance(message, Ended)]
            b = pair.benches["b"]
            b.inputs(3, 4)
            await b.rest()
            assert b.blocks() == [3, 4]
            return next(each for each in ended if each.side == "destination")
        finally:
            await pair.close()

    end = asyncio.run(run())
    assert (end.outcome, end.reason) == ("committed", "done")
    meets, boundaries = ([each for each in said if isinstance(each, kind)] for kind in (Meet, Boundary))
    assert len(meets[-1].rows) > 0
    assert (boundaries[0].rows, boundaries[0].changed) == (b"", b"")  # type: ignore[union-attr]
    assert end.in_place_bytes == end.num_bytes > 4 * WIDTH
    assert end.moved_bytes == end.pulled_bytes == 0
