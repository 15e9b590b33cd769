"""A source's passes over what it froze: only where two that are equal enclose the reading has nobody written meanwhile.

The first costs nothing beside the transfer; the second is ``move.second_pass``, or, where nothing is read, comes right
after the first. One more is taken of a state that was resolved anew, where it was known before it was frozen.
"""

from collections.abc import Sequence
from dataclasses import replace

from worldmove.move.attempt import Attempt, GaveUpError
from worldmove.move.inquest import Inquest
from worldmove.move.protocol import SourceEvent
from worldmove.move.second_pass import SecondPass
from worldmove.move.source_copy import Frozen, SourceCopy
from worldmove.state.capture import Capture
from worldmove.state.device_arena import DeviceArena
from worldmove.state.device_digests import prepare_key
from worldmove.state.digest import Pass
from worldmove.state.proof import MoveProof


class Passes:
    """One attempt's, under its nonce."""

    def __init__(self, *, attempt: Attempt, copy: SourceCopy, nonce: bytes, layout_digest: bytes) -> None:
        self._attempt = attempt
        self._copy = copy
        self._nonce = nonce
        self._layout_digest = layout_digest

    async def prepare(self) -> None:
        """Make ready for them while the session is still played."""
        arena = self._copy.arena
        if isinstance(arena, DeviceArena):
            await self._attempt.host.blocking(lambda: prepare_key(arena.kit, self._nonce, self._layout_digest))

    def begin(self, capture: Capture) -> Pass:
        """Begin the first."""
        return Pass(capture, self._attempt.host.digester, self._nonce, self._layout_digest)

    async def first(self, frozen: Frozen) -> MoveProof:
        """Take the first, or end it where it has begun."""
        return await self._taken(frozen, "digest", frozen.first)

    async def again(self, frozen: Frozen) -> MoveProof:
        """Take another, now."""
        return await self._taken(frozen, "second_digest")

    def once_read(self, frozen: Frozen) -> SecondPass:
        """Return another one of the memory after all of it was read."""
        return SecondPass(
            attempt=self._attempt,
            frozen=frozen,
            arena=self._copy.arena,
            nonce=self._nonce,
            layout_digest=self._layout_digest,
        )

    def check(self, frozen: Frozen, first: MoveProof, second: MoveProof) -> None:
        """Raise GaveUpError where two of them differ."""
        differences = first.compare(second, frozen.capture.manifest)
        if differences:
            paths = dict.fromkeys(path for difference in differences for path in difference.paths)
            detail = said_of_writes(tuple(paths) or (str(differences[0]),))
            raise GaveUpError(SourceEvent.PASSES_DIFFER, "engine_wrote", detail)

    async def check_as_known(self, frozen: Frozen, first: MoveProof, found: Capture) -> None:
        """Raise GaveUpError where what was told of the frozen state, as it was known, is not what it is."""
        if found is frozen.capture:
            return
        said = frozen.capture.manifest.difference(found.manifest)
        if said:
            what = f"the engine changed its state after its block boundary: {said[0]}"
            raise GaveUpError(SourceEvent.PASSES_DIFFER, "engine_wrote", what)
        moved = replace(frozen, capture=found)  # some of it lies elsewhere, and may hold something else
        self.check(frozen, first, await self.again(moved))

    def inquest(self, frozen: Frozen, proof: MoveProof) -> Inquest:
        """Return one into what was proven."""
        return Inquest(
            attempt=self._attempt, frozen=frozen, proof=proof, nonce=self._nonce, layout_digest=self._layout_digest
        )

    async def _taken(self, frozen: Frozen, phase: str, begun: Pass | None = None) -> MoveProof:
        with self._attempt.times.phase(phase):
            return await self._attempt.prove(
                lambda: frozen.capture,
                boundary=frozen.block,
                nonce=self._nonce,
                layout_digest=self._layout_digest,
                begun=begun,
            )


def said_of_writes(leaves: Sequence[str]) -> str:
    """Say that an engine has written to leaves when they were frozen."""
    return f"the engine wrote after its block boundary: {', '.join(leaves)}"
