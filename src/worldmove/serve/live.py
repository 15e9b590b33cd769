"""One session at the gateway: who watches, what they pressed, what was closed, what was shown.

One of an earlier server begins with a ``Resuming``: until its reports are in, this neither shows nor closes.
"""

import asyncio
from collections.abc import Sequence

import structlog

from worldmove.fleet.ports import Fleet, Owner
from worldmove.serve.audience import Audience
from worldmove.serve.comeback import Comeback
from worldmove.serve.controls import Controls
from worldmove.serve.feed import Feed
from worldmove.serve.journal import Journal
from worldmove.serve.live_config import LiveConfig, Start
from worldmove.serve.metrics import Metrics
from worldmove.serve.owed import Owed
from worldmove.serve.play_messages import Lost, Resting
from worldmove.serve.player import CloseCode, Player
from worldmove.serve.resuming import Resuming
from worldmove.serve.screen import Screen
from worldmove.serve.showing import Showing
from worldmove.serve.standstill import Standstill
from worldmove.serve.tally import Tally
from worldmove.serve.tempo import Situation, horizon_s
from worldmove.serve.witness import Witness
from worldmove.worker.messages import BlockDone, CheckDone, Followed, Opened, Replayed, StateDone

log = structlog.get_logger()


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
        self.server_life = config.server_life
        self.receipts = config.receipts
        self.audience = Audience(config.limits.max_watchers)
        self.sequencer = self.start.sequencer()
        self.journal = Journal()
        self.opened: Opened | None = None
        self.lost_why: str | None = None
        self.failed_why: str | None = None
        """Why the gateway shows it no more, though it may not be lost."""
        self.tally = Tally(self.audience, metrics)
        self.witness = Witness()
        self.standstill = Standstill(overdue_s=self._overdue_s, will_go_on=self._will_go_on)
        self._owed = Owed(config.check_blocks)
        self._tempo = config.tempo()
        self._fleet = fleet
        self.feed = self._fed(fleet)
        self.screen = self._screened(fleet)
        self._comeback = None if resuming is None else self._coming_back(resuming, fleet)
        self.controls = Controls(
            audience=self.audience, sequencer=self.sequencer, keys=config.spec.keys, on_change=self.feed.nudge
        )
        self.showing = self._shown_by(metrics)
        self._first: int | None = None

    async def run(self) -> None:
        """Play the session."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.feed.run())
            if self._comeback is not None:
                await self._comeback.show(self.spec.keys, self.server_life)
            tasks.create_task(self.showing.run())
            if self._comeback is not None:
                await self._comeback.close()
                self._go_on()

    def _go_on(self) -> None:
        """Every holder of an earlier server's session has reported: close lists from the next block on."""
        resuming, self.resuming = self.resuming, None
        if resuming is None or self.lost_why is not None:
            return
        self.feed.enabled = True
        self._first = None if resuming.holders else self.sequencer.first
        self.feed.hold(resuming.holders, self.sequencer.first)
        if resuming.owner is not None:
            self.feed.send_from(resuming.owner, self.sequencer.first)
        self._owed.resumed(self.screen.next_block, num_holders=len(self.feed.holders))
        self._rested(None)
        self.feed.nudge()

    # What the workers and the controller say.

    def take(self, worker: str, message: BlockDone | StateDone | CheckDone | Followed | Replayed | Opened) -> None:
        """Take a worker's word about this session."""
        match message:
            case BlockDone() | StateDone():
                if isinstance(message, BlockDone) and self.resuming is not None and self._comeback is not None:
                    self._comeback.sent(message)
                self.showing.take(worker, message)
            case CheckDone():
                self.tally.stepped(message)
            case Followed():
                self.tally.followed(message)
            case Replayed():
                self._replayed(message)
            case Opened():
                self.opened = message

    def recall(self, block: BlockDone) -> None:
        """A block that an earlier server has shown is here again."""
        if self.resuming is not None and self._comeback is not None:
            self._comeback.recall(block)

    def _replayed(self, message: Replayed) -> None:
        """A copy that took over has computed a block anew: its first own block is shown only if all are equal."""
        self.witness.replayed(message.block, message.frame_sha256)
        equal = self.witness.is_equal(message.block, message.frame_sha256)
        if equal is None and self.resuming is not None and self._comeback is not None:
            self._comeback.compare_later(message)
        elif equal is not None:
            self._fleet.compared(self.name, message.epoch, message.block, equal=equal)
        if equal is False:
            log.error("replayed differently", session=self.name, epoch=message.epoch, block=message.block)

    def owned(self, owner: Owner) -> None:
        """The row names this owner: it is sent the lists from the next block on."""
        if self.resuming is not None:
            self.resuming.owner = owner.worker
            return
        self._owed.owned(self.screen.next_block)
        self.feed.enabled = True
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
        self.tally.lost()
        self.end(why)

    def fail(self, why: str) -> None:
        """The gateway cannot show it any more: whoever comes later is told so too."""
        self.failed_why = why
        self.feed.enabled = False
        self.end(why)

    def end(self, why: str) -> None:
        """Close every connection, saying why; the record ends too."""
        self.journal.end(why)
        if self.lost_why is not None:
            self.audience.say(Lost(sentence=why))
        self.dismiss(CloseCode.SESSION_ENDED, why)

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
        if self.resuming is not None and self.lost_why is None:
            return self.resuming.why
        return self.feed.resting_why

    def due(self, block: int) -> float | None:
        """When a block is to be here, by the loop's clock; None where it is not due, or was shown long ago."""
        return self._tempo.due(block)

    def horizon_s(self) -> float | None:
        """Seconds from a block's arrival to the next one's due time less its compute time.

        None while no block time is known; without limit while the world rests, since no block is due.
        """
        if self.feed.resting_why is not None:
            return float("inf")
        return horizon_s(self.spec.period_s, self.showing.compute_s)

    def leave(self, player: Player) -> None:
        """A player is gone, who may only have waited to be let in."""
        if self.resuming is not None:
            self.resuming.leave(player)
        self.controls.leave(player)

    # What goes on meanwhile.

    def _rested(self, why: str | None) -> None:
        self.audience.say(Resting(resting=why is not None, why=why or ""))
        self.standstill.look_again()

    def _acknowledge(self, epoch: int, block: int) -> None:
        self.feed.acknowledge(epoch, block, self.server_life)

    def _overdue_s(self) -> float | None:
        """Return how late the next block is by now; None where it is not due."""
        due = self._tempo.will_be_due(self.screen.next_block)
        late_s = 0.0 if due is None else asyncio.get_running_loop().time() - due
        return late_s if late_s > 0 and self.feed.resting_why is None else None

    def _will_go_on(self) -> bool:
        """Whether there will be a next block: the world is not lost, and does not rest."""
        if self.lost_why is not None:
            return False
        return self.feed.resting_why is None or self._owed.is_owed(self.screen.next_block)

    def _look(self, now: float) -> Situation:
        return Situation(
            now=now,
            block=self.sequencer.reaches,
            shown=self.screen.next_block,
            active=self.sequencer.active,
            kept=self.controls.kept,
            watched=self.audience.watched,
            owed=self._owed.is_owed(self.screen.next_block),
        )

    # Its parts.

    def _fed(self, fleet: Fleet) -> Feed:
        return Feed(
            self.name,
            sequencer=self.sequencer,
            tempo=self._tempo,
            fleet=fleet,
            look=self._look,
            on_rest=self._rested,
            account_every=self.config.account_every,
        )

    def _screened(self, fleet: Fleet) -> Screen:
        return Screen(
            self.name,
            spec=self.spec,
            server_life=self.server_life,
            receipts=self.receipts,
            fleet=fleet,
            audience=self.audience,
            tempo=self._tempo,
            acknowledge=self._acknowledge,
            first_block=self.start.first_block,
        )

    def _coming_back(self, resuming: Resuming, fleet: Fleet) -> Comeback:
        return Comeback(
            self.name,
            resuming=resuming,
            fleet=fleet,
            screen=self.screen,
            sequencer=self.sequencer,
            witness=self.witness,
            compare=self._replayed,
        )

    def _shown_by(self, metrics: Metrics) -> Showing:
        return Showing(
            self.name,
            screen=self.screen,
            sequencer=self.sequencer,
            journal=self.journal,
            tally=self.tally,
            standstill=self.standstill,
            metrics=metrics,
            witness=self.witness,
            on_shown=self.feed.nudge,
        )
