"""One attempt as one of its ends sees it: what it sends, and what it takes for its own."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from worldmove.move.host import Host
from worldmove.move.messages import CONTROLLER, AnyMoveMessage, Ended
from worldmove.move.sayable import sayable
from worldmove.move.times import Times
from worldmove.state.capture import Capture
from worldmove.state.digest import Pass
from worldmove.state.manifest import Manifest
from worldmove.state.proof import MoveProof, prove

Prove = Callable[[Capture, int, Pass | None], Coroutine[Any, Any, MoveProof]]
"""Digests a state before a block, by a pass that may have begun."""


class GaveUpError(Exception):
    """Ends an attempt at this end, before its point of no return. Never leaves a driver."""

    def __init__(self, event: Any, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.event = event
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """How a state came to its destination at the boundary, in bytes."""

    in_place_bytes: int = 0
    moved_bytes: int = 0
    pulled_bytes: int = 0
    followed_bytes: int = 0
    """What had been computed there, and was right."""
    plain: str = ""
    """Why all of it was pulled, though the strategy knows better; empty where it was not so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The names that every message of an attempt carries, and the other end."""

    host: Host
    session: str
    id: str
    epoch: int
    peer: str
    peer_incarnation: int
    times: Times

    def owns(self, message: AnyMoveMessage) -> bool:
        """Say whether a message is of this attempt, and from its other end or the controller.

        Of the controller no incarnation is asked: what it says is about an attempt that the ledger opened once.
        """
        if (message.session, message.attempt, message.epoch) != (self.session, self.id, self.epoch):
            return False
        if message.sender == CONTROLLER:
            return True
        return (message.sender, message.incarnation) == (self.peer, self.peer_incarnation)

    def gets_on(self) -> None:
        """Another piece of what takes long is done here."""
        self.host.gets_on(self.id)

    def send(self, to: str, kind: type[AnyMoveMessage], **fields: Any) -> None:
        """Post a message of this attempt."""
        self.host.post(
            kind(
                to=to,
                sender=self.host.worker,
                incarnation=self.host.incarnation,
                session=self.session,
                attempt=self.id,
                epoch=self.epoch,
                **sayable(fields),
            )
        )

    async def prove(
        self,
        captured: Callable[[], Capture],
        *,
        boundary: int,
        nonce: bytes,
        layout_digest: bytes,
        begun: Pass | None = None,
    ) -> MoveProof:
        """Digest every group of a state before block ``boundary``, away from the event loop.

        ``captured`` gives the state there: to resolve it may take reading it from a device. ``begun``: see ``prove``.
        """
        return await self.host.blocking(
            lambda: prove(
                captured(),
                self.host.digester,
                attempt=self.id,
                epoch=self.epoch,
                boundary=boundary,
                nonce=nonce,
                layout_digest=layout_digest,
                begun=begun,
                gets_on=self.gets_on,
            )
        )

    def end(
        self,
        side: str,
        outcome: str,
        reason: str,
        detail: str,
        *,
        manifest: Manifest | None = None,
        num_groups: int = 0,
        state_digest: str = "",
        brought: Brought | None = None,
    ) -> None:
        """Tell the controller what became of the attempt at this end. ``manifest``: of its state, if it has one."""
        told = brought or Brought()
        self.send(
            CONTROLLER,
            Ended,
            side=side,
            outcome=outcome,
            reason=reason,
            detail=detail[:2048],
            phases=self.times.phases(),
            clock=self.times.begun,
            num_bytes=manifest.num_bytes if manifest else 0,
            num_leaves=len(manifest.leaves) if manifest else 0,
            num_groups=num_groups,
            state_digest=state_digest,
            in_place_bytes=told.in_place_bytes,
            moved_bytes=told.moved_bytes,
            pulled_bytes=told.pulled_bytes,
            followed_bytes=told.followed_bytes,
            plain=told.plain[:2048],
        )
