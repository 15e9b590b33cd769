"""A component of a world that can be followed: a cache that every block makes anew, of the little that it hands on.

It is as awkward as a real one: it is written in place and bound anew by turns, and has a counter of its own. A world's
pictures say everything that its decoder was ever given.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tests.simulation.engine import CounterEngine, Stepped, World, decode
from tests.simulation.trace import Trace
from tests.simulation.weather import Weather
from worldmove.engine.base import Block, KeyChange

COMPONENT = ("cache", "drawn")


class FollowedEngine(CounterEngine):
    """An engine whose worlds have a decoder, and what may be wrong with that: none of it may be seen by a player."""

    leaves = (*CounterEngine.leaves, *COMPONENT)
    decodes = True

    def __init__(self, on_step: Stepped, *, weather: Weather, trace: Trace, forgets: str = "") -> None:
        super().__init__(on_step, forgets)
        self._weather = weather
        self._trace = trace

    @property
    def followed(self) -> tuple[str, ...]:
        return COMPONENT

    def step_streaming(self, session: World, changes: Sequence[KeyChange], final: Callable[[str], None]) -> Block:
        return self.step_handing(session, changes, final, lambda handed: None)

    def step_handing(
        self,
        session: World,
        changes: Sequence[KeyChange],
        final: Callable[[str], None],
        hand: Callable[[bytes], None],
    ) -> Block:
        """Step a block. What it should hand on may be forgotten, and something else be handed on."""
        block = self.step(session, changes)
        latents = session.chain.tobytes()
        if not self._weather.strikes("hand_lost"):
            hand(latents[::-1] if self._weather.strikes("hand_false") else latents)
        for leaf in ("window", "chain"):
            final(leaf)
        return block

    def follow(self, part: dict[str, Any], handed: bytes) -> None:
        """Step a decoder alone. It may fail, or come out otherwise than it does in its session."""
        if self._weather.strikes("follow_fails"):
            raise RuntimeError("a decoder fails")
        part["cache"] = decode(part["cache"], part["drawn"], handed)
        part["drawn"] += 1
        self._trace.count("blocks followed")
        if dice := self._weather.strikes("follow_lies"):
            part["cache"].reshape(-1)[dice.below(part["cache"].size)] ^= 1 << dice.below(8)
