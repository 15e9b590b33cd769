"""What befalls the workers of a run: deaths, stops, pauses, slowness, links that stall or are cut."""

import asyncio
from collections.abc import Callable

from tests.simulation.hosts import SimHosts
from tests.simulation.loop import SimLoop
from tests.simulation.node import Node
from tests.simulation.server import Server
from tests.simulation.trace import Trace
from tests.simulation.weather import Dice, Weather
from worldmove.move.ledger_row import Row

TICK_S = 0.25
KINDS = ("kill", "stop", "pause", "slow", "cut", "stall")


class Storm:
    """Strikes at every tick, and at messages of moves."""

    def __init__(self, loop: SimLoop, weather: Weather, hosts: SimHosts, server: Server, trace: Trace) -> None:
        self._loop = loop
        self._weather = weather
        self._hosts = hosts
        self._server = server
        self._restarts: list[asyncio.Task[None]] = []
        self._trace = trace
        self._paused: dict[str, Node] = {}
        self._strike: dict[str, Callable[[Node, Dice], None]] = {
            "kill": self._kill,
            "stop": self._stop,
            "pause": self._pause,
            "slow": self._slow,
            "cut": self._cut,
            "stall": self._stall,
        }

    async def blow(self, seconds: float) -> None:
        """Strike for so long; then mend what is not dead."""
        ends_at = self._loop.time() + seconds
        while self._loop.time() < ends_at:
            await asyncio.sleep(TICK_S)
            self._strike_server()
            for worker in sorted(self._hosts.nodes):
                for kind in KINDS:
                    dice = self._weather.strikes(kind)
                    node = self._hosts.nodes[worker]
                    if dice and node.is_ready:
                        self._trace.add(kind, node=node.node)
                        self._strike[kind](node, dice)
        self._weather.clear = True
        for node in tuple(self._paused.values()):
            self._resume(node)
        for node in self._hosts.nodes.values():
            node.slow_down(1.0)
        self._loop.resume(self._server.node)
        await asyncio.gather(*self._restarts)

    def at_message(self, to: str, sender: str) -> None:
        """A message of a move leaves: one of its ends may die of it."""
        if self._server.house is not None and (dice := self._weather.strikes("server_kill_at_message")):
            self._kill_server(dice)
        if dice := self._weather.strikes("kill_at_message"):
            node = self._hosts.nodes.get(to if dice.below(2) else sender)
            if node is not None and node.is_ready:
                self._kill(node, dice)

    def at_grant(self, old: Row, new: Row) -> None:
        """A move was granted: its source may be cut off, and its destination and the server be killed soon after."""
        dice = self._weather.strikes("both_killed")
        if dice is None:
            return
        after_s = dice.between(0.0, 0.8)
        if dice.below(4):
            self._later(after_s, old.owner, lambda node: node.cut(dice.between(0.3, 3.0)))
        after_s += dice.between(0.05, 1.0)
        self._later(after_s, new.owner, lambda node: self._kill(node, dice))
        after_s = max(0.0, after_s + dice.between(-0.3, 1.0))
        self._loop.call_later(after_s, self._kill_server_once, dice, context=self._loop.context("world"))

    def _later(self, after_s: float, worker: str, strike: Callable[[Node], None]) -> None:
        """Strike a worker some time from now, if the weather is not clear by then."""

        def struck() -> None:
            node = self._hosts.nodes[worker]
            if node.is_ready and not self._weather.clear:
                strike(node)

        self._loop.call_later(after_s, struck, context=self._loop.context("world"))

    def _kill_server_once(self, dice: Dice) -> None:
        if self._server.house is not None and not self._weather.clear:
            self._kill_server(dice)

    def _strike_server(self) -> None:
        if self._server.house is None:
            return
        if dice := self._weather.strikes("server_pause"):
            self._trace.add("pause", node=self._server.node)
            self._loop.pause(self._server.node)
            self._loop.call_later(dice.between(0.05, 3.0), self._loop.resume, self._server.node)
        if dice := self._weather.strikes("server_kill"):
            self._kill_server(dice)

    def _kill_server(self, dice: Dice) -> None:
        self._server.kill()
        restart = self._server.start_again(dice.between(0.05, 2.0))
        self._restarts.append(self._loop.run_in(self._loop.context("world"), restart, "restart"))

    def _kill(self, node: Node, dice: Dice) -> None:
        """Mostly the server knows at once; sometimes, as behind a network, it takes seconds."""
        node.kill(noticed_after_s=dice.between(0.001, 0.05) if dice.below(4) else dice.between(0.5, 4.0))

    def _stop(self, node: Node, _dice: Dice) -> None:
        self._trace.count("stops")
        node.terminate()

    def _pause(self, node: Node, dice: Dice) -> None:
        self._trace.count("pauses")
        self._loop.pause(node.node)
        self._paused[node.node] = node
        self._loop.call_later(dice.between(0.05, 5.0), self._resume, node)

    def _resume(self, node: Node) -> None:
        self._paused.pop(node.node, None)
        self._loop.resume(node.node)

    def _slow(self, node: Node, dice: Dice) -> None:
        node.slow_down(dice.between(1.0, 20.0))
        self._loop.call_later(dice.between(0.5, 4.0), node.slow_down, 1.0)

    def _cut(self, node: Node, dice: Dice) -> None:
        self._trace.count("cuts")
        node.cut(dice.between(0.0, 3.0))

    def _stall(self, node: Node, dice: Dice) -> None:
        node.stall(dice.between(0.05, 5.0), up=bool(dice.below(2)))
