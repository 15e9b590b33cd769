"""A minimal gateway: it closes lists at a period, shows the next block of the ledger's owner, and checks frames."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from worldmove.engine.base import Engine, KeyChange
from worldmove.fleet.failover_report import FailoverReport
from worldmove.fleet.ports import Fleet, Owner, Played
from worldmove.move.ledger_messages import MarkShown
from worldmove.worker.messages import (
    Acknowledge,
    BlockDone,
    Change,
    CheckDone,
    Followed,
    Inputs,
    Note,
    Opened,
    Replayed,
)

KEYS = ("up", "left", "down", "right")

Digests = tuple[tuple[bytes, ...], str]
"""Of a block: every frame's SHA-256, and the state digest after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownBlock:
    """A block as it was shown. ``late_s`` < 0: it was early."""

    block: int
    epoch: int
    frame_sha256: tuple[bytes, ...]
    notes: tuple[Note, ...]
    late_s: float


@dataclass(slots=True, kw_only=True)
class Play:
    """One session, as it was played."""

    owner: Owner | None = None
    holders: tuple[str, ...] = ()
    next_block: int = 0
    lists: list[tuple[Change, ...]] = field(default_factory=list)
    due: list[float] = field(default_factory=list)
    shown: list[ShownBlock] = field(default_factory=list)
    checks: dict[int, Digests] = field(default_factory=dict)
    digests: dict[int, Digests] = field(default_factory=dict)
    follows: dict[str, dict[int, tuple[bytes, ...]]] = field(default_factory=dict)
    """By attempt: what its follower made of each block."""
    waiting: dict[int, BlockDone] = field(default_factory=dict)
    closed_epoch: int = -1
    lost_why: str = ""
    failovers: list[FailoverReport] = field(default_factory=list)
    progress: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def frames(self) -> list[tuple[bytes, ...]]:
        return [shown.frame_sha256 for shown in self.shown]

    def checked(self) -> list[bool]:
        """Return of each block that both ends have digested whether the digests are equal."""
        return [self.checks[block] == self.digests[block] for block in self.checks if block in self.digests]


class PlayingGateway:
    """Plays every session that is opened, at one period."""

    def __init__(self, fleet: Fleet, period_s: float) -> None:
        self.fleet = fleet
        self.period_s = period_s
        self.plays: dict[str, Play] = {}
        self.on_shown: Callable[[str, ShownBlock], None] = lambda session, shown: None
        self.on_phase: Callable[[str], None] = lambda phase: None
        self.horizon = float("inf")
        """What it says of the time until the next block is due, seconds."""
        self._number = 0
        self._arrived: asyncio.Queue[BlockDone] = asyncio.Queue()

    # what the controller asks

    def take(self, worker: str, message: Played) -> None:
        if isinstance(message, BlockDone):
            self._arrived.put_nowait(message)
        elif isinstance(message, CheckDone):
            self._of(message.session).checks[message.block] = (message.frame_sha256, message.state_digest)
        elif isinstance(message, Followed):
            self._of(message.session).follows.setdefault(message.attempt, {})[message.block] = message.frame_sha256
        elif isinstance(message, Replayed):
            equal = self._of(message.session).shown[message.block].frame_sha256 == message.frame_sha256
            self.fleet.compared(message.session, message.epoch, message.block, equal=equal)

    def owned(self, session: str, owner: Owner) -> None:
        play = self._of(session)
        play.owner = owner
        self._send_from(play.next_block, session, owner.worker)

    def holders(self, session: str, workers: Sequence[str]) -> None:
        play = self._of(session)
        for worker in workers:
            if worker not in play.holders:
                self._send_from(play.next_block, session, worker)
        play.holders = tuple(workers)

    def linked_again(self, session: str, worker: str, block: int) -> None:
        self._send_from(block, session, worker)

    def close_epoch(self, session: str, epoch: int) -> None:
        self._of(session).closed_epoch = epoch

    def resume(self, session: str, opened: Opened, forks: tuple[int, ...] = ()) -> None:
        raise NotImplementedError("this gateway has no server before it")

    def held(self, session: str, block: int, changes: Sequence[Change]) -> None:
        """It closes its lists itself, and keeps them."""

    def left(self, session: str, before: int, computed: int, *, sends: bool) -> None:
        """It knows what it has shown."""

    def may_show(self, session: str, *, owner_lives: bool) -> None:
        raise NotImplementedError("this gateway has no server before it")

    def may_close(self, session: str) -> None:
        raise NotImplementedError("this gateway has no server before it")

    def open_epoch(self, session: str, epoch: int) -> None:
        self._of(session).closed_epoch = epoch - 1

    def next_block(self, session: str) -> int | None:
        return self._of(session).next_block

    def log_reaches(self, session: str, first: int = 0) -> int | None:
        return len(self._of(session).lists)

    def horizon_s(self, session: str) -> float | None:
        return self.horizon

    def is_stalled(self, session: str) -> bool | None:
        return False

    def first_difference(self, session: str, attempt: str) -> int | None:
        follows = self._of(session).follows.get(attempt, {})
        shown = {shown.block: shown.frame_sha256 for shown in self._of(session).shown}
        return min((block for block, frames in follows.items() if shown.get(block, frames) != frames), default=None)

    def moving(self, session: str, event: str, fields: dict[str, object]) -> None:
        if event == "phase":
            self.on_phase(str(fields["phase"]))

    def failed_over(self, session: str, report: FailoverReport) -> None:
        self._of(session).failovers.append(report)

    def lost(self, session: str, why: str) -> None:
        play = self._of(session)
        play.lost_why = why
        play.progress.set()

    # play

    async def run(self) -> None:
        """Show blocks until cancelled."""
        while True:
            message = await self._arrived.get()
            play = self._of(message.session)
            play.waiting[message.block] = message
            while (following := play.waiting.pop(play.next_block, None)) is not None:
                if not await self._show(play, following):
                    break

    async def play(self, session: str, num_blocks: int) -> Play:
        """Close a list each period, and return when that many more blocks were shown, or the session is lost."""
        return await self.play_while(session, lambda number: number < num_blocks)

    async def play_while(self, session: str, going_on: Callable[[int], bool]) -> Play:
        """Close a list each period, as long as ``going_on`` says so of the next one's number, counted from here."""
        loop = asyncio.get_running_loop()
        play = self.plays[session]
        anchor, begin, number = loop.time(), len(play.lists), 0
        while going_on(number):
            await asyncio.sleep(anchor + number * self.period_s - loop.time())
            number += 1
            self._close_list(session, anchor + number * self.period_s)
        await self.until(session, begin + number)
        return play

    async def until(self, session: str, next_block: int) -> None:
        """Return once every block before ``next_block`` was shown, or the session is lost."""
        play = self.plays[session]
        while play.next_block < next_block and not play.lost_why:
            play.progress.clear()
            await play.progress.wait()

    def _of(self, session: str) -> Play:
        return self.plays.setdefault(session, Play())

    def _send_from(self, first: int, session: str, worker: str) -> None:
        lists = self.plays[session].lists
        for block in range(first, len(lists)):
            self.fleet.send(worker, Inputs(session=session, block=block, changes=lists[block]))

    def _close_list(self, session: str, due: float) -> None:
        """Close the next list: no change, one or two."""
        play = self.plays[session]
        block, changes = len(play.lists), []
        for _ in range(block % 3):
            self._number += 1
            changes.append(Change(number=self._number, key=KEYS[block % 4], down=self._number % 2 == 1))
        play.lists.append(tuple(changes))
        play.due.append(due)
        owners = (play.owner.worker,) if play.owner else ()
        for worker in dict.fromkeys((*owners, *play.holders)):
            self._send_from(block, session, worker)

    async def _show(self, play: Play, message: BlockDone) -> bool:
        """Show the next block if the ledger's row says that its sender owns the session."""
        owner = self.fleet.owner(message.session) or (play.owner if message.epoch == 0 else None)
        if owner is None or owner.epoch != message.epoch or message.epoch <= play.closed_epoch:
            return False
        if message.epoch and (not play.shown or play.shown[-1].epoch != message.epoch):
            await self.fleet.ask(MarkShown(session=message.session, epoch=message.epoch))
        shown = ShownBlock(
            block=message.block,
            epoch=message.epoch,
            frame_sha256=_recomputed(message),
            notes=message.notes,
            late_s=asyncio.get_running_loop().time() - play.due[message.block],
        )
        play.shown.append(shown)
        if message.state_digest:
            play.digests[message.block] = (message.frame_sha256, message.state_digest)
        play.next_block += 1
        taken = Acknowledge(session=message.session, epoch=message.epoch, block=message.block, server_life=1)
        for worker in dict.fromkeys((owner.worker, *play.holders)):
            self.fleet.send(worker, taken)
        play.progress.set()
        self.on_shown(message.session, shown)
        return True


def _recomputed(message: BlockDone) -> tuple[bytes, ...]:
    """Return the frames' digests, taken here over what has arrived."""
    count = len(message.frame_sha256)
    size = len(message.frames) // count
    parts = [message.frames[index * size : (index + 1) * size] for index in range(count)]
    digests = tuple(hashlib.sha256(part).digest() for part in parts)
    assert digests == message.frame_sha256
    return digests


def replayed(engine: Engine[Any], seed: int, lists: Sequence[tuple[Change, ...]]) -> list[tuple[bytes, ...]]:
    """Return the frames' digests of a session that was never moved and is given the same lists."""
    session = engine.open(seed)
    found = []
    for changes in lists:
        block = engine.step(session, tuple(KeyChange(number=c.number, key=c.key, down=c.down) for c in changes))
        found.append(tuple(hashlib.sha256(frame.tobytes()).digest() for frame in block.frames))
    return found


def every_change_used_once(play: Play) -> bool:
    """Whether the newest change used, as the frames' notes say, never falls and ends with the newest sent."""
    used = [note.number for shown in play.shown for note in shown.notes]
    sent = [change.number for changes in play.lists for change in changes]
    return used == sorted(used) and used[-1] <= max(sent)
