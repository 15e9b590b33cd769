"""One worker as the controller knows it: which process it is, and what it last said."""

import asyncio
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median

from worldmove.fleet.hosts import WorkerLink, WorkerProcess
from worldmove.fleet.views import WorkerState, WorkerView
from worldmove.state.environment import NO_FIELDS
from worldmove.worker.messages import KEPT, Alive, Copy, GiveUp, Hello, LetGo, Open, Pass, Revive, ToWorker

LIVE = "live"
"""The phase of a copy that is played."""
RETIRED = "retired"
"""The phase of a copy that was played, and waits to be let go."""
NUM_WAYS = 16
"""So many of a worker's last beats say how long words are on their way."""


@dataclass(slots=True, kw_only=True)
class WorkerRecord:
    """One worker: its newest incarnation, and what that said."""

    name: str
    incarnation: int
    state: WorkerState = WorkerState.STARTING
    process: WorkerProcess | None = None
    link: WorkerLink | None = None
    hello: Hello | None = None
    copies: tuple[Copy, ...] = ()
    slots_free: int = 0
    slots_quarantined: int = 0
    opening: dict[str, None] = field(default_factory=dict)
    """Sessions that it was told to open, and has not answered for: what it last reported may not count them yet."""
    promised: dict[str, None] = field(default_factory=dict)
    """Sessions for which a slot here was freed, and that are yet to come: nothing else is to take it."""
    coming: dict[str, None] = field(default_factory=dict)
    """Sessions that workers which are to end are moving here: each takes a slot, whoever else looks for one."""
    answered_at: float | None = None
    """When the newest beat was sent that it has answered, by the event loop's clock (see ``fleet.leases``)."""
    alive_at: float | None = None
    """The same, with no time of this server's own absence left out: it was alive then, or later."""
    block_s: float | None = None
    """A high quantile of its recent block times, as it last said; None: it has not said so."""
    turn_s: float = 0.0
    """By how much longer than it is computed a block keeps its engine, in the long run, as it last said."""
    spare_s: float = 0.0
    """What it reckons a spare block to take where it is to fit in, as it last said."""
    ages_s: tuple[float, ...] = ()
    """How old the newest list of each session that it plays was, when it last said so."""
    num_done: int = 0
    """What it has got done of what it was asked for, as it last said (``worker.progress``)."""
    num_pulled: int = 0
    """How much of other workers' states has come there, in the same way."""
    taken_s: float = 0.0
    """For how long its engine had been at what it was at, as it last said."""
    at_block: bool = False
    """Whether that was a block of some session's, and no opening or the like."""
    suspected: bool = False
    """Its lease has lapsed."""
    beat_sent: int = 0
    """The newest beat that it was sent."""
    beat_answered: int = 0
    """The newest beat that it has answered, of those that renew a lease."""
    ways_s: deque[float] = field(default_factory=lambda: deque(maxlen=NUM_WAYS))
    """From its last beats to their answers, there and back, in seconds."""
    told_to_go: dict[tuple[str, str], int] = field(default_factory=dict)
    """By session, and KEPT, LIVE or RETIRED: the newest beat that it had been sent when it was told to give that up."""
    polled: int = 0
    """The newest poll that it has answered."""
    leaving: bool = False
    """It was told to end, and its sessions are moved away: nothing new is put there."""
    leaving_since: float = 0.0
    """When that was, by the event loop's clock."""
    num_lines_dropped: int = 0
    """Of its log, as it has last said."""
    is_emptied: bool = False
    """Its sessions are being moved away just now."""
    reported: bool = False
    """Whether it has said all that it holds since its newest link was made."""
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at each report, for whoever waits for one."""

    @property
    def way_s(self) -> float:
        """How long a word to it and its answer are on their way, in seconds; 0 before its first beat was answered."""
        return median(self.ways_s) if self.ways_s else 0.0

    @property
    def least_way_s(self) -> float:
        """What the quickest of its last beats took, there and back, in seconds; 0 while they are few."""
        return min(self.ways_s) if len(self.ways_s) == NUM_WAYS else 0.0

    @property
    def device(self) -> str:
        """Whose time it takes: a GPU's, or that of a core of its own."""
        return (self.hello.device if self.hello else "") or self.name

    @property
    def environment(self) -> Mapping[str, str]:
        """What decides its blocks' bytes, field by field; nothing before its hello."""
        return self.hello.environment if self.hello else NO_FIELDS

    @property
    def period_s(self) -> float | None:
        """Between two blocks of its engine's."""
        return self.hello.rates.get("period_s") if self.hello else None

    @property
    def room(self) -> int:
        """How much more could be put here: as much as it has free slots, but for what is on its way to them."""
        return self.room_for("")

    def room_for(self, session: str) -> int:
        """Return the same for one session: what was promised to that one is its, and whatever else is for it."""
        held = {copy.session for copy in self.copies if copy.phase != KEPT} | {session}
        return self.slots_free - sum(other not in held for other in (self.opening | self.promised | self.coming))

    @property
    def num_live(self) -> int:
        """How many sessions it plays."""
        return sum(copy.phase == "live" for copy in self.copies)

    def num_played(self, besides: str = "") -> int:
        """How many sessions have their blocks computed here: it plays them, or follows them and will; but for one."""
        return sum(copy.phase in ("live", "following") and copy.session != besides for copy in self.copies)

    def told(self, message: ToWorker) -> None:
        """It was sent a message: note what it may let go by that, or is to open."""
        if isinstance(message, Open):
            self.opening[message.session] = None
        if isinstance(message, LetGo | Revive | GiveUp | Pass):
            reached = [key for key, told_at in self.told_to_go.items() if self.beat_answered >= told_at + 2]
            for key in reached:
                del self.told_to_go[key]
            phase = {GiveUp: LIVE, Pass: RETIRED}.get(type(message), KEPT)
            self.told_to_go[message.session, phase] = self.beat_sent

    def is_giving_up(self, session: str, phase: str) -> bool:
        """Whether it may just be giving something of a session up, as it was told."""
        told_at = self.told_to_go.get((session, phase))
        return told_at is not None and self.beat_answered < told_at + 2

    def take(self, alive: Alive) -> None:
        """It lives, and says how it fares."""
        self.block_s = alive.block_s or self.block_s
        self.turn_s, self.spare_s, self.ages_s = alive.turn_s, alive.spare_s, alive.ages_s
        self.num_done, self.num_pulled = alive.num_done, alive.num_pulled
        self.taken_s, self.at_block = alive.taken_s, alive.at_block
        self.num_lines_dropped = alive.num_lines_dropped

    def _state(self) -> WorkerState:
        if self.state is WorkerState.READY and self.leaving and not self.suspected:
            return WorkerState.LEAVING
        return WorkerState.SUSPECTED if self.suspected else self.state

    def _pid(self) -> int | None:
        """Return the id of its living process; one that was adopted is known before its hello."""
        if self.state is WorkerState.GONE:
            return None  # it may be another process's by now
        if self.hello is not None:
            return self.hello.pid
        return None if self.process is None else self.process.pid

    def view(self, *, is_stuck: bool = False) -> WorkerView:
        """Return what is shown of it. ``is_stuck``: as its table knows."""
        hello = self.hello
        return WorkerView(
            name=self.name,
            pid=self._pid(),
            incarnation=self.incarnation,
            state=self._state(),
            num_slots=hello.num_slots if hello else 0,
            slots_free=self.slots_free,
            slots_quarantined=self.slots_quarantined,
            arena_bytes=hello.arena_bytes if hello else 0,
            copies=self.copies,
            environment=dict(hello.environment) if hello else {},
            rates=dict(hello.rates) if hello else {},
            is_stuck=is_stuck,
            num_lines_dropped=self.num_lines_dropped,
        )


def may_hold_shadow(worker: WorkerRecord, session: str) -> bool:
    """Whether a worker may hold a session's shadow, by its death and by what it has said since its newest link."""
    if worker.state is WorkerState.GONE:
        return False
    shadow = any(copy.session == session and copy.phase in ("shadow", "following") for copy in worker.copies)
    return shadow or not worker.reported
