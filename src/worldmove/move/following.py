"""The destination's half of a followed component: compute a part of the state here instead of pulling it.

    fetch      a proven copy of that part before one block               beside the rounds
    install    into memory of its own
    step       block by block on what the source's engine has handed on, as spare work
    lay        once it stands before the block of the freeze, copy it to where the state has it in the slot

What lies there then is found by the rows' digests like anything that is held, and verified under the move's proof like
anything that is installed: a component that came out otherwise costs a pull. So does one that is late, or for which
something was lost: whatever goes wrong here, the move goes on without it.
"""

import asyncio
from contextlib import suppress

from worldmove.errors import ManifestError, MoveRefused, WorldMoveError
from worldmove.move.attempt import Attempt, GaveUpError
from worldmove.move.fetching import Fetching, FetchingConfig
from worldmove.move.messages import Component, Fetched, Handed, Offer
from worldmove.move.proof_fields import said_by
from worldmove.move.reception import Reception
from worldmove.move.shadow_slot import ComponentSlot
from worldmove.state.manifest import Manifest
from worldmove.state.placement import Placement, check_placement

MOST_WAITING_BYTES = 64 << 20
"""Of what blocks have handed on and was not stepped yet; with more it never catches up."""
LEAST_BYTES = 4096
"""Each counts for so much at least: what is kept of it beside its bytes, and looked through."""
GAP = 2
"""So many later blocks' come where one is lost, and not late."""
MOST_LATE = 1
"""So many blocks it may be behind where it is waited for: one may be in hand."""
LEAST_WAIT_S = 0.005
AT_REST_S = 0.05
"""How long the last step is waited for at least: in a pause, and where no player waits."""


class Following:
    """One attempt's."""

    def __init__(self, *, attempt: Attempt, offer: Offer, reception: Reception, fetching: FetchingConfig) -> None:
        self.is_over = False
        """Whether nothing is to be hoped for any more: what it was to compute is pulled."""
        self.next_block: int | None = None
        """The next one of what is installed; None before that."""
        self._attempt = attempt
        self._offer = offer
        self._slot = reception.slot
        self._transport = reception.transport
        self._layout_digest = reception.layout.digest
        self._fetching = fetching
        self._base: asyncio.Future[Component] = asyncio.get_running_loop().create_future()
        self._waiting: dict[int, bytes] = {}
        self._waiting_bytes = 0
        self._component: ComponentSlot | None = None
        self._is_fetched = False
        self._worth_s = 0.0
        """How long it is worth waiting for: as long as it took to fetch it once."""
        self._turn = asyncio.Event()
        """Set when something was handed on, or stepped, or is over."""

    # what the driver's filter lets through

    def take(self, message: Component | Handed) -> None:
        if isinstance(message, Handed):
            self._take_handed(message)
        elif not self._base.done():
            self._base.set_result(message)
        elif self._is_fetched:
            self._attempt.send(self._attempt.peer, Fetched)

    def _take_handed(self, message: Handed) -> None:
        if self.is_over or message.block in self._waiting or message.block < (self.next_block or 0):
            return
        self._waiting[message.block] = message.data
        self._waiting_bytes += max(len(message.data), LEAST_BYTES)
        if self._waiting_bytes > MOST_WAITING_BYTES:
            self._end("it did not catch up")
        self._turn.set()

    async def run(self) -> None:
        """Fetch it and step it, until somebody ends this. Whatever goes wrong is no reason to end the move."""
        try:
            await self._install()
            while not self.is_over:
                await self._step()
        except MoveRefused as error:
            self._end(error.detail)
        except (GaveUpError, WorldMoveError) as error:
            self._end(str(error))

    async def drawn_level(self, within_s: float) -> bool:
        """Return once it has stepped all that was handed on by now; or it is over, or so is the time: False then."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not self.is_over and (self.next_block is None or self._waiting):
                    await self._turned()
                return not self.is_over
        return False

    async def lay(self, whole: Manifest, placement: Placement) -> tuple[int, ...]:
        """Copy it to where the whole state has it in the slot. Return which of that state's storages it has filled.

        However it ends, some of it may lie there then.
        """
        component = self._component
        if component is None:
            return ()
        try:
            return await component.lay(whole, placement)
        except WorldMoveError as error:
            self._end(str(error))
            return ()

    async def stands_before(self, block: int, *, is_awaited: bool) -> bool:
        """Say whether it does; it may be in the last step to there, and that is waited for.

        ``is_awaited``: a player waits.
        """
        component = self._component
        if component is None or self.is_over or self.next_block is None:
            return False
        if not block - MOST_LATE <= self.next_block <= block:
            return False
        if is_awaited and self.next_block < block:
            component.hurry()
        with suppress(TimeoutError):
            async with asyncio.timeout(max(self._worth_s, LEAST_WAIT_S if is_awaited else AT_REST_S)):
                while not self.is_over and self.next_block < block:
                    await self._turned()
        return not self.is_over and self.next_block == block

    def halt(self) -> None:
        """Begin no further step, and keep nothing for one."""
        self.is_over = True
        self._waiting.clear()
        self._turn.set()

    async def free(self) -> None:
        """Give its memory back, once ``run`` has ended. Idempotent."""
        self.halt()
        component, self._component = self._component, None
        if component is not None:
            await self._attempt.host.blocking(component.free)

    async def _install(self) -> None:
        base = await self._base
        if not base.manifest:
            raise MoveRefused("no_component", base.detail)
        with self._attempt.times.phase("component"):
            manifest = Manifest.from_bytes(base.manifest)
            check_placement(manifest, base.placement, self._slot.arena.size)  # before memory is asked for it
            self._component = await self._slot.beside(_room(manifest, base.placement))
            pull = Fetching(
                attempt=self._attempt,
                transport=self._transport,
                ticket=base.ticket,
                arena=self._component.arena,
                manifest=manifest,
                placement=base.placement,
                config=self._fetching,
            )
            begun = self._attempt.host.clock()
            await pull.run(said_by(base), self._offer.nonce, self._layout_digest)
            self._worth_s = self._attempt.host.clock() - begun
            self._is_fetched = True
            self._attempt.send(self._attempt.peer, Fetched)
            await self._component.install(manifest, base.placement)
        self.next_block = base.block
        for block in [block for block in self._waiting if block < base.block]:
            self._forget(block)
        self._turn.set()

    async def _step(self) -> None:
        block, component = self.next_block, self._component
        if block is None or component is None:
            raise ManifestError("nothing is installed of it")
        data = self._waiting.get(block)
        if data is None:
            if max(self._waiting, default=block) >= block + GAP:
                raise ManifestError(f"what block {block} has handed on did not come")
            await self._turned()
            return
        await component.step(data)
        self._forget(block)
        self.next_block = block + 1
        self._turn.set()

    def _forget(self, block: int) -> None:
        self._waiting_bytes -= max(len(self._waiting.pop(block, b"")), LEAST_BYTES)

    async def _turned(self) -> None:
        self._turn.clear()
        await self._turn.wait()

    def _end(self, why: str) -> None:
        if not self.is_over:
            self._attempt.host.log("not_followed", session=self._attempt.session, attempt=self._attempt.id, why=why)
        self.halt()


def _room(manifest: Manifest, placement: Placement) -> int:
    """Return how large an arena has to be for what lies so."""
    ends = [at + record.num_bytes for at, record in zip(placement, manifest.storages, strict=True)]
    return max(ends, default=0)
