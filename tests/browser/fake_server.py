"""A server that speaks the play wire with a procedural world: the page can be built and tested on it alone.

``POST /fake/SESSION/...`` breaks it on purpose. By hand: ``python -m tests.browser.fake_server --port 8788``.
"""

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from tests.browser.fake_session import WORKERS, FakeSession, Watcher
from tests.browser.fake_world import FakeWorld
from worldmove.serve import frames

VIEWER = Path(frames.__file__).parent / "viewer"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Sessions:
    """All sessions of one fake server, and the tasks that run them."""

    def __init__(self) -> None:
        self._sessions: dict[str, FakeSession] = {}
        self._tasks: dict[str, list[asyncio.Task[None]]] = {}
        self._num_opened = 0

    def open(self) -> FakeSession:
        self._num_opened += 1
        number = self._num_opened
        session = FakeSession(name=f"s-{number}", world=FakeWorld(seed=40 + number))
        self._sessions[session.name] = session
        self._tasks[session.name] = [asyncio.create_task(session.run())]
        return session

    def get(self, name: str) -> FakeSession | None:
        return self._sessions.get(name)

    def recover(self, session: FakeSession) -> None:
        self._tasks[session.name].append(asyncio.create_task(session.recover()))

    def end(self, session: FakeSession) -> None:
        del self._sessions[session.name]
        for task in self._tasks.pop(session.name):
            task.cancel()

    def close(self) -> None:
        for session in tuple(self._sessions.values()):
            self.end(session)


def sessions_of(request: Request) -> Sessions:
    sessions: Sessions = request.app.state.sessions
    return sessions


def session_of(request: Request, name: str) -> FakeSession:
    session = sessions_of(request).get(name)
    if session is None:
        raise HTTPException(404, f"There is no session {name}.")
    return session


AllSessions = Annotated[Sessions, Depends(sessions_of)]
OneSession = Annotated[FakeSession, Depends(session_of)]
pages, calls, faults = APIRouter(), APIRouter(prefix="/api"), APIRouter(prefix="/fake/{name}")


@pages.get("/")
@pages.get("/play/{name}")
async def page() -> FileResponse:
    return FileResponse(VIEWER / "index.html")


@calls.get("/workers")
async def list_workers() -> dict[str, Any]:
    return {"workers": [{"worker": name, "pid": pid} for name, pid in WORKERS]}


@calls.post("/sessions")
async def open_session(sessions: AllSessions) -> dict[str, Any]:
    return {"session": sessions.open().name}


@calls.get("/sessions/{name}")
async def show_session(session: OneSession) -> dict[str, Any]:
    return {"session": session.name}


@calls.delete("/sessions/{name}", status_code=204)
async def close_session(session: OneSession, sessions: AllSessions) -> None:
    sessions.end(session)


@calls.get("/sessions/{name}/plan")
async def plan_move(session: OneSession, link: str | None = None) -> dict[str, Any]:
    return session.plan(link)


@calls.post("/sessions/{name}/move")
async def move_session(session: OneSession, request: Request) -> dict[str, Any]:
    return await session.move(damage=bool((await request.json()).get("damage")))


@calls.post("/sessions/{name}/recover")
async def recover_session(session: OneSession, sessions: AllSessions) -> dict[str, Any]:
    sessions.recover(session)
    return {"name": f"{session.name}-copy"}


@faults.post("/damage")
async def damage_next_frame(session: OneSession) -> None:
    session.damage_next = True


@faults.post("/drop")
async def drop_connections(session: OneSession) -> None:
    session.tell(None)


@faults.post("/lose")
async def lose_session(session: OneSession) -> None:
    session.tell({"type": "lost", "sentence": "worker worker-a ended and no other worker holds a copy"})


@calls.websocket("/sessions/{name}/play")
async def play(socket: WebSocket, name: str, *, watch: bool = False) -> None:
    """Serve one page until it goes away."""
    await socket.accept()
    session = socket.app.state.sessions.get(name)
    if session is None:
        await socket.close(4004)
        return
    watcher = Watcher()
    session.attach(watcher, controls=not watch)
    sender = asyncio.create_task(send_all(socket, watcher))
    try:
        while True:
            take(session, watcher, await socket.receive_json())
    except (WebSocketDisconnect, RuntimeError):  # starlette's word for reading what we have closed ourselves
        session.detach(watcher)
    finally:
        sender.cancel()


async def send_all(socket: WebSocket, watcher: Watcher) -> None:
    while (message := await watcher.outbox.get()) is not None:
        await (socket.send_bytes(message) if isinstance(message, bytes) else socket.send_json(message))
    await socket.close(1001)


def take(session: FakeSession, watcher: Watcher, message: dict[str, Any]) -> None:
    """Take one message of a page's."""
    match message["type"]:
        case "keys":
            session.press(message["changes"])
            watcher.outbox.put_nowait({"type": "keys", "number": session.taken})
        case "keep":
            session.keep = message["keep"]
        case "ping":
            watcher.outbox.put_nowait({"type": "pong", "t": message["t"], "server_ms": 0.1})


async def secure(request: Request, call_next: Any) -> Response:
    """The strictest policy a server of this page may send."""
    response: Response = await call_next(request)
    response.headers["Content-Security-Policy"] = POLICY
    response.headers["Cache-Control"] = "no-store"
    return response


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.sessions = Sessions()
    yield
    app.state.sessions.close()


def build() -> FastAPI:
    """The application."""
    app = FastAPI(lifespan=lifespan)
    app.mount("/viewer", StaticFiles(directory=VIEWER))
    for router in (pages, calls, faults):
        app.include_router(router)
    app.middleware("http")(secure)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Serve the page with a procedural world.")
    parser.add_argument("--port", type=int, default=8788)
    uvicorn.run(build(), host="127.0.0.1", port=parser.parse_args(arguments).port, log_level="warning")


if __name__ == "__main__":
    main()
