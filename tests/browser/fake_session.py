"""One session of the fake server: a procedural world, who watches it, its moves, its throw-away copies.

Workers are two names, a move is a pause of made-up phases, digests are of small states. What is kept as on the
real wire: the order and number of frames, each frame's SHA-256, the fields of every message.
"""

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.browser.fake_world import KEYS, OPPOSITE, FakeWorld, Note, Pixels
from tests.serve.fakes import RECEIPTS
from worldmove.serve import frames

Message: TypeAlias = dict[str, Any] | bytes | None
"""JSON, a frame, or (None) the end of the connection."""

PERIOD_S = 0.25
REST_AFTER_S = 5.0
NUM_CHECKS = 4
NUM_BYTES, NUM_PARTS = 22_034_112, 31
WORKERS = (("worker-a", 4121), ("worker-b", 4122))
PHASES = (("Copying", 31.4), ("Holding", 1.3), ("Checking", 5.6), ("Handing over", 0.7), ("Moved", 9.2))
ENGINE = {
    "name": "fake",
    "preset": "island",
    "width": 64,
    "height": 64,
    "frames_per_block": 2,
    "frames_per_s": 8.0,
    "keys": list(KEYS),
    "memory_blocks": 23,
    "weights_sha256": "00" * 32,
}
MOVED = (
    "Moved. Your world now runs in {there}. You waited 0 frames; the pause was 7.6 ms. "
    f"All {NUM_PARTS} parts are identical (checked)."
)
BROKEN = (
    "Not moved, nothing changed. One part arrived damaged (3 tries). We threw the copy away. Your world goes on here."
)


@dataclass(slots=True, kw_only=True, eq=False)
class Watcher:
    """One page's connection: what is still to be sent to it."""

    outbox: asyncio.Queue[Message] = field(default_factory=asyncio.Queue)


@dataclass(slots=True, kw_only=True)
class FakeSession:
    """A session with its own clock: ``run`` steps it while somebody watches and something happens."""

    name: str
    world: FakeWorld
    owner: int = 0
    epoch: int = 1
    block: int = 0
    taken: int = 0
    changes: list[tuple[int, str, bool]] = field(default_factory=list)
    down: set[str] = field(default_factory=set)
    keep: bool = False
    resting: bool = False
    idle_s: float = 0.0
    watchers: list[Watcher] = field(default_factory=list)
    controlling: Watcher | None = None
    newest: list[bytes] = field(default_factory=list)
    walked: list[str] = field(default_factory=list)
    num_moves: int = 0
    num_aborted: int = 0
    checks_left: int = 0
    damage_next: bool = False
    """The next frame's digest is to be wrong."""

    def tell(self, message: Message) -> None:
        for watcher in self.watchers:
            watcher.outbox.put_nowait(message)

    async def run(self) -> None:
        """Step forever, at due times."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due += PERIOD_S
            await asyncio.sleep(max(0.0, due - loop.time()))
            self._consider_rest()
            if not self.resting:
                self._step()

    def attach(self, watcher: Watcher, *, controls: bool) -> None:
        """A page has come: it may take the controls, and sees the newest block at once."""
        if controls:
            self._release_all()
            if self.controlling is not None:
                self.controlling.outbox.put_nowait({"type": "taken_over"})
            self.controlling = watcher
        messages: list[Message] = [
            self._hello(controls=controls),
            self._workers(),
            self._counts(),
            self._rest(),
            *self.newest,
        ]
        for message in messages:
            watcher.outbox.put_nowait(message)
        self.watchers.append(watcher)
        self.idle_s = 0.0

    def detach(self, watcher: Watcher) -> None:
        """A page has gone: what it held is released if it had the controls."""
        if watcher is self.controlling:
            self._release_all()
            self.controlling = None
        self.watchers.remove(watcher)

    def press(self, changes: list[tuple[int, str, bool]]) -> None:
        """Take the key changes that are new."""
        for number, key, down in changes:
            if number > self.taken:
                self.taken = number
                self.changes.append((number, key, down))
                (self.down.add if down else self.down.discard)(key)

    def plan(self, link: str | None) -> dict[str, Any]:
        """Pretend to reckon: at the path's own speed a copy, on a slow link a replay, and on none that carries it."""
        slow = link is not None
        copied_ms = 900.0 if slow else 3.0
        terms = {"freeze": 2.0, "land": copied_ms, "verify": 4.0, "commit": 6.0}
        copy = strategy_plan("boundary copy", terms, too_slow=slow)
        replay = strategy_plan("replay", {"freeze": 2.0, "halt": 9.0, "verify": 4.0, "commit": 6.0}, before_ms=8000.0)
        chosen, admitted = ("replay", link != "25mbit") if slow else ("boundary copy", True)
        if not admitted:
            replay = replay | {"admitted": False, "reason": "too_long", "remedy": "a path of 2.10 MB/s (now 1.25 MB/s)"}
        return {
            "session": self.name,
            "num_bytes": NUM_BYTES,
            "strategy": chosen,
            "admitted": admitted,
            "strategies": [copy, replay],
        }

    async def move(self, *, damage: bool) -> dict[str, Any]:
        """Pretend to move; with ``damage`` pretend that it failed."""
        here, there = WORKERS[self.owner][0], WORKERS[1 - self.owner][0]
        self.num_moves += 1
        attempt = f"m-{self.num_moves}"
        phases = PHASES[: 3 if damage else 5]
        for name, ms in phases:
            self.tell({"type": "move", "event": "phase", "attempt": attempt, "phase": name, "to": there})
            await asyncio.sleep(ms / 1e3)
        if damage:
            self.num_aborted += 1
        else:
            self.owner, self.epoch, self.checks_left = 1 - self.owner, self.epoch + 1, NUM_CHECKS
            self.tell({"type": "owner", **self._owner()})
            self.tell(self._workers())
        result = {
            "attempt": attempt,
            "outcome": "aborted" if damage else "committed",
            "sentence": BROKEN if damage else MOVED.format(there=there),
            "phases": [{"name": name, "ms": ms} for name, ms in phases],
            "pause_ms": None if damage else 7.6,
            "expected": {"strategy": "boundary copy", "pause_ms": 8.1, "terms": []},
            "gap_ms": 0.0,
            "missed_frames": 0,
            "num_bytes": NUM_BYTES,
            "num_parts": NUM_PARTS,
            "from": here,
            "to": there,
            "epoch": self.epoch,
            "state_digest": self.world.digest(),
            "proof": "not checked (the copy was thrown away)" if damage else f"checked {NUM_PARTS}/{NUM_PARTS}",
            "tries": 3 if damage else 1,
        }
        self.tell({"type": "move", "event": "result", **result})
        self.tell(self._counts())
        return result

    async def recover(self) -> None:
        """Show a copy that knows the newest picture alone, walking back the way the session came."""
        copy = FakeWorld(seed=self.world.seed + 31)
        copy.remember(self.world.view())
        way = [OPPOSITE[action] for action in reversed(self.walked[-24:])]
        told = {"type": "recover", "name": f"{self.name}-copy"}
        self.tell({**told, "state": "opened", "seconds": 6.0})
        for block in range(16):
            taps = [(n, key, down) for n, key in enumerate(way[2 * block : 2 * block + 2]) for down in (True, False)]
            for index, (view, note) in enumerate(copy.step(taps)):
                kind = frames.Kind.RECOVERED
                self.tell(self._frame(view, note, kind=kind, block=block, index=index))
            await asyncio.sleep(PERIOD_S)
        self.tell({**told, "state": "closed", "seconds": 0.0})

    def _consider_rest(self) -> None:
        busy = self.down or self.changes or self.keep
        self.idle_s = 0.0 if busy else self.idle_s + PERIOD_S
        resting = self.idle_s > REST_AFTER_S or not self.watchers
        if resting != self.resting:
            self.resting = resting
            self.tell(self._rest())

    def _step(self) -> None:
        changes, self.changes = self.changes, []
        made = self.world.step(changes)
        self.walked.extend(note.action for _, note in made if note.action in OPPOSITE)
        self.newest = [
            self._frame(view, note, kind=frames.Kind.LIVE, block=self.block, index=index)
            for index, (view, note) in enumerate(made)
        ]
        for message in self.newest:
            self.tell(message)
        self._check([view for view, _ in made])
        self.block += 1

    def _check(self, views: list[Pixels]) -> None:
        if not self.checks_left:
            return
        self.checks_left -= 1
        digests = [hashlib.sha256(view.tobytes()).hexdigest() for view in views]
        side = {"state_digest": self.world.digest(), "frames": digests}
        told = {"type": "check", "block": self.block, "attempt": f"m-{self.num_moves}"}
        self.tell({**told, "owner": side, "retired": side, "equal": True})

    def _frame(self, view: Pixels, note: Note, *, kind: frames.Kind, block: int, index: int) -> bytes:
        pixels = view.tobytes()
        digest = bytes(32) if self.damage_next else hashlib.sha256(pixels).digest()
        self.damage_next = False
        header = frames.FrameHeader(
            kind=kind,
            action=frames.action_index(note.action, KEYS),
            index=index,
            width=64,
            height=64,
            show_after_ms=125 * index,
            epoch=self.epoch,
            block=block,
            frame=2 * block + index,
            number=note.number,
            pose=note.pose,
            server_life=1,
            sha256=digest,
            receipt=RECEIPTS.of("s-1", block),
        )
        return frames.pack(header, pixels)

    def _release_all(self) -> None:
        self.press([(self.taken + 1 + i, key, False) for i, key in enumerate(sorted(self.down))])

    def _owner(self) -> dict[str, Any]:
        name, pid = WORKERS[self.owner]
        return {"worker": name, "pid": pid, "epoch": self.epoch}

    def _counts(self) -> dict[str, Any]:
        moved = self.num_moves - self.num_aborted
        return {
            "type": "counts",
            "moved": moved,
            "refused": 0,
            "aborted": self.num_aborted,
            "lost": 0,
            "blocks_late": 0,
        }

    def _rest(self) -> dict[str, Any]:
        return {"type": "rest", "resting": self.resting, "why": "no key was down for some seconds"}

    def _workers(self) -> dict[str, Any]:
        rows = [
            {
                "name": name,
                "pid": pid,
                "state": "ready",
                "sessions": int(index == self.owner),
                "slots_free": 2 - int(index == self.owner),
                "slots": 2,
                "owner": index == self.owner,
            }
            for index, (name, pid) in enumerate(WORKERS)
        ]
        return {"type": "workers", "workers": rows}

    def _hello(self, *, controls: bool) -> dict[str, Any]:
        return {
            "type": "hello",
            "session": self.name,
            "engine": ENGINE,
            "next_number": self.taken + 1,
            "next_block": self.block,
            "server_life": 1,
            "owner": self._owner(),
            "num_parts": NUM_PARTS,
            "num_bytes": NUM_BYTES,
            "controls": controls,
        }


def strategy_plan(
    name: str, terms: dict[str, float], *, before_ms: float = 0.0, too_slow: bool = False
) -> dict[str, Any]:
    return {
        "strategy": name,
        "admitted": not too_slow,
        "reason": "too_slow" if too_slow else "",
        "detail": "it is too slow" if too_slow else "",
        "remedy": "",
        "pause_ms": sum(terms.values()),
        "before_ms": before_ms,
        "pause": [{"name": term, "ms": took, "how": "pretended"} for term, took in terms.items()],
    }
