"""Those who watch one session: any number, of whom the newest that asked has the controls."""

import asyncio
from collections.abc import Sequence

from worldmove.serve.play_messages import TakenOver, ToClient, encode
from worldmove.serve.player import CloseCode, Left, Player


class Audience:
    """The players of one session, in the order in which they came."""

    def __init__(self, max_watchers: int = 64) -> None:
        self._max_watchers = max_watchers
        self._players: list[Player] = []
        self._controlling: Player | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def watched(self) -> bool:
        """Whether anybody is here."""
        return bool(self._players)

    @property
    def num_watchers(self) -> int:
        """How many are here."""
        return len(self._players)

    @property
    def controlling(self) -> Player | None:
        """Who has the controls."""
        return self._controlling

    def join(self, player: Player, *, controls: bool) -> None:
        """Let a player in. One that controls takes the controls from whoever had them.

        Where the place is full, the oldest of those that only watch makes room: nobody can lock others out by staying.
        """
        if len(self._players) >= self._max_watchers:
            self._make_room()
        self._players.append(player)
        self._empty.clear()
        if not controls:
            return
        if self._controlling is not None:
            self._controlling.say(TakenOver())
        self._controlling = player

    def _make_room(self) -> None:
        oldest = next((player for player in self._players if player is not self._controlling), self._players[0])
        self._players.remove(oldest)
        oldest.drop(CloseCode.TOO_MANY, "too many watch this world; newer ones have come")

    def leave(self, player: Player) -> None:
        """Let a player go; the controls are nobody's then if they were theirs."""
        if player in self._players:
            self._players.remove(player)
        if self._controlling is player:
            self._controlling = None
        if not self._players:
            self._empty.set()

    async def emptied(self) -> None:
        """Return once nobody is here."""
        await self._empty.wait()

    def say(self, message: ToClient) -> None:
        """Queue a JSON message for everybody."""
        text = encode(message)
        for player in tuple(self._players):
            player.put(text)

    def show(self, frames: Sequence[bytes], left: Left, *, block: int | None = None) -> None:
        """Queue frames for everybody who did not come with their ``block``; None: that of no session.

        ``left`` is called when they have gone to whom the session is played for. That is who controls, else who came
        first. Where that is nobody, or one who has them, they have gone at once.
        """
        lacking = [player for player in self._players if block is None or player.had_block < block]
        first = self._controlling or (self._players[0] if self._players else None)
        first = first if first in lacking else None
        for player in lacking:
            for frame in frames[:-1]:
                player.put(frame)
            player.put(frames[-1], left if player is first else None)
        if first is None:
            left()

    def end(self, code: CloseCode, reason: str) -> None:
        """Close every connection once what is queued for it has been sent."""
        for player in tuple(self._players):
            player.finish(code, reason)
