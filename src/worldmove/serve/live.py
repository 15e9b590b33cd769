"""One session at the gateway: who watches, what they pressed, what was closed, what was shown.

One of an earlier server begins with a ``Resuming``: until its reports are in, this neither shows nor closes.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
import structlog

from worldmove.engine.base import EngineSpec, KeyChange
from worldmove.fleet.ports import Fleet, Owner
from worldmove.fleet.reports import Outcome
from worldmove.serve.audience import Audience
from worldmove.serve.checks import CheckBook, digests_of
from worldmove.serve.client_messages import Keys
from worldmove.serve.feed import Feed
from worldmove.serve.gap import Gap
from worldmove.serve.journal import Journal
from worldmove.serve.limits import PlayLimits
from worldmove.serve.metrics import Metrics
from worldmove.serve.play_messages import Check, Counts, Error, KeysTaken, Lost, Resting
from worldmove.serve.player import CloseCode, Player
from worldmove.serve.resuming import Resuming
from worldmove.serve.screen import Screen, Shown
from worldmove.serve.sequencer import Sequencer, Taken
from worldmove.serve.tempo import Situation, Tempo, TempoConfig, horizon_s
from worldmove.worker.messages import BlockDone, CheckDone, Opened, StateDone

RECENT_BLOCKS = 16

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveConfig:
    """What every session of a gateway shares.

    ``check_blocks``: how many blocks are owed after a change of owner (see ``serve.tempo``, rule 5).
    """

    spec: EngineSpec
    server_life: int
    rest_after_s: float = 4.0
    engine: str = ""
    """As a worker's configuration names it."""
    account_every: int = 16
    """After how many blocks a session's owner accounts for its state, for the record; 0: never."""
    check_blocks: int = 2
    limits: PlayLimits = field(default_factory=PlayLimits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a session begins: from its seed, or where a saved one had come to."""

    seed: int
    first_block: int = 0
    number: int = 0
    """Of the newest key change before ``first_block``."""
    down: tuple[str, ...] = ()
    """Keys that were down by then."""


class Live:
    """One session. Calls return at once; ``run`` closes lists and shows blocks until it is cancelled."""

    def __init__(
        self,
        name: str,
        *,
        config: LiveConfig,
        fleet: Fleet,
        metrics: Metrics,
        start: Start | None = None,
        resuming: Resuming | None = None,
    ) -> None:
        self.name = name
        self.start = start or Start(seed=0)
        self.config = config
        self.resuming = resuming
        """What is waited for of a session of an earlier server; None for one of this server's, and afterwards."""
        self.spec = config.spec
        self.audience = Audience(config.limits.max_watchers)
        self.sequencer = Sequencer()
        if self.start.first_block:
            self.sequencer.go_on(self.start.first_block, self.start.number, self.start.down)
        self.journal = Journal()
        self.opened: Opened | None = None
        self.counts = Counts(moved=0, refused=0, aborted=0, lost=0, blocks_late=0)
        self.lost_why: str | None = None
        self.gap: Gap | None = None
        """Of the newest move."""
        self._kept = False
        self._first: int | None = None
        self._owed_until = 0
        self._check_blocks = config.check_blocks
        self._was_owned = False
        self.server_life = config.server_life
        self._metrics = metrics
        self._checks = CheckBook()
        period_s = config.spec.period_s
        self._tempo = Tempo(TempoConfig(period_s=period_s, lead_s=period_s, rest_after_s=config.rest_after_s))
        self.feed = Feed(
            name,
            sequencer=self.sequencer,
            tempo=self._tempo,
            fleet=fleet,
            look=self._look,
            on_rest=self._rested,
            account_every=config.account_every,
        )
        self.screen = Screen(
            name,
            spec=config.spec,
            server_life=config.server_life,
            fleet=fleet,
            audience=self.audience,
            tempo=self._tempo,
            acknowledge=self._acknowledge,
            first_block=self.start.first_block,
        )
        self._arrived: asyncio.Queue[tuple[str, BlockDone | StateDone, float]] = asyncio.Queue()
        self._compute_s: deque[float] = deque(maxlen=RECENT_BLOCKS)
        self._progress = asyncio.Event()

    async def run(self) -> None:
        """Play the session."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.feed.run())
            if self.resuming is not None:
                await self._resume(self.resuming)
            tasks.create_task(self._show_blocks())
            if self.resuming is not None:
                await self._resume_lists(self.resuming)

    async def _resume(self, resuming: Resuming) -> None:
        """Wait until the next block is known, and let in who has come back."""
        next_block = await resuming.showable()
        self.screen.resume(next_block, [resuming.blocks[block] for block in sorted(resuming.blocks)])
        self.sequencer.begin_again(resuming.newest_number, self.spec.keys, life=self.server_life)
        log.info("resumed", session=self.name, block=next_block)
        resuming.let_in()

    async def _resume_lists(self, resuming: Resuming) -> None:
        """Wait until every holder has reported, and close lists from there on."""
        await resuming.closable()
        self.sequencer.resume(self.screen.next_block, resuming.reports.lists)
        self.resuming = None
        if self.lost_why is not None:
            return
        self.feed.enabled = True
        self._first = None if resuming.holders else self.sequencer.first
        self.feed.hold(resuming.holders, self.sequencer.first)
        if resuming.owner is not None:
            self.feed.send_from(resuming.owner, self.sequencer.first)
        if len(self.feed.holders) > 1:  # the retired copy of a move is let go by a block past its boundary
            self._owed_until = self.screen.next_block + self._check_blocks
        self._was_owned = True
        self._rested(None)
        self.feed.nudge()

    # What the workers and the controller say.

    def take(self, worker: str, message: BlockDone | StateDone | CheckDone | Opened) -> None:
        """Take a worker's word about this session."""
        match message:
            case BlockDone() | StateDone():
                self._arrived.put_nowait((worker, message, asyncio.get_running_loop().time()))
            case CheckDone(block=block, attempt=attempt):
                self._tell(self._checks.stepped(block, attempt, digests_of(message)))
            case Opened():
                self.opened = message

    def owned(self, owner: Owner) -> None:
        """The row names this owner: it is sent the lists from the next block on."""
        if self.resuming is not None:
            self.resuming.owner = owner.worker
            return
        if self._was_owned:
            self._owed_until = self.screen.next_block + self._check_blocks
        self._was_owned = self.feed.enabled = True
        self.feed.send_from(owner.worker, self.screen.next_block)
        self.feed.nudge()

    def hold(self, workers: Sequence[str]) -> None:
        """These workers hold a copy that needs the lists."""
        if self.resuming is not None:
            self.resuming.holders = tuple(workers)
            return
        # Who is first heard of after a restart may lack what was on its way to it when the earlier server ended.
        self.feed.hold(workers, self.screen.next_block if self._first is None else self._first)
        self._first = None

    def lose(self, why: str) -> None:
        """No copy is left."""
        self.lost_why = why
        self.feed.enabled = False
        if self.resuming is not None:
            self.resuming.let_in()
        self._count("lost")
        self.end(why)

    def count(self, outcome: Outcome) -> None:
        """Count a move that has ended, and tell."""
        field = {Outcome.COMMITTED: "moved", Outcome.REFUSED: "refused", Outcome.ABORTED: "aborted"}.get(outcome)
        if field is not None:
            self._count(field)

    def end(self, why: str) -> None:
        """Close every connection, saying why; the record ends too."""
        self.journal.end(why)
        if self.lost_why is not None:
            self.audience.say(Lost(sentence=why))
        self.dismiss(CloseCode.SESSION_ENDED, why[:120])

    def dismiss(self, code: CloseCode, reason: str) -> None:
        """Close every connection, also of those who wait to be let in."""
        if self.resuming is not None:
            self.resuming.dismiss(code, reason)
        self.audience.end(code, reason)

    @property
    def watched(self) -> bool:
        """Whether anybody is here, or waits to be let in."""
        return self.audience.watched or (self.resuming is not None and self.resuming.watched)

    @property
    def next_block(self) -> int | None:
        """The next block to be shown; None while it is not known."""
        return self.screen.next_block if self.resuming is None or self.resuming.is_over else None

    @property
    def resting_why(self) -> str | None:
        """Why nothing goes on; None while it does."""
        return self.feed.resting_why if self.resuming is None else self.resuming.why

    def due(self, block: int) -> float | None:
        """When a block is to be here, by the loop's clock; None where it is not due, or was shown long ago."""
        return self._tempo.due(block)

    def horizon_s(self) -> float | None:
        """Seconds from a block's arrival to the next one's due time less its compute time.

        None while no block time is known; without limit while the world rests, since no block is due.
        """
        if self.feed.resting_why is not None:
            return float("inf")
        return horizon_s(self.spec.period_s, tuple(self._compute_s))

    # What the players say.

    def join(self, player: Player, *, controls: bool) -> None:
        """Let a player watch, and control if asked. Who controlled before lets go of every key."""
        if controls and self.audience.controlling is not None:
            self.sequencer.release()
        self.audience.join(player, controls=controls)
        self.feed.nudge()

    def leave(self, player: Player) -> None:
        """A player is gone; if they controlled, what was down is released and nothing keeps the world going."""
        if self.resuming is not None:
            self.resuming.leave(player)
        if self.audience.controlling is player:
            self.sequencer.release()
            self._kept = False
        self.audience.leave(player)
        self.feed.nudge()

    def release_if_silent(self, silent_s: float) -> None:
        """Let go of the keys of a player that has said nothing for so long: its connection may be dead."""
        player, now = self.audience.controlling, asyncio.get_running_loop().time()
        if player is not None and player.heard_at is not None and now - player.heard_at >= silent_s:
            self.sequencer.release()

    def press(self, player: Player, keys: Keys) -> None:
        """Take a player's key changes. One that breaks the numbering, or sends too many, is dropped."""
        if player is not self.audience.controlling:
            player.say(Error(code="watching_only", message="Another connection has the controls."))
            return
        unknown = next((key for _, key, _ in keys.changes if key not in self.spec.keys), None)
        if unknown is not None:  # one error for a message, or a flood of them would fill the player's queue
            known = ", ".join(self.spec.keys)
            player.say(Error(code="unknown_key", message=f"There is no key {unknown!r} here; use {known}."))
        for number, key, down in keys.changes:
            if key not in self.spec.keys:
                continue
            taken = self.sequencer.take(KeyChange(number=number, key=key, down=down))
            if taken in (Taken.FULL, Taken.TOO_FAR):
                player.drop(CloseCode.BAD_MESSAGE, f"key change {number} was not taken: {taken.value}")
                return
        player.say(KeysTaken(number=self.sequencer.next_number - 1))
        self.feed.nudge()

    def keep(self, player: Player, *, keep: bool) -> None:
        """Go on without keys, or stop doing so. Only who controls may say so."""
        if player is self.audience.controlling:
            self._kept = keep
            self.feed.nudge()

    # What goes on meanwhile.

    async def first_shown(self, epoch: int) -> None:
        """Return once a block of this epoch was shown, or the world rests and none will come."""
        await self._until(lambda: (self.screen.shown_epoch or 0) >= epoch)

    def begin_gap(self, attempt: str, epoch: int) -> None:
        """A try begins: from its move's first one on, late blocks count."""
        if self.gap is None or self.gap.ended is not None:
            self.gap = Gap(attempt=attempt, epoch=epoch)
        self.gap.attempt = attempt

    async def gap_over(self, gap: Gap, within_s: float) -> None:
        """Return once a gap is over: after a time it is closed, and what is due by then and not here counts."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._until(lambda: gap.is_over)
        gap.close(self._overdue_s())

    def _overdue_s(self) -> float | None:
        """Return how late the next block is by now; None where it is not due."""
        due = self._tempo.will_be_due(self.screen.next_block)
        late_s = 0.0 if due is None else asyncio.get_running_loop().time() - due
        return late_s if late_s > 0 and self.feed.resting_why is None else None

    async def _until(self, holds: Callable[[], bool]) -> None:
        """Return once something holds, or the world is lost, or rests and no block will come."""
        while not holds() and self.lost_why is None:
            if self.feed.resting_why is not None and not self._owes:
                return
            self._progress.clear()
            await self._progress.wait()

    async def _show_blocks(self) -> None:
        while True:
            worker, block, arrived = await self._arrived.get()
            if isinstance(block, StateDone):  # in turn, so that it follows the block that it speaks of
                self.journal.state(worker, block)
                continue
            shown = await self.screen.take(worker, block, arrived)
            if isinstance(shown, Shown):
                if self.journal.begun:  # else it is an earlier server's session, whose lists may not be here
                    self.journal.block(worker, block, self.sequencer.closed(block.block))
                self._after(shown)
            else:
                self._metrics.block_dropped(shown)
                log.info("block not shown", session=self.name, worker=worker, block=block.block, why=shown.value)

    def _after(self, shown: Shown) -> None:
        self._compute_s.append(shown.block.compute_s)
        self._metrics.block_shown(shown.late_s, shown.block.compute_s)
        if self.gap is not None:
            self.gap.shown(shown.block.epoch, shown.late_s)
        if shown.late_s:
            self._count("blocks_late")
        self._tell(self._checks.shown(shown.block.block, digests_of(shown.block)))
        self._progress.set()
        self.feed.nudge()

    def _count(self, field: str) -> None:
        self.counts = msgspec.structs.replace(self.counts, **{field: getattr(self.counts, field) + 1})
        self.audience.say(self.counts)

    def _tell(self, checks: Sequence[Check]) -> None:
        for check in checks:
            self._metrics.checked(equal=check.equal)
            self.audience.say(check)

    def _rested(self, why: str | None) -> None:
        self.audience.say(Resting(resting=why is not None, why=why or ""))
        self._progress.set()

    def _acknowledge(self, epoch: int, block: int) -> None:
        self.feed.acknowledge(epoch, block, self.server_life)

    @property
    def _owes(self) -> bool:
        return self.screen.next_block < self._owed_until

    def _look(self, now: float) -> Situation:
        return Situation(
            now=now,
            block=self.sequencer.reaches,
            shown=self.screen.next_block,
            active=self.sequencer.active,
            kept=self._kept,
            watched=self.audience.watched,
            owed=self._owes,
        )
