"""A minimal gateway: it closes lists at a period, shows the next block of the ledger's owner, and checks frames."""

import asyncio
import hashlib
from dataclasses import dataclass, field

from worldmove.move.ledger_messages import MarkShown
from worldmove.worker.messages import Acknowledge, BlockDone, Change, CheckDone, Inputs

KEYS = ("up", "left", "down", "right")


@dataclass
class Play:
    """One session, as it was played."""

    owner: object = None
    holders: tuple = ()
    next_block: int = 0
    lists: dict = field(default_factory=dict)
    shown: list = field(default_factory=list)
    """(block, epoch, frame digests, notes, how late) in the order in which they were shown."""
    checks: dict = field(default_factory=dict)
    digests: dict = field(default_factory=dict)
    due: dict = field(default_factory=dict)
    early: dict = field(default_factory=dict)
    closed_epoch: int = -1
    lost: str = ""
    events: list = field(default_factory=list)


class TestGateway:
    """Plays every session that is opened, at one period."""

    __test__ = False

    def __init__(self, controller, period_s):
        self.controller, self.period_s = controller, period_s
        self.plays, self.tasks, self.number = {}, [], 0
        self.on_shown = lambda session, block, epoch: None

    # what the controller asks

    def take(self, worker, message):
        play = self.plays.setdefault(message.session, Play())
        if isinstance(message, BlockDone):
            play.early[message.block] = message
            self.tasks.append(asyncio.create_task(self.show(message.session, play, message)))
        elif isinstance(message, CheckDone):
            play.checks[message.block] = (message.frame_sha256, message.state_digest)

    def owned(self, session, owner):
        play = self.plays.setdefault(session, Play())
        play.owner = owner
        for block in sorted(play.lists):
            if block >= play.next_block:
                self.send_list(owner.worker, session, block)

    def holders(self, session, workers):
        play = self.plays.setdefault(session, Play())
        for worker in workers:
            if worker not in play.holders:
                for block in sorted(play.lists):
                    if block >= play.next_block - 1:
                        self.send_list(worker, session, block)
        play.holders = tuple(workers)

    def close_epoch(self, session, epoch):
        self.plays[session].closed_epoch = epoch

    def next_block(self, session):
        return self.plays[session].next_block

    def log_reaches(self, session):
        return len(self.plays[session].lists)

    def horizon_s(self, session):
        return float("inf")

    def moving(self, session, event, fields):
        self.plays[session].events.append((event, fields))

    def lost(self, session, why):
        self.plays[session].lost = why

    # play

    def send_list(self, worker, session, block):
        changes = self.plays[session].lists[block]
        self.controller.send(worker, Inputs(session=session, block=block, changes=changes))

    def close_list(self, session, due):
        play = self.plays[session]
        block = len(play.lists)
        changes = []
        for _ in range(block % 3):  # no change, one, two: down and up in turn
            self.number += 1
            changes.append(Change(number=self.number, key=KEYS[block % 4], down=self.number % 2 == 1))
        play.lists[block], play.due[block] = tuple(changes), due
        for worker in dict.fromkeys((play.owner.worker, *play.holders)):
            self.send_list(worker, session, block)

    async def play(self, session, num_blocks):
        """Close a list each period, and return when that many more blocks were shown."""
        loop = asyncio.get_running_loop()
        play = self.plays[session]
        anchor, begin = loop.time(), len(play.lists)
        for number in range(num_blocks):
            await asyncio.sleep(anchor + number * self.period_s - loop.time())
            self.close_list(session, anchor + (number + 1) * self.period_s)
        while play.next_block < begin + num_blocks and not play.lost:
            await asyncio.sleep(0.01)

    async def show(self, session, play, message):
        """Show a block if it is the next one and its sender owns the session: the ledger's row decides."""
        owner = self.controller.owner(session)
        wrong = owner is None or owner.epoch != message.epoch or message.epoch <= play.closed_epoch
        if wrong or message.block != play.next_block:
            return
        if not play.shown or play.shown[-1][1] != message.epoch:
            await self.controller.ask(MarkShown(session=session, epoch=message.epoch))
            if message.block != play.next_block:
                return
        late = asyncio.get_running_loop().time() - play.due[message.block]
        size = len(message.frames) // len(message.frame_sha256)
        parts = [message.frames[i * size : (i + 1) * size] for i in range(len(message.frame_sha256))]
        assert tuple(hashlib.sha256(part).digest() for part in parts) == message.frame_sha256
        play.shown.append((message.block, message.epoch, message.frame_sha256, message.notes, late))
        if message.state_digest:
            play.digests[message.block] = (message.frame_sha256, message.state_digest)
        play.next_block += 1
        acknowledge = Acknowledge(session=session, epoch=message.epoch, block=message.block, server_life=1)
        for worker in dict.fromkeys((owner.worker, *play.holders)):
            self.controller.send(worker, acknowledge)
        self.on_shown(session, message.block, message.epoch)
        following = play.early.get(play.next_block)
        if following is not None:
            await self.show(session, play, following)


def replayed(engine, seed, lists):
    """Return the frames' digests of an unmoved session that is given the same lists."""
    from worldmove.engine.base import KeyChange

    session = engine.open(seed)
    found = []
    for block in range(len(lists)):
        changes = tuple(KeyChange(number=c.number, key=c.key, down=c.down) for c in lists[block])
        frames = engine.step(session, changes).frames
        found.append(tuple(hashlib.sha256(frame.tobytes()).digest() for frame in frames))
    return found
