"""Who plays a world: the newest connection that asked for the controls, its keys, its wish to go on without any."""

import asyncio
from collections.abc import Callable

from worldmove.engine.base import KeyChange
from worldmove.serve.audience import Audience
from worldmove.serve.client_messages import Keys
from worldmove.serve.play_messages import Error, KeysTaken
from worldmove.serve.player import CloseCode, Player
from worldmove.serve.sequencer import Sequencer, Taken


class Controls:
    """One session's. ``on_change`` is called whenever something may go on, or rest, for what a player did."""

    def __init__(
        self, *, audience: Audience, sequencer: Sequencer, keys: tuple[str, ...], on_change: Callable[[], None]
    ) -> None:
        """``keys``: those that the world has."""
        self.kept = False
        """Whether the world is to go on although no key is down."""
        self._audience = audience
        self._sequencer = sequencer
        self._keys = keys
        self._on_change = on_change

    def join(self, player: Player, *, controls: bool) -> None:
        """Let a player watch, and control if asked. Who controlled before lets go of every key, and of its wish."""
        if controls and self._audience.controlling is not None:
            self._let_go()
        self._audience.join(player, controls=controls)
        self._on_change()

    def leave(self, player: Player) -> None:
        """A player is gone; if they controlled, what was down is released and nothing keeps the world going."""
        if self._audience.controlling is player:
            self._let_go()
        self._audience.leave(player)
        self._on_change()

    def release_if_silent(self, silent_s: float) -> None:
        """Let go of what a player holds that has said nothing for so long: its connection may be dead."""
        player, now = self._audience.controlling, asyncio.get_running_loop().time()
        if player is not None and player.heard_at is not None and now - player.heard_at >= silent_s:
            self._let_go()

    def _let_go(self) -> None:
        """Who controlled does so no more, or may not: no key is down for them, and nothing keeps the world going."""
        self._sequencer.release()
        self.kept = False

    def press(self, player: Player, keys: Keys) -> None:
        """Take a player's key changes. One that breaks the numbering, or sends too many, is dropped."""
        if player is not self._audience.controlling:
            player.say(Error(code="watching_only", message="Another connection has the controls."))
            return
        self._name_unknown(player, keys)
        for number, key, down in keys.changes:
            if key not in self._keys:
                continue
            taken = self._sequencer.take(KeyChange(number=number, key=key, down=down))
            if taken in (Taken.FULL, Taken.TOO_FAR):
                player.drop(CloseCode.BAD_MESSAGE, f"key change {number} was not taken: {taken.value}")
                return
        player.say(KeysTaken(number=self._sequencer.next_number - 1))
        self._on_change()

    def keep(self, player: Player, *, keep: bool) -> None:
        """Go on without keys, or stop doing so. Only who controls may say so."""
        if player is self._audience.controlling:
            self.kept = keep
            self._on_change()

    def _name_unknown(self, player: Player, keys: Keys) -> None:
        """Name the first key that there is not: one error for a message, or a flood would fill the player's queue."""
        unknown = next((key for _, key, _ in keys.changes if key not in self._keys), None)
        if unknown is not None:
            known = ", ".join(self._keys)
            player.say(Error(code="unknown_key", message=f"There is no key {unknown!r} here; use {known}."))
