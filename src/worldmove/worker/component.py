"""A part of a session that is to come, in memory of its own, stepped by itself (``move.shadow_slot.ComponentSlot``).

Its steps are spare work: none makes a player's block late. Its own session's shadow holds others' spare work back, and
not this, which the same player waits for; whoever else waits for a session here is waited for.
"""

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from worldmove.engine.base import Follows, Tree
from worldmove.errors import MoveRefused, StateRefused
from worldmove.state.arena import AnyArena, new_arena
from worldmove.state.capture import Capture, capture
from worldmove.state.kits import kit_of
from worldmove.state.manifest import Manifest
from worldmove.state.part import lay, twins
from worldmove.state.placement import Placement
from worldmove.worker.foreign import engine_asked
from worldmove.worker.installing import tree_in
from worldmove.worker.leeway import MARGIN
from worldmove.worker.meter import HIGH
from worldmove.worker.tools import Tools
from worldmove.worker.turns import Turn

OWN_HOLDS = 1
"""What the shadow of the same session holds back is not this."""
LOOK_AGAIN_S = 0.005
"""While the engine is kept free for a pause."""


class ShadowComponent:
    """One attempt's."""

    def __init__(self, tools: Tools, into: AnyArena, num_bytes: int) -> None:
        """``into``: the slot where the whole will lie. Raises MoveRefused, StateRefused, ArenaFull, NoMemory."""
        engine = tools.engine
        with engine_asked("step a part of a session by itself"):
            if not isinstance(engine, Follows):
                raise MoveRefused("no_component", "this engine cannot step a part of a session by itself")
        if num_bytes > into.size:
            raise MoveRefused("state_too_large", "the part would be larger than the whole")
        self._arena = new_arena(num_bytes, "worldmove-component", kit_of(tools.spec.device))
        self._engine: Follows[Any] = engine
        self._tools = tools
        self._into = into
        self._part: dict[str, Tree] = {}
        self._takes_s: float | None = None
        self._is_hurried = asyncio.Event()
        self._is_freed = False

    @property
    def arena(self) -> AnyArena:
        return self._arena

    async def install(self, manifest: Manifest, placement: Placement) -> None:
        async with self._tools.turns.take(Turn.OPEN) as engine_thread:
            built = await engine_thread(partial(tree_in, self._tools.engine, manifest, placement, self._arena))
        await self._tools.copying(built.landing.settle)
        if type(built.tree) is not dict:
            raise StateRefused("", "what was copied aside is no part of a state")
        self._part = built.tree

    async def step(self, handed: bytes) -> None:
        while not await self._stepped(handed):
            continue

    def hurry(self) -> None:
        self._is_hurried.set()
        self._tools.courtesy.look_again()

    async def lay(self, whole: Manifest, placement: Placement) -> tuple[int, ...]:
        laid: tuple[int, ...] = await self._tools.copying(partial(self._lay, whole, placement))
        return laid

    def free(self) -> None:
        if not self._is_freed:
            self._is_freed, self._part = True, {}
            self._arena.close()

    async def _stepped(self, handed: bytes) -> bool:
        """Step it as soon as nobody is late for it, or somebody waits; False where somebody else came first."""
        tools = self._tools
        takes_s = MARGIN * (tools.meter.block_s(HIGH) if self._takes_s is None else self._takes_s)
        await tools.courtesy.permission(unless=self._is_hurried.is_set, takes_s=takes_s, own_holds=OWN_HOLDS)
        if tools.turns.is_held and not self._is_hurried.is_set():
            await self._hurried_or_in(LOOK_AGAIN_S)
            return False
        turn = Turn.BOUNDARY if self._is_hurried.is_set() else Turn.SPARE
        async with tools.turns.take(turn) as engine_thread:
            if turn is Turn.SPARE and not tools.courtesy.allows(takes_s, own_holds=OWN_HOLDS):
                return False
            self._takes_s = await engine_thread(partial(self._follow, handed))
        self._is_hurried.clear()
        return True

    async def _hurried_or_in(self, wait_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._is_hurried.wait()

    def _follow(self, handed: bytes) -> float:
        """Step it, and return how long that took. Runs in an engine's thread."""
        begin = self._tools.clock()
        with engine_asked("step a part of a session by itself"):
            self._engine.follow(self._part, handed)
        return self._tools.clock() - begin

    def _lay(self, whole: Manifest, placement: Placement) -> tuple[int, ...]:
        part = self._captured()
        pairs = twins(part.manifest, whole)
        lay(part, pairs, placement, self._into)
        return tuple(twin for _, twin in pairs)

    def _captured(self) -> Capture:
        engine = self._tools.engine
        with engine_asked("give a part of a session away"):
            return capture(self._part, engine.state_types, kit_of(engine.spec.device))
