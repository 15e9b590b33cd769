"""Pairs of things that seldom meet: something happens, and just then, or a moment later, something else is done.

A seed draws a few of all such pairs, of every moment there is and every operation, alike. So what comes about once in
a thousand runs by itself is as often in the middle of another thing as what comes about all the time.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tests.simulation.deeds import DEEDS, Deeds
from tests.simulation.house import House
from tests.simulation.loop import SimLoop
from tests.simulation.server import Server
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
FATES = ("kill", "stop", "pause", "server_dies", "cut", "leaves")
LATER_S = (0.0, 0.4)
MOST_LATER = 4
"""Of so many things that are done, one is done a good while later."""
FAR_LATER_S = (0.4, 3.0)
NUM_PAIRS = 24
BY_ITSELF_S = (0.6, 3.0)
"""When something is done that no moment has asked for: what follows from it has moments of its own."""
ANSWERED_WITHIN_S = 30.0


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

    deeds: Deeds
    server: Server
    loop: SimLoop
    weather: Weather
    watch: Watch
    trace: Trace
    protect_every: int
    _pairs: list[Pair] = field(default_factory=list)
    _seen: Counter[str] = field(default_factory=Counter)
    _doing: list[asyncio.Task[Any]] = field(default_factory=list)

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
        self.deeds.tell = self.comes

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
        sessions = [tab.session for tab in self.deeds.tabs]
        if self.weather.clear or not sessions:
            return
        session = str(fields.get("session", ""))
        if session not in sessions:
            session = sessions[dice.below(len(sessions))]
        self.trace.add("deed", what=deed, at=moment.replace(" ", "-"), session=session)
        self.trace.count(f"deed {deed}")
        self.trace.count("deeds")
        done = DEEDS[deed](self.deeds, session, fields, dice)
        if done is not None:
            self._doing.append(self.loop.run_in(self.loop.context("deeds"), self._timed(deed, done), deed))

    async def _timed(self, deed: str, work: Awaitable[Any]) -> None:
        begun = self.loop.time()
        await work
        if self.loop.time() - begun > ANSWERED_WITHIN_S:
            self.trace.fail(f"{deed} was answered after {self.loop.time() - begun:.1f} s")

    async def ended(self) -> None:
        """Return once all that was asked for is answered, and what was opened is closed."""
        await self.deeds.mended()
        await asyncio.gather(*self._doing)
        await self._close_others()
        for tab in self.deeds.tabs:
            await self.deeds.asker_of(tab.session).protected(self.protect_every)

    async def _close_others(self) -> None:
        """Close what was opened beside the others, also by a server that died of it."""
        mine = {tab.session for tab in self.deeds.tabs}
        while True:
            house = await self.server.serving()
            others = [view.name for view in house.controller.sessions() if not view.throwaway and view.name not in mine]
            if not others:
                return
            for name in others:
                if name in self.watch.played:
                    await self.deeds.asker_of(name).close_once()
                else:
                    await self.deeds.asker_of(name).ask("close", partial(_closed, name))
            await asyncio.sleep(0.2)


async def _closed(name: str, house: House) -> None:
    await house.desk.close(name)
