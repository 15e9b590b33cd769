"""The source's second pass over what it froze: after the destination has read all of it, by whose order is known first.

    the destination's device says so in the slot's gate    the pass is ordered behind that on this device, beforehand,
                                                           and behind the first pass; over what is brought early as
                                                           soon as that was read
    the destination says Landed                             this host opens the gate, or there is none and it begins now

So between the last byte read and the pass nobody's thread has to wake up, where the path has a gate. However the pass
ends, the gate is open then: no work stays behind on the device because of an end that has died, or lies. Nor does it
for long: where the gate is given up, what was digested behind it counts for nothing, and the pass is taken at the word.
"""

import asyncio

from worldmove.move.attempt import Attempt
from worldmove.move.source_copy import Frozen
from worldmove.state.arena import AnyArena
from worldmove.state.capture import Capture
from worldmove.state.device_arena import DeviceArena
from worldmove.state.digest import Pass
from worldmove.state.gate import Latch, number_of
from worldmove.state.proof import MoveProof

SHUT_S = 0.05
"""For so long a gate may be shut: some calls of others wait for all work of a device. Then the word counts."""
LOOK_S = 0.001
"""For so long at a time a thread looks at the gate: others have work for it too."""


class SecondPass:
    """One of them. ``order`` and ``run``, once each; and ``let_go``, however it ends."""

    def __init__(
        self, *, attempt: Attempt, frozen: Frozen, arena: AnyArena, nonce: bytes, layout_digest: bytes
    ) -> None:
        self._attempt = attempt
        self._frozen = frozen
        self._nonce = nonce
        self._layout_digest = layout_digest
        offered, captured = frozen.offered, frozen.capture
        is_parted = offered is not None and offered.keeps_early(captured.manifest, frozen.placement, frozen.moved)
        self._latch = latch_of(arena, captured, nonce, is_parted=is_parted)
        self._begun: Pass | None = None
        self._over: asyncio.TimerHandle | None = None

    async def order(self) -> None:
        """Ask the device for it, behind the gate and the first pass, which has begun. Nothing, where no gate is."""
        latch = self._latch
        if latch is not None and self._begun is None:
            self._over = asyncio.get_running_loop().call_later(SHUT_S, latch.give_up)
            self._begun = await self._attempt.host.blocking(lambda: self._behind(latch))

    async def run(self, landed: asyncio.Event) -> MoveProof:
        """Return its digests: of the memory after all was read, by the device's order or the word ``landed``."""
        await self.order()
        latch = self._latch
        if latch is not None:
            await self._opened(latch, landed)
            latch.open()  # for its other word, too: nothing is left to be read
            if not latch.was_given_up:
                return await self._digested(self._begun)
        await landed.wait()  # what was digested meanwhile counts for nothing
        return await self._digested(None)

    def let_go(self) -> None:
        """Leave nothing behind on the device that waits. Idempotent."""
        if self._over is not None:
            self._over.cancel()
        if self._latch is not None:
            self._latch.open()

    def _behind(self, latch: Latch) -> Pass:
        return Pass(self._frozen.capture, self._attempt.host.digester, self._nonce, self._layout_digest, latch)

    async def _opened(self, latch: Latch, landed: asyncio.Event) -> None:
        """Return when the gate is open: by the other end's device, or by this host at the word of the landing."""
        with self._attempt.times.phase("ordered"):
            while not latch.is_open():
                if landed.is_set():
                    latch.open()
                    return
                await self._attempt.host.blocking(lambda: latch.wait(LOOK_S))
                await asyncio.sleep(0)  # for who hears the word

    async def _digested(self, begun: Pass | None) -> MoveProof:
        with self._attempt.times.phase("second_digest"):
            return await self._attempt.prove(
                lambda: self._frozen.capture,
                boundary=self._frozen.block,
                nonce=self._nonce,
                layout_digest=self._layout_digest,
                begun=begun,
            )


def latch_of(arena: AnyArena, capture: Capture, nonce: bytes, *, is_parted: bool) -> Latch | None:
    """Return a slot's gate in an attempt, where a path has asked for one and a device has something to read.

    ``is_parted``: what is brought early counts by itself; all of it was in its place then, and is there still.
    """
    if not isinstance(arena, DeviceArena) or arena.gate is None:
        return None
    has_work = capture.kit is not None and capture.manifest.on_device
    return arena.gate.for_number(number_of(nonce), is_parted=is_parted) if has_work else None
