"""Whatever a client says, in whatever order and however often: each number counts once, and others play on."""

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.hostile.shapes import EDGES, junk, plain
from tests.serve.test_gateway import House, Watcher, in_house, replayed
from worldmove.errors import UserError
from worldmove.serve.client_messages import AnyFromClient

CHANGES = st.lists(
    st.tuples(
        st.integers(0, 40) | st.sampled_from(EDGES), st.sampled_from(["up", "down", "flag", "nothing"]), st.booleans()
    ),
    max_size=8,
)
SAID = st.one_of(
    CHANGES.map(lambda changes: {"type": "keys", "changes": changes}),
    st.builds(lambda block: {"type": "received", "block": block, "server_life": 77}, st.sampled_from(EDGES)),
    plain(AnyFromClient),
    junk(),
)


async def hear(house: House, watcher: Watcher, said: list[Any]) -> None:
    for message in said:
        try:
            house.desk.hear(watcher.session, watcher.player, json.dumps(message, default=str))
        except UserError:
            return  # the session has ended
        await asyncio.sleep(0)


@settings(max_examples=25)
@given(said=st.lists(SAID, max_size=12), repeats=st.integers(1, 2))
def test_any_sequence_of_messages_keeps_the_log_exact_and_the_other_world_alive(said: list[Any], repeats: int) -> None:
    async def work(house: House) -> None:
        sessions = [(await house.desk.open(seed=7, on=None)).name for _ in range(2)]
        hostile, other = (Watcher(house, session) for session in sessions)
        other.press(("up", True))
        for _ in range(repeats):
            await hear(house, hostile, said)
        reached = house.gateway.live(other.session).screen.next_block
        await other.until_block(reached + 1)
        log = house.gateway.live(hostile.session).sequencer
        changes = [change for block in range(log.reaches) for change in log.closed(block)]
        numbers = [change.number for change in changes if change.down or change.key != "up"]
        assert numbers == sorted(numbers)
        assert {change.key for change in changes} <= {"up", "down", "flag"}
        for session, watcher in zip(sessions, (hostile, other), strict=True):
            expected = replayed(house, session)
            for header, pixels in watcher.frames():
                size = len(pixels)
                assert pixels == expected[header.block][header.index * size : (header.index + 1) * size]

    in_house(work)
