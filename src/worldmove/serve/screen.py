"""Puts a session's blocks before those who watch: each block once, in order, and from its owner only.

Rules:

1. A block is judged by the ledger's row as it is at that moment, again after every wait (``serve.show``).
2. ``shown`` is recorded, durably, before the first frame of an epoch leaves.
3. A block is acknowledged when its last frame has been handed to the network for whom the world is played,
   or nobody watches. Until then its owner, and the retired copy before it, can show it again.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import structlog

from worldmove.engine.base import EngineSpec
from worldmove.errors import LedgerError
from worldmove.fleet.ports import Fleet
from worldmove.move.ledger_messages import Answer, Done, MarkShown
from worldmove.serve.audience import Audience
from worldmove.serve.frames import FrameHeader, Kind, action_index, pack
from worldmove.serve.receipts import Receipts
from worldmove.serve.recent import Recent
from worldmove.serve.show import Fence, Verdict, judge, lateness_s
from worldmove.serve.tempo import Tempo
from worldmove.worker.messages import BlockDone

ASK_AGAIN_S = 0.05
WALK_STEPS = 10
MAX_MISSED = 32
"""Frames that are sent at once to a client that has come back: half of what may wait for it."""

_OF_THE_OWNER = (Verdict.SHOW, Verdict.RECORD_FIRST, Verdict.CLOSED_EPOCH)
"""Verdicts on what comes from whom the row names."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A block that was just shown. ``late_s`` is None where it was not due."""

    block: BlockDone
    late_s: float | None


class Screen:
    """What of one session has been shown, and what may be next."""

    def __init__(
        self,
        session: str,
        *,
        spec: EngineSpec,
        server_life: int,
        receipts: Receipts,
        fleet: Fleet,
        audience: Audience,
        tempo: Tempo,
        acknowledge: Callable[[int, int], None],
        first_block: int = 0,
    ) -> None:
        self._session = session
        self._spec = spec
        self._server_life = server_life
        self._receipts = receipts
        self.forks: tuple[int, ...] = ()
        """Where deaths have made the world go on though a client may have had later blocks."""
        self._fleet = fleet
        self._audience = audience
        self._tempo = tempo
        self._acknowledge = acknowledge
        self._next_block = first_block
        self._shown_before = 0
        self._is_resumed = False
        self._closed_epoch: int | None = None
        self._shown_epoch: int | None = None
        self._recent = Recent()
        self.walked: deque[str] = deque(maxlen=WALK_STEPS)
        """The newest actions that were applied, oldest first, without those that stay."""

    @property
    def next_block(self) -> int:
        """The next block to be shown."""
        return self._next_block

    @property
    def last(self) -> BlockDone | None:
        """The newest block shown."""
        return self._recent.newest

    def resume(self, next_block: int, recalled: Iterable[BlockDone], *, shown_before: int) -> None:
        """Begin with this block: an earlier server has shown those before it, and these among them are here.

        It may have shown more, all before ``shown_before``, of which their owner has not heard that they have left.
        """
        self._next_block, self._shown_before = next_block, shown_before
        self._is_resumed = True
        for block in recalled:
            self.recall(block)

    def recall(self, block: BlockDone) -> None:
        """Know of a block that an earlier server has shown; one from the next block on is shown anew when it comes."""
        if (why := malformed(block, self._spec)) is not None:
            log.warning("block not recalled", session=self._session, block=block.block, why=why)
        elif block.block < self._next_block:
            self._recent.put(block)

    def missed(self, received: int | None) -> list[bytes]:
        """Return the frames that a client lacks which has every block up to ``received``, as they travel.

        None where the block before the next one is not here: nothing is left out after a connection's first frame.
        """
        if self.last is None or self.last.block != self._next_block - 1:
            return []
        most = MAX_MISSED // self._spec.frames_per_block
        return [message for block in self._recent.after(received, most) for message in self.messages(block)]

    def had(self, received: int | None) -> int:
        """Return the newest block from the next one on that a client has which says ``received``; -1 for none."""
        return received if received is not None and self._next_block <= received < self._shown_before else -1

    @property
    def shown_epoch(self) -> int | None:
        """The newest epoch of which a block was shown."""
        return None if self.last is None else self.last.epoch

    def close_epoch(self, epoch: int) -> None:
        """Show nothing of this epoch or an older one from now on."""
        self._closed_epoch = max(epoch, self._closed_epoch or 0)

    def open_epoch(self, epoch: int) -> None:
        """Show this epoch's blocks after all."""
        if self._closed_epoch == epoch:
            self._closed_epoch = epoch - 1

    async def take(self, worker: str, block: BlockDone, arrived: float) -> Shown | Verdict:
        """Show a block, or say why not. ``arrived``: when it came, by the loop's clock."""
        verdict = await self._admitted(worker, block)
        if verdict is Verdict.REPEATED:
            self._acknowledge(block.epoch, block.block)
        elif verdict is Verdict.MALFORMED:
            self._disown(worker, block)
        if verdict is not Verdict.SHOW:
            return verdict
        self._next_block = block.block + 1
        self._recent.put(block)
        self.walked.extend(note.action for note in block.notes if note.action in self._spec.keys)
        left = partial(self._acknowledge, block.epoch, block.block)
        self._audience.show(self.messages(block), left, block=block.block)
        late_s = lateness_s(arrived, self._tempo.due(block.block))
        return Shown(block=block, late_s=late_s)

    def messages(self, block: BlockDone) -> list[bytes]:
        """Return a block's frames as they travel, to be painted by its due time."""
        now = asyncio.get_running_loop().time()
        due = self._tempo.due(block.block)
        wait_s = 0.0 if due is None else due - now
        receipt = self._receipts.of(self._session, block.block, len(self.forks))
        return pack_block(
            block, self._spec, kind=Kind.LIVE, server_life=self._server_life, receipt=receipt, wait_s=wait_s
        )

    async def _admitted(self, worker: str, block: BlockDone) -> Verdict:
        """Judge a block, having its epoch recorded as shown where that is what it lacks."""
        while True:
            fence = Fence(next_block=self._next_block, closed_epoch=self._closed_epoch, shown_epoch=self._shown_epoch)
            row = self._fleet.owner(self._session)
            verdict = judge(fence, row, worker=worker, epoch=block.epoch, block=block.block)
            if verdict in _OF_THE_OWNER and malformed(block, self._spec) is not None:
                return Verdict.MALFORMED
            if verdict is not Verdict.RECORD_FIRST:
                return verdict
            await self._record_shown(block.epoch)

    def _disown(self, worker: str, block: BlockDone) -> None:
        """Say it, and have this owner replaced: it would wait for ever for what can never be shown.

        Sent again, it is said again: the word may have been lost with a link. A world that an earlier server has shown
        stands, and is kept: it is this server that has another engine, and one with the right one can go on with it.
        """
        why = malformed(block, self._spec) or ""
        log.warning("block malformed", session=self._session, worker=worker, epoch=block.epoch, why=why)
        if not self._is_resumed:
            self._fleet.malformed(self._session, block.epoch, why)

    async def _record_shown(self, epoch: int) -> None:
        answer = await self._ask(MarkShown(session=self._session, epoch=epoch))
        if isinstance(answer, Done) and answer.epoch == epoch:
            self._shown_epoch = epoch
            log.info("shown", session=self._session, epoch=epoch, block=self._next_block)
        else:
            # Silence, or an owner that changed meanwhile: the row says which, at the next look.
            await asyncio.sleep(ASK_AGAIN_S)

    async def _ask(self, operation: MarkShown) -> Answer | None:
        """Put it to the ledger. One that cannot answer is silent: frames wait for it, and nothing else does."""
        try:
            return await self._fleet.ask(operation)
        except LedgerError as error:
            log.warning("the ledger does not answer", session=self._session, why=str(error))
            return None


def malformed(block: BlockDone, spec: EngineSpec) -> str | None:
    """Say in which way a block has not the frames that the engine of this server has; None where it has them."""
    num_bytes, num_frames = spec.frames_per_block * spec.height * spec.width * 3, spec.frames_per_block
    if len(block.frames) != num_bytes:
        return f"its block {block.block} has {len(block.frames):,} bytes of pictures, not the engine's {num_bytes:,}"
    if (len(block.notes), len(block.frame_sha256)) != (num_frames, num_frames):
        found = f"{len(block.notes)} notes and {len(block.frame_sha256)} digests"
        return f"its block {block.block} has {found} of the engine's {num_frames} frames"
    return None


def pack_block(
    block: BlockDone, spec: EngineSpec, *, kind: Kind, server_life: int, receipt: bytes, wait_s: float
) -> list[bytes]:
    """Return a block's frames as messages: the first is to be painted in ``wait_s``, the others a period apart."""
    pixels = memoryview(block.frames)
    size = spec.width * spec.height * 3
    return [
        pack(
            FrameHeader(
                kind=kind,
                action=action_index(note.action, spec.keys),
                index=index,
                width=spec.width,
                height=spec.height,
                show_after_ms=max(0, round(1000 * (wait_s + index / spec.frames_per_s))),
                epoch=block.epoch,
                block=block.block,
                frame=block.block * spec.frames_per_block + index,
                number=note.number,
                pose=(note.y, note.x),
                server_life=server_life,
                sha256=sha256,
                receipt=receipt,
            ),
            pixels[index * size : (index + 1) * size],
        )
        for index, (note, sha256) in enumerate(zip(block.notes, block.frame_sha256, strict=True))
    ]
