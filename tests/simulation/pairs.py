"""Pairs of things that seldom meet: something happens, and just then, or a moment later, something else is done.

A seed draws a few of all such pairs, of every moment there is and every operation, alike. So what comes about once in
a thousand runs by itself is as often in the middle of another thing as what comes about all the time.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.simulation.asker import Asker
from tests.simulation.hosts import SimHosts
from tests.simulation.house import House
from tests.simulation.loop import SimLoop
from tests.simulation.mover import drawn
from tests.simulation.node import Node
from tests.simulation.server import Server
from tests.simulation.tab import Tab
from tests.simulation.trace import Trace
from tests.simulation.watch import Watch
from tests.simulation.weather import Dice, Weather

MOMENTS = (
    *(f"copy {phase}" for phase in ("live", "shadow", "following", "frozen", "retired", "superseded")),
    *("copy throwaway", "copy freeing", "kept True", "kept False", "snapshot_kept", "not_protected", "worker_ready"),
    *(f"down {name}" for name in ("Expect", "TakeSnapshot", "Keep", "Revive", "TakeOver")),
    *(f"up {name}" for name in ("SnapshotTaken", "Kept", "Replayed")),
    *(f"down {name}" for name in ("Prepare", "Offer", "Begin", "Start", "Cancel", "Inquire", "Meet", "Proof")),
    *(f"up {name}" for name in ("Prepared", "Reserved", "Base", "Fetched", "Ready", "Boundary", "Landed", "Ended")),
    *(f"up {name}" for name in ("Abandon", "Declined", "CommitAttempt", "CloseAttempt", "Reclaim")),
    *(f"down {name}" for name in ("Yours", "Theirs", "Closed", "Denied")),
    *(
        f"move_phase {phase}"
        for phase in ("prepare", "reserve", "follow", "transfer", "doubt", "verified", "quarantine")
    ),
    *("move_ended", "move_ended_here", "owned", "failed_over", "failover_resumed", "resumed", "session_taken_up"),
    *("worker_leaving", "worker_left", "worker_suspected", "worker_answers_again", "worker_gone", "worker_adopted"),
    *("power_off", "ledger_silent", "ledger_works", "not_moved_away", "asked to close", "asked to open"),
    "at rest",
)
SAID = {"copy": "phase", "kept": "here", "move_phase": "phase"}
ON_THE_WAY = ("move", "ask", "answer", "protection")
ROLES = ("owner", "destination", "keeper", "third", "who")
"""``who``: the worker at which it happened."""
FATES = ("kill", "stop", "pause", "server_dies", "cut", "leaves")
LATER_S = (0.0, 0.4)
MOST_LATER = 4
"""Of so many things that are done, one is done a good while later."""
FAR_LATER_S = (0.4, 3.0)
NUM_PAIRS = 24
BY_ITSELF_S = (0.6, 3.0)
"""When something is done that no moment has asked for: what follows from it has moments of its own."""
ANSWERED_WITHIN_S = 30.0
STRIKES_APART_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What is done when a moment comes for the ``nth`` time."""

    moment: str
    nth: int
    deeds: tuple[str, ...]
    dice: Dice


@dataclass(slots=True, kw_only=True)
class Pairs:
    """Those of one run."""

    server: Server
    hosts: SimHosts
    loop: SimLoop
    weather: Weather
    watch: Watch
    trace: Trace
    asker_of: Callable[[str], Asker]
    tabs: list[Tab]
    protect_every: int
    restarts: list[asyncio.Task[Any]] = field(default_factory=list)
    _pairs: list[Pair] = field(default_factory=list)
    _seen: Counter[str] = field(default_factory=Counter)
    _doing: list[asyncio.Task[Any]] = field(default_factory=list)
    _paused: dict[str, Node] = field(default_factory=dict)
    _last_death: float = -STRIKES_APART_S

    def __post_init__(self) -> None:
        dice = self.weather.dice("pairs")
        deeds = sorted(DEEDS)
        for number in range(NUM_PAIRS):
            moment = MOMENTS[dice.below(len(MOMENTS))]
            wanted = tuple(deeds[dice.below(len(deeds))] for _ in range(1 + dice.below(2)))
            nth = 1 + (dice.below(2) and dice.below(5))
            pair = Pair(moment=moment, nth=nth, deeds=wanted, dice=self.weather.dice(f"pair {number}"))
            self._pairs.append(pair)
            self.trace.add("pair", moment=moment.replace(" ", "-"), nth=nth, deeds=",".join(wanted))
        self.trace.on_event = self._happened

    async def run(self) -> None:
        """Do something by itself, at some time."""
        fate = self.weather.dice("fate")
        while not self.weather.clear:
            await asyncio.sleep(fate.between(*BY_ITSELF_S))
            deeds = [name for name in sorted(DEEDS) if name.startswith(FATES)]
            self._do(deeds[fate.below(len(deeds))], {}, "itself", fate)
            await asyncio.sleep(4 * fate.between(*BY_ITSELF_S))

    def _happened(self, event: str, fields: dict[str, object]) -> None:
        if self.weather.clear:
            return
        name = event
        if event in SAID:
            name = f"{event} {fields.get(SAID[event])}"
        elif event in ("up", "down"):
            name = f"{event} {next((str(fields[kind]) for kind in ON_THE_WAY if kind in fields), '')}"
        self.comes(name, fields)

    def comes(self, moment: str, fields: dict[str, object]) -> None:
        """A moment has come."""
        self._seen[moment] += 1
        for pair in self._pairs:
            if (pair.moment, pair.nth) == (moment, self._seen[moment]):
                self.trace.count(f"moment {moment}")
                for deed in pair.deeds:
                    dice = pair.dice
                    after_s = dice.between(*LATER_S) if dice.below(3) else 0.0
                    if not dice.below(MOST_LATER):
                        after_s = dice.between(*FAR_LATER_S)
                    self.loop.call_later(
                        after_s, self._do, deed, dict(fields), moment, dice, context=self.loop.context("world")
                    )

    def _do(self, deed: str, fields: dict[str, object], moment: str, dice: Dice) -> None:
        if self.weather.clear or not self.tabs:
            return
        session = str(fields.get("session", ""))
        if session not in [tab.session for tab in self.tabs]:
            session = self.tabs[dice.below(len(self.tabs))].session
        self.trace.add("deed", what=deed, at=moment.replace(" ", "-"), session=session)
        self.trace.count(f"deed {deed}")
        self.trace.count("deeds")
        done = DEEDS[deed](self, session, fields, dice)
        if done is not None:
            self._doing.append(self.loop.run_in(self.loop.context("deeds"), self._timed(deed, done), deed))

    async def _timed(self, deed: str, work: Awaitable[Any]) -> None:
        begun = self.loop.time()
        await work
        if self.loop.time() - begun > ANSWERED_WITHIN_S:
            self.trace.fail(f"{deed} was answered after {self.loop.time() - begun:.1f} s")

    async def ended(self) -> None:
        """Return once all that was asked for is answered, and what was opened is closed."""
        for node in tuple(self._paused.values()):
            self._resume(node)
        await asyncio.gather(*self.restarts)
        await asyncio.gather(*self._doing)
        await self._close_others()
        for tab in self.tabs:
            await self.asker_of(tab.session).protected(self.protect_every)

    async def _close_others(self) -> None:
        """Close what was opened beside the others, also by a server that died of it."""
        mine = {tab.session for tab in self.tabs}
        while True:
            house = await self.server.serving()
            others = [view.name for view in house.controller.sessions() if not view.throwaway and view.name not in mine]
            if not others:
                return
            for name in others:
                if name in self.watch.played:
                    await self.asker_of(name).close_once()
                else:
                    await self.asker_of(name).ask("close", partial(_closed, name))
            await asyncio.sleep(0.2)

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
            self.restarts.append(self.loop.run_in(self.loop.context("world"), restart, "restart"))

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
        self.loop.call_later(2.5, self.comes, "at rest", {"session": session}, context=self.loop.context("world"))

    async def close(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        asker = self.asker_of(session)
        self.comes("asked to close", {"session": session})
        await asker.close_once()

    async def open(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        """Open another, which is protected or not, and leave it open for now."""
        self.comes("asked to open", {"session": session})
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
        path = f"{self.hosts.folder}/{session}-{len(self._doing)}"
        await self.asker_of(session).ask("save", lambda house: house.controller.save(session, path))

    async def describe(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        await self.asker_of(session).ask("describe", lambda house: house.controller.describe(session))

    async def plan(self, session: str, fields: dict[str, object], dice: Dice) -> None:
        async def plan(house: Any) -> None:
            house.desk.plan(session, None)
            house.controller.workers(), house.controller.sessions()

        await self.asker_of(session).ask("plan", plan)


async def _closed(name: str, house: House) -> None:
    await house.desk.close(name)


Deed = Callable[[Pairs, str, dict[str, object], Dice], Coroutine[Any, Any, None] | None]


def _to(act: Callable[[Pairs, str, str, dict[str, object], Dice], None], role: str) -> Deed:
    return lambda pairs, session, fields, dice: act(pairs, role, session, fields, dice)


TO_WORKERS = (Pairs.kill, Pairs.stop, Pairs.pause, Pairs.cut, Pairs.stall, Pairs.slow)
DEEDS: dict[str, Deed] = {f"{act.__name__} {role}": _to(act, role) for act in TO_WORKERS for role in ROLES}
OTHERS = (
    *(Pairs.server_dies, Pairs.server_pauses, Pairs.ledger_fails, Pairs.leaves, Pairs.close, Pairs.open, Pairs.move),
    *(Pairs.cancel, Pairs.protect, Pairs.recover, Pairs.save, Pairs.describe, Pairs.plan),
)
DEEDS |= {act.__name__: act for act in OTHERS}
# as often as the others together
DEEDS |= {f"{act.__name__} ({again})": act for act in OTHERS for again in (1, 2)}
