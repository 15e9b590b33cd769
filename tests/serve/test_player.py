"""One connection: what waits, what has left, how it ends."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from tests.move import virtual
from tests.serve.fakes import RECEIPTS, SPEC, FakeFleet, FakeIds, FakeSocket
from worldmove.limits import MAX_FRAMES
from worldmove.serve.desk import Desk
from worldmove.serve.gateway import Gateway
from worldmove.serve.gateway_config import GatewayConfig
from worldmove.serve.limits import PlayLimits
from worldmove.serve.live_config import LiveConfig
from worldmove.serve.metrics import Metrics
from worldmove.serve.player import CloseCode, Player
from worldmove.serve.wording import engine_info


def run(work: Callable[[Player, FakeSocket, "asyncio.Task[None]"], Awaitable[None]], *, stuck: bool = False) -> None:
    async def main() -> None:
        socket = FakeSocket(stuck=stuck)
        player = Player(socket, limits=PlayLimits(max_waiting=3))
        sending = asyncio.create_task(player.run())
        await work(player, socket, sending)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    virtual.run(main())


def test_messages_leave_in_order_and_each_says_when_it_has() -> None:
    async def work(player: Player, socket: FakeSocket, _: "asyncio.Task[None]") -> None:
        left: list[int] = []
        for number in range(3):
            player.put(str(number), lambda number=number: left.append(number))  # type: ignore[misc]
        assert left == []
        await asyncio.sleep(0.01)
        assert socket.sent == ["0", "1", "2"]
        assert left == [0, 1, 2]

    run(work)


def test_a_player_that_takes_nothing_is_dropped_and_what_waited_counts_as_left() -> None:
    async def work(player: Player, socket: FakeSocket, sending: "asyncio.Task[None]") -> None:
        left: list[int] = []
        for number in range(6):
            player.put(str(number), lambda number=number: left.append(number))  # type: ignore[misc]
            await asyncio.sleep(0)
        await sending
        assert socket.sent == []
        assert sorted(left) == list(range(6))
        assert socket.closed is not None
        assert socket.closed[0] == CloseCode.TOO_SLOW

    run(work, stuck=True)


def test_finish_sends_what_waits_and_drop_does_not() -> None:
    async def finish(player: Player, socket: FakeSocket, sending: "asyncio.Task[None]") -> None:
        player.put("a")
        player.finish(CloseCode.SESSION_ENDED, "over")
        player.put("too late")
        await sending
        assert socket.sent == ["a"]
        assert socket.closed == (CloseCode.SESSION_ENDED, "over")

    async def drop(player: Player, socket: FakeSocket, sending: "asyncio.Task[None]") -> None:
        player.put("a")
        player.drop(CloseCode.BAD_MESSAGE, "why")
        player.drop(CloseCode.TOO_SLOW, "the first reason counts")
        await sending
        assert socket.sent == []
        assert socket.closed == (CloseCode.BAD_MESSAGE, "why")

    run(finish)
    run(drop)


def test_a_connection_that_is_gone_ends_the_player_and_lets_go_of_what_waits() -> None:
    async def work(player: Player, socket: FakeSocket, sending: "asyncio.Task[None]") -> None:
        left: list[str] = []
        socket.gone = True
        player.put("a", lambda: left.append("a"))
        player.put("b", lambda: left.append("b"))
        await sending
        assert left == ["a", "b"]

    run(work)


def test_a_player_that_is_cancelled_from_outside_does_not_swallow_it() -> None:
    async def work(_player: Player, _socket: FakeSocket, sending: "asyncio.Task[None]") -> None:
        await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    run(work)


@pytest.mark.parametrize("num_frames", [1, 12, 64, 65, MAX_FRAMES])
def test_the_frames_of_some_blocks_may_wait_however_many_a_block_has(num_frames: int) -> None:
    """A block's frames come all at once: whoever could not take one would be shown none, at each return."""

    async def main() -> None:
        spec = replace(SPEC, frames_per_block=num_frames)
        live = LiveConfig(spec=spec, server_life=1, receipts=RECEIPTS)
        gateway = Gateway(fleet=FakeFleet(), config=GatewayConfig(live=live), metrics=Metrics())
        desk = Desk(gateway, engine=engine_info(spec, 8), ids=FakeIds())
        socket = FakeSocket()
        player = Player(socket, limits=desk.limits)
        for number in range(3 * num_frames):
            player.put(str(number))
        player.finish(CloseCode.SESSION_ENDED, "over")
        await player.run()
        assert socket.sent == [str(number) for number in range(3 * num_frames)]
        assert socket.closed == (CloseCode.SESSION_ENDED, "over")

    virtual.run(main())
