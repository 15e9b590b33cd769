"""Where the gateway fails at one session as nobody foresaw: its players are told, and the others play on."""

from typing import Any

import pytest

from tests.serve.test_gateway import House, Watcher, in_house
from worldmove.serve.player import CloseCode
from worldmove.worker.messages import CheckDone


@pytest.mark.parametrize("call", ["lost", "holders", "take", "play"])
def test_a_failure_at_one_session_ends_it_for_its_players_and_no_other_session(call: str) -> None:
    async def work(house: House) -> None:
        failing, other = [(await house.desk.open(seed=seed, on=None)).name for seed in (1, 2)]
        players = [Watcher(house, name) for name in (failing, other)]
        live: Any = house.gateway.lives[failing]
        live.lose = live.hold = live.take = live.sequencer.close = None
        if call == "lost":
            house.gateway.lost(failing, "why")
        elif call == "holders":
            house.gateway.holders(failing, ("worker-1",))
        elif call == "take":
            house.gateway.take(
                "worker-1", CheckDone(session=failing, attempt="a", block=0, frame_sha256=(), state_digest="")
            )
        else:
            players[0].press(("up", True))
        players[1].press(("up", True))
        await players[1].until_block(1)
        await players[0].until(lambda: players[0].socket.closed)
        later = Watcher(house, failing)
        await later.until(lambda: later.socket.closed)
        for told in (players[0], later):
            assert told.socket.closed is not None
            assert told.socket.closed[0] == CloseCode.SESSION_ENDED
        assert later.texts("lost") == []

    in_house(work)
