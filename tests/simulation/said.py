"""What is said of protected sessions is so: by the memory of the workers, and never by what the server believes.

1. While one is said to be protected, the death of any one worker loses nothing: two of them, or more, have what it
   could go on from, with all lists since. One that has died counts until the server knows of it: no sooner can that
   be said.
2. And none is lost by one death after it was said to be, unless its copy makes other frames than were shown.
3. In a clear sky one that is said not to be is so no longer than ``AGAIN_S``, while its owner and another worker that
   is able have room for a snapshot, and nobody moves or ends it.
"""

from dataclasses import dataclass, field

from tests.simulation.hosts import SimHosts
from tests.simulation.loop import SimLoop
from tests.simulation.node import Node
from tests.simulation.played import Played
from tests.simulation.server import Server
from tests.simulation.trace import Trace
from tests.simulation.watch import COMPLETE, Watch
from tests.simulation.weather import Weather
from worldmove.fleet.views import SessionState, SessionView, WorkerState

AGAIN_S = 15.0
"""A path that brings nothing is given up after 10 of them (``FleetConfig.snapshot_s``)."""
EVERY_S = 1.0
"""As often at least, though nothing happens."""


@dataclass(slots=True, kw_only=True)
class Said:
    """One run's."""

    server: Server
    hosts: SimHosts
    watch: Watch
    weather: Weather
    loop: SimLoop
    trace: Trace
    _seen: tuple[int, int] = (0, 0)
    """Lines of the trace, and beats' answers that have come."""
    _looks_at: float = 0.0
    _num_dead: int = 0
    _protected: dict[str, None] = field(default_factory=dict)
    """Sessions that were said to be when it was looked last."""
    _outlives: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Sessions that have to outlive the death of that number, if nothing else dies: in that life of the server."""
    _lacking_since: dict[str, float] = field(default_factory=dict)

    def look(self) -> None:
        """Something may have happened: where that is so, read the listing."""
        house = self.server.house
        seen = len(self.trace.lines), self.watch.num_beats_answered
        if seen == self._seen and self.loop.time() < self._looks_at:
            return
        self._seen, self._looks_at = seen, self.loop.time() + EVERY_S
        self._count_deaths()
        if house is None:
            self._protected.clear()  # what a server that has died had said, nobody says any more
        if house is None or self.trace.broken or self.loop.is_paused(self.server.node):
            return
        for view in house.controller.sessions():
            played = self.watch.played.get(view.name)
            if view.protect_every and played is not None and played.row is not None:
                self._look_at(view, played)
            else:
                self._protected.pop(view.name, None)  # it is protected no more, as somebody has asked
                self._outlives.pop(view.name, None)  # nor what had to save it kept

    def _count_deaths(self) -> None:
        """Of those that were said to be protected, one may be lost by the next death, but not by this one."""
        num_dead, before = sum(not node.has_power for node in self.hosts.all), self._num_dead
        self._num_dead = num_dead
        if num_dead == before:
            return
        unknown = sum(node.is_missed_by(self.server.node) for node in self.hosts.all)
        is_only = num_dead == before + 1 and unknown <= 1 and self.server.house is not None
        self._outlives = dict.fromkeys(self._protected, (num_dead, self.server.life)) if is_only else {}

    def _look_at(self, view: SessionView, played: Played) -> None:
        is_protected = not view.unprotected_why
        if view.state is SessionState.LOST and self._has_to_outlive(view.name):
            self.trace.fail(f"{view.name} is lost by one death, and was said to be protected")
        self._protected.pop(view.name, None)
        if is_protected:
            self._protected[view.name] = None
            self._lacking_since.pop(view.name, None)
            self.trace.count("looks at a session that is said to be protected")
            having = [node.node for node in self.hosts.all if self._has(node, played)]
            if len(having) < 2:
                where = ", ".join(having) or "nobody"
                self.trace.fail(f"{view.name} is said to be protected, and what could go on is with {where} alone")
        elif not self._can_be_protected(view):
            self._lacking_since.pop(view.name, None)
        elif self.loop.time() - self._lacking_since.setdefault(view.name, self.loop.time()) > AGAIN_S:
            self.trace.fail(f"{view.name} is not protected again after {AGAIN_S:.0f} s: {view.unprotected_why}")

    def _has_to_outlive(self, session: str) -> bool:
        """Whether one death alone was in its way. A copy that has made other frames (a planted fault) is none."""
        is_same = not self.trace.counts["blocks replayed differently"]
        return is_same and self._outlives.get(session) == (self._num_dead, self.server.life)

    def _has(self, node: Node, played: Played) -> bool:
        """Whether a process has in its memory what a session could go on from, if no other had."""
        if not (node.has_power or node.is_missed_by(self.server.node)):
            return False
        kept, row = node.kept_block(played.name), played.row
        if kept is not None and self.watch.has_lists(played.name, kept):
            return True
        for copy in node.copies_of(played.name):
            phase = copy.phase.value
            if row is not None and (row.owner, row.incarnation) == (node.name, node.incarnation):
                return phase != "freeing"
            return phase in COMPLETE and (phase != "retired" or self.watch.has_lists(played.name, copy.next_block))
        return False

    def _can_be_protected(self, view: SessionView) -> bool:
        house = self.server.house
        is_clear = self.weather.clear or not any(self.weather.rates.values())
        if house is None or not is_clear or view.state is not SessionState.LIVE:
            return False
        workers = house.controller.workers()
        roomy = [w.name for w in workers if w.state is WorkerState.READY and w.slots_free]
        return view.owner in roomy and len(roomy) > 1
