"""What may be done to the workers, the server and the sessions of a run, by name: to somebody with a role in a session.

What may be done only one after the other, a death, is left undone too soon after the last one.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.asker import Asker
from tests.simulation.hosts import SimHosts
from tests.simulation.loop import SimLoop
from tests.simulation.mover import drawn
from tests.simulation.node import Node
from tests.simulation.server import Server
from tests.simulation.tab import Tab
from tests.simulation.watch import Watch
from tests.simulation.weather import Dice, Weather

ROLES = ("owner", "destination", "keeper", "third", "who")
"""``who``: the worker at which it happened."""
STRIKES_APART_S = 2.0
RESTS_AFTER_S = 2.5


@dataclass(slots=True, kw_only=True)
class Deeds:
    """Those of one run. ``tell`` hears of moments that nobody else tells of."""

    server: Server
    hosts: SimHosts
    loop: SimLoop
    weather: Weather
    watch: Watch
    asker_of: Callable[[str], Asker]
    tabs: list[Tab]
    tell: Callable[[str, dict[str, object]], None] = lambda moment, fields: None
    _restarts: list[asyncio.Task[Any]] = field(default_factory=list)
    _paused: dict[str, Node] = field(default_factory=dict)
    _last_death: float = -STRIKES_APART_S
    _num_saved: int = 0

    async def mended(self) -> None:
        """Let those go on that were stopped, and return once there is a server."""
        for node in tuple(self._paused.values()):
            self._resume(node)
        await asyncio.gather(*self._restarts)

    # who

    def _node(self, role: str, session: str, fields: dict[str, object]) -> Node | None:
        node = self.hosts.nodes.get(self._worker(role, session, fields))
        return node if node is not None and node.is_ready else None

    def _worker(self, role: str, session: str, fields: dict[str, object]) -> str:
        played = self.watch.played[session]
        owner = "" if played.row is None else played.row.owner
        attempt = None if played.row is None else played.row.attempt
        destination = "" if attempt is None else attempt.destination
        keeper = next((name for name, node in self.hosts.nodes.items() if node.kept_block(session) is not None), "")
        if not keeper and (house := self.server.house) is not None:
            keeper = next((v.keeper or "" for v in house.controller.sessions() if v.name == session), "")
        match role:
            case "owner":
                return owner
            case "destination":
                return destination or self._other(session, owner)
            case "keeper":
                return keeper or self._other(session, owner)
            case "third":
                named = (owner, destination, keeper)
                return next((name for name in sorted(self.hosts.nodes) if name not in named), "")
            case _:
                return str(fields.get("worker", "") or fields.get("node", "")).partition("#")[0] or owner

    def _other(self, session: str, owner: str) -> str:
        """Return another worker that holds something of a session."""
        for name, node in self.hosts.nodes.items():
            if name != owner and node.copies_of(session):
                return name
        return ""

    # what is done to a worker, or the server

    def kill(self, role: str, session: str, fields: dict[str, object], dice: Dice) -> None:
        node = self._node(role, session, fields)
        if node is not None and self._may_die(node):
            node.kill(noticed_after_s=dice.between(0.001, 0.05) if dice.below(4) else dice.between(0.5, 4.0))

    def _may_die(self, node: Node) -> bool:
        """Whether the last death is some time ago: then this is the next one."""
        if self.loop.time() - self._last_death < STRIKES_APART_S:
            return False
        self._last_death = self.loop.time()
        self.watch.about_to_die(node.node)
        return True

    def stop(self, role: str, session: str, fields: dict[str, object], dice: Dice) -> None:
        """A second time it ends at once, as if it had died."""
        node = self._node(role, session, fields)
        if node is not None and (not node.is_leaving or self._may_die(node)):
            node.terminate()

    def pause(self, role: str, session: str, fields: dict[str, object], dice: Dice) -> None:
        if (node := self._node(role, session, fields)) is not None:
            self.loop.pause(node.node)
            self._paused[node.node] = node
            self.loop.call_later(dice.between(0.05, 5.0), self._resume, node, context=self.loop.context("world"))

    def _resume(self, node: Node) -> None:
        self._paused.pop(node.node, None)
        self.loop.resume(node.node)

    def cut(self, role: str, session: str, fields: dict[str, object], dice: Dice) -> None:
        if (node := self._node(role, session, fields)) is not None:
            node.cut(dice.between(0.0, 3.0))

    def stall(self, role: str, session: str, fields: dict[str, object], dice: Dice) -> None:
        if (node := self._node(role, session, fields)) is not None:
            node.stall(dice.between(0.05, 4.0), up=bool(dice.below(2)))

    def slow(self, role: str, session: str, fields: dict[str, object], dice: Dice) -> None:
        if (node := self._node(role, session, fields)) is not None:
            node.slow_down(dice.between(2.0, 30.0))
            self.loop.call_later(dice.between(0.5, 4.0), node.slow_down, 1.0, context=self.loop.context("world"))

    def server_dies(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        if self.server.house is not None and self.loop.time() - self._last_death > STRIKES_APART_S:
            self._last_death = self.loop.time()
            self.watch.server_dies()
            self.server.kill()
            restart = self.server.start_again(dice.between(0.05, 2.0))
            self._restarts.append(self.loop.run_in(self.loop.context("world"), restart, "restart"))

    def server_pauses(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        node = self.server.node
        self.loop.pause(node)
        self.loop.call_later(dice.between(0.05, 3.0), self.loop.resume, node, context=self.loop.context("world"))

    def ledger_fails(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        kind = "ledger_mute" if dice.below(2) else "ledger_refuses"
        self.weather.rates[kind] = 1.0

        def mended() -> None:
            self.weather.rates[kind] = 0.0

        self.loop.call_later(dice.between(0.05, 2.0), mended, context=self.loop.context("world"))

    # what is asked for

    def leaves(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        """Nobody watches for a while: it comes to rest."""
        for tab in self.tabs:
            if tab.session == session:
                tab.go_away(dice.between(1.0, 6.0))
        self.loop.call_later(
            RESTS_AFTER_S, self.tell, "at rest", {"session": session}, context=self.loop.context("world")
        )

    async def close(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        asker = self.asker_of(session)
        self.tell("asked to close", {"session": session})
        await asker.close_once()

    async def open(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        """Open another, which is protected or not, and leave it open for now."""
        self.tell("asked to open", {"session": session})
        on = (None, self._worker(ROLES[dice.below(len(ROLES))], session, fields) or None)[dice.below(2)]
        every = (0, 1, 3)[dice.below(3)]
        await self.asker_of(session).open_another(on, every)

    async def move(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        to = (None, self._worker(ROLES[dice.below(len(ROLES))], session, fields) or None)[dice.below(2)]
        await self.asker_of(session).move(to, strategy=drawn(dice.unit()).value)

    async def cancel(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        await self.asker_of(session).cancel()

    async def protect(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        await self.asker_of(session).protect((0, 1, 2, 5)[dice.below(4)])

    async def recover(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        await self.asker_of(session).ask("recover", lambda house: house.desk.recover(session))

    async def save(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        self._num_saved += 1
        path = f"{self.hosts.folder}/{session}-{self._num_saved}"
        await self.asker_of(session).ask("save", lambda house: house.controller.save(session, path))

    async def describe(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        await self.asker_of(session).ask("describe", lambda house: house.controller.describe(session))

    async def plan(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        async def plan(house: Any) -> None:
            house.desk.plan(session, None)
            house.controller.workers(), house.controller.sessions()

        await self.asker_of(session).ask("plan", plan)


Deed = Callable[[Deeds, str, dict[str, object], Dice], Coroutine[Any, Any, None] | None]


def _to(act: Callable[[Deeds, str, str, dict[str, object], Dice], None], role: str) -> Deed:
    return lambda deeds, session, fields, dice: act(deeds, role, session, fields, dice)


TO_WORKERS = (Deeds.kill, Deeds.stop, Deeds.pause, Deeds.cut, Deeds.stall, Deeds.slow)
DEEDS: dict[str, Deed] = {f"{act.__name__} {role}": _to(act, role) for act in TO_WORKERS for role in ROLES}
OTHERS = (
    *(Deeds.server_dies, Deeds.server_pauses, Deeds.ledger_fails, Deeds.leaves, Deeds.close, Deeds.open, Deeds.move),
    *(Deeds.cancel, Deeds.protect, Deeds.recover, Deeds.save, Deeds.describe, Deeds.plan),
)
DEEDS |= {act.__name__: act for act in OTHERS}
# as often as the others together
DEEDS |= {f"{act.__name__} ({again})": act for act in OTHERS for again in (1, 2)}
