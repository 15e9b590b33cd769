"""A server that speaks the play wire with a procedural world: the page can be built and tested on it alone.

It keeps the wire's promises and invents the rest: workers are names, a move is a pause, digests are of small
states. ``POST /fake/...`` breaks it on purpose. Start one by hand with ``python -m tests.browser.fake_server``.
"""

import argparse
import asyncio
import contextlib
import hashlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from tests.browser.fake_world import KEYS, OPPOSITE, FakeWorld, Note, Pixels

from worldmove.serve import frames

VIEWER = Path(frames.__file__).parent / "viewer"
PERIOD_S = 0.25
REST_AFTER_S = 8.0
NUM_BYTES, NUM_PARTS = 22_034_112, 31
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
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


@dataclass(slots=True, kw_only=True)
class FakeSession:
    """One world, who watches it, and what was asked of it."""

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
    watchers: list["Watcher"] = field(default_factory=list)
    newest: list[bytes] = field(default_factory=list)
    walked: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(
        default_factory=lambda: {"moved": 0, "refused": 0, "aborted": 0, "lost": 0, "blocks_late": 0}
    )
    checks_left: int = 0
    attempt: str = ""
    damage_frames: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def tell(self, message: dict[str, Any] | bytes) -> None:
        for watcher in self.watchers:
            watcher.outbox.put_nowait(message)


@dataclass(slots=True, kw_only=True)
class Watcher:
    """One page's connection."""

    outbox: asyncio.Queue[dict[str, Any] | bytes | None] = field(default_factory=asyncio.Queue)


@dataclass(slots=True)
class Fake:
    """All sessions of one fake server."""

    sessions: dict[str, FakeSession] = field(default_factory=dict)
    names: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    attempts: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))
    workers: tuple[tuple[str, int], ...] = (("worker-a", 4121), ("worker-b", 4122))

    def open(self) -> FakeSession:
        number = next(self.names)
        session = FakeSession(name=f"s-{number}", world=FakeWorld(seed=40 + number))
        self.sessions[session.name] = session
        session.tasks.append(asyncio.create_task(self._run(session)))
        return session

    def find(self, name: str) -> FakeSession:
        if name not in self.sessions:
            raise HTTPException(404, f"There is no session {name}.")
        return self.sessions[name]

    def workers_message(self, session: FakeSession) -> dict[str, Any]:
        rows = [
            {
                "name": name,
                "pid": pid,
                "state": "ready",
                "sessions": int(index == session.owner),
                "slots_free": 2 - int(index == session.owner),
                "slots": 2,
                "owner": index == session.owner,
            }
            for index, (name, pid) in enumerate(self.workers)
        ]
        return {"type": "workers", "workers": rows}

    def owner_fields(self, session: FakeSession) -> dict[str, Any]:
        name, pid = self.workers[session.owner]
        return {"worker": name, "pid": pid, "epoch": session.epoch}

    def hello(self, session: FakeSession) -> dict[str, Any]:
        return {
            "type": "hello",
            "session": session.name,
            "engine": ENGINE,
            "next_number": session.taken + 1,
            "next_block": session.block,
            "server_life": 1,
            "owner": self.owner_fields(session),
            "num_parts": NUM_PARTS,
            "num_bytes": NUM_BYTES,
            "controls": True,
        }

    async def _run(self, session: FakeSession) -> None:
        while True:
            await asyncio.sleep(PERIOD_S)
            session.idle_s = 0.0 if session.down or session.keep or session.changes else session.idle_s + PERIOD_S
            resting = session.idle_s > REST_AFTER_S or not session.watchers
            if resting != session.resting:
                session.resting = resting
                session.tell({"type": "rest", "resting": resting, "why": "no key was down for some seconds"})
            if not resting:
                self._step(session)

    def _step(self, session: FakeSession) -> None:
        changes, session.changes = session.changes, []
        made = session.world.step(changes)
        session.walked.extend(note.action for _, note in made if note.action in OPPOSITE)
        session.newest = [self._message(session, index, *frame) for index, frame in enumerate(made)]
        for message in session.newest:
            session.tell(message)
        if session.checks_left:
            session.checks_left -= 1
            self._check(session, made)
        session.block += 1

    def _message(self, session: FakeSession, index: int, view: Pixels, note: Note) -> bytes:
        pixels = view.tobytes()
        digest = hashlib.sha256(pixels).digest()
        if session.damage_frames:
            session.damage_frames -= 1
            digest = bytes(32)
        return frames.pack(frame_header(session, index, note, frames.Kind.LIVE, digest), pixels)

    def _check(self, session: FakeSession, made: list[tuple[Pixels, Note]]) -> None:
        side = {
            "state_digest": session.world.digest(),
            "frames": [hashlib.sha256(view.tobytes()).hexdigest() for view, _ in made],
        }
        fields = {"block": session.block, "attempt": session.attempt, "owner": side, "retired": side, "equal": True}
        session.tell({"type": "check", **fields})

    async def move(self, session: FakeSession, damage: bool) -> dict[str, Any]:  # noqa: FBT001
        attempt, source = f"m-{next(self.attempts)}", session.owner
        target = (source + 1) % len(self.workers)
        here, there = self.workers[source][0], self.workers[target][0]
        phases = []
        plan = (("Copying", 31.4), ("Holding", 1.3), ("Checking", 5.6), ("Handing over", 0.7), ("Moved", 9.2))
        for name, ms in plan[: 3 if damage else 5]:
            session.tell({"type": "move", "event": "phase", "attempt": attempt, "phase": name, "to": there})
            await asyncio.sleep(ms / 1e3)
            phases.append({"name": name, "ms": ms})
        outcome = "aborted" if damage else "committed"
        if not damage:
            session.owner, session.epoch, session.checks_left, session.attempt = target, session.epoch + 1, 4, attempt
            session.tell({"type": "owner", **self.owner_fields(session)})
            session.tell(self.workers_message(session))
        session.counts["aborted" if damage else "moved"] += 1
        moved = (
            f"Moved. Your world now runs in {there}. You waited 0 frames; the pause was 7.6 ms. "
            f"All {NUM_PARTS} parts are identical (checked)."
        )
        broken = (
            "Not moved, nothing changed. One part arrived damaged (3 tries). We threw the copy away. "
            "Your world goes on here."
        )
        result = {
            "attempt": attempt,
            "outcome": outcome,
            "sentence": broken if damage else moved,
            "phases": phases,
            "pause_ms": None if damage else 7.6,
            "gap_ms": 0.0,
            "missed_frames": 0,
            "num_bytes": NUM_BYTES,
            "num_parts": NUM_PARTS,
            "from": here,
            "to": there,
            "epoch": session.epoch,
            "state_digest": session.world.digest(),
            "proof": "not checked (the copy was thrown away)" if damage else f"checked {NUM_PARTS}/{NUM_PARTS}",
            "tries": 3 if damage else 1,
        }
        session.tell({"type": "move", "event": "result", **result})
        session.tell({"type": "counts", **session.counts})
        return result

    async def recover(self, session: FakeSession) -> None:
        copy = FakeWorld(seed=session.world.seed + 31)
        copy.remember(session.world.view())
        way = [OPPOSITE[action] for action in reversed(session.walked[-24:])]
        session.tell({"type": "recover", "name": f"{session.name}-copy", "state": "opened", "seconds": 6.0})
        for block in range(24):
            taps = [(n, key, down) for n, key in enumerate(way[2 * block : 2 * block + 2]) for down in (True, False)]
            for index, (view, note) in enumerate(copy.step(taps)):
                pixels = view.tobytes()
                digest = hashlib.sha256(pixels).digest()
                header = frame_header(session, index, note, frames.Kind.RECOVERED, digest, block)
                session.tell(frames.pack(header, pixels))
            await asyncio.sleep(PERIOD_S)
        session.tell({"type": "recover", "name": f"{session.name}-copy", "state": "closed", "seconds": 0.0})


def frame_header(
    session: FakeSession, index: int, note: Note, kind: frames.Kind, digest: bytes, block: int | None = None
) -> frames.FrameHeader:
    """The header of one frame of ``session``, or of its copy where ``block`` is given."""
    block = session.block if block is None else block
    return frames.FrameHeader(
        kind=kind,
        action=frames.action_index(note.action, KEYS),
        index=index,
        width=64,
        height=64,
        show_after_ms=125 * index,
        epoch=session.epoch,
        block=block,
        frame=2 * block + index,
        number=note.number,
        pose=note.pose,
        server_life=1,
        sha256=digest,
    )


def take(session: FakeSession, watcher: Watcher, message: dict[str, Any]) -> None:
    """Take one message of a page's."""
    if message["type"] == "keys":
        for number, key, down in message["changes"]:
            if number > session.taken:
                session.taken = number
                session.changes.append((number, key, down))
                (session.down.add if down else session.down.discard)(key)
        watcher.outbox.put_nowait({"type": "keys", "number": session.taken})
    elif message["type"] == "keep":
        session.keep = message["keep"]
    elif message["type"] == "ping":
        watcher.outbox.put_nowait({"type": "pong", "t": message["t"], "server_ms": 0.1})


def release_all(session: FakeSession) -> None:
    """Lift what a page that went away still held, with numbers of our own."""
    for key in sorted(session.down):
        session.taken += 1
        session.changes.append((session.taken, key, False))
    session.down.clear()


async def send_all(socket: WebSocket, watcher: Watcher) -> None:
    while (message := await watcher.outbox.get()) is not None:
        await (socket.send_bytes(message) if isinstance(message, bytes) else socket.send_json(message))
    await socket.close(1001)


async def play(socket: WebSocket, fake: Fake, name: str) -> None:
    """Serve one page until it goes away."""
    await socket.accept()
    if name not in fake.sessions:
        await socket.close(4004)
        return
    session, watcher = fake.sessions[name], Watcher()
    for earlier in session.watchers:
        earlier.outbox.put_nowait({"type": "taken_over"})
    release_all(session)
    rest = {"type": "rest", "resting": session.resting, "why": ""}
    for message in (fake.hello(session), fake.workers_message(session), {"type": "counts", **session.counts}, rest):
        watcher.outbox.put_nowait(message)
    for frame in session.newest:
        watcher.outbox.put_nowait(frame)
    session.watchers.append(watcher)
    sender = asyncio.create_task(send_all(socket, watcher))
    try:
        while True:
            take(session, watcher, await socket.receive_json())
    except WebSocketDisconnect:
        session.watchers.remove(watcher)
        release_all(session)
    finally:
        sender.cancel()


def build() -> FastAPI:
    """The application. Its state lives as long as it does."""
    fake = Fake()

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for session in fake.sessions.values():
            for task in session.tasks:
                task.cancel()

    app = FastAPI(lifespan=lifespan)
    app.mount("/viewer", StaticFiles(directory=VIEWER))

    @app.middleware("http")
    async def secure(request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["Cache-Control"] = "no-store"
        return response

    @app.get("/")
    @app.get("/play/{name}")
    async def page() -> FileResponse:
        return FileResponse(VIEWER / "index.html")

    @app.post("/api/sessions")
    async def open_session() -> dict[str, Any]:
        return {"session": fake.open().name}

    @app.get("/api/sessions/{name}")
    async def show_session(name: str) -> dict[str, Any]:
        return {"session": fake.find(name).name}

    @app.get("/api/workers")
    async def list_workers() -> dict[str, Any]:
        return {"workers": [{"name": name, "pid": pid} for name, pid in fake.workers]}

    @app.post("/api/sessions/{name}/move")
    async def move(name: str, request: Request) -> dict[str, Any]:
        return await fake.move(fake.find(name), bool((await request.json()).get("damage")))

    @app.post("/api/sessions/{name}/recover")
    async def recover(name: str) -> dict[str, Any]:
        session = fake.find(name)
        session.tasks.append(asyncio.create_task(fake.recover(session)))
        return {"name": f"{name}-copy"}

    @app.post("/fake/{name}/damage")
    async def damage(name: str) -> dict[str, Any]:
        fake.find(name).damage_frames = 1
        return {}

    @app.post("/fake/{name}/drop")
    async def drop(name: str) -> dict[str, Any]:
        for watcher in fake.find(name).watchers:
            watcher.outbox.put_nowait(None)
        return {}

    @app.post("/fake/{name}/lose")
    async def lose(name: str) -> dict[str, Any]:
        sentence = "This world could not be recovered: every process that held it has ended. Its seed: 41."
        fake.find(name).tell({"type": "lost", "sentence": sentence})
        return {}

    @app.websocket("/api/sessions/{name}/play")
    async def stream(socket: WebSocket, name: str) -> None:
        await play(socket, fake, name)

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the page with a procedural world.")
    parser.add_argument("--port", type=int, default=8788)
    uvicorn.run(build(), host="127.0.0.1", port=parser.parse_args().port, log_level="warning")


if __name__ == "__main__":
    main()
