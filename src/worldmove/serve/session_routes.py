"""The routes of one world: begun, shown, played, moved, ended."""

from typing import Annotated

from fastapi import FastAPI, Query, WebSocket

from worldmove.fleet.reports import Outcome
from worldmove.fleet.views import SessionView
from worldmove.limits import MAX_NAME
from worldmove.serve import http_models as body
from worldmove.serve.answers import move_body, session_body
from worldmove.serve.http_errors import REFUSED, Refused
from worldmove.serve.parts import Parts
from worldmove.serve.planning import plan_body
from worldmove.serve.play_socket import play
from worldmove.serve.receipts import CLAIM

Named = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME)]
ReceivedBlock = Annotated[str | None, Query(pattern=CLAIM)]


def add_sessions(app: FastAPI, parts: Parts) -> None:
    """Worlds are begun, listed and ended."""
    desk, gateway, fleet = parts.desk, parts.gateway, parts.gateway.fleet

    def session_of(view: SessionView) -> body.Session:
        return session_body(view, gateway.lives.get(view.name), gateway.stalls.stalled_s(view.name))

    @app.post("/api/sessions", status_code=201)
    async def open_session(request: body.OpenSession | None = None) -> body.Session:
        """Begin a world."""
        request = request or body.OpenSession()
        return session_of(await desk.open(seed=request.seed, on=request.worker, protect=request.protect))

    @app.get("/api/sessions")
    async def sessions() -> body.Sessions:
        """List the worlds that are open."""
        return body.Sessions(sessions=[session_of(view) for view in fleet.sessions() if not view.throwaway])

    @app.get("/api/sessions/{session}")
    async def session(session: str) -> body.Session:
        """Show one world."""
        return session_of(desk.view(session))

    @app.post("/api/sessions/{session}/protect")
    async def protect(session: str, request: body.ProtectSession) -> body.Session:
        """Have another worker keep a snapshot of a world, so that it outlives its worker; or stop that."""
        return session_of(desk.protect(session, request.every))

    @app.delete("/api/sessions/{session}", status_code=204)
    async def close_session(session: str) -> None:
        """End a world."""
        await desk.close(session)


def add_play(app: FastAPI, parts: Parts) -> None:
    """A world is played, moved and recovered."""
    desk, frame_period_s = parts.desk, 1 / parts.gateway.config.live.spec.frames_per_s

    @app.get("/api/sessions/{session}/plan")
    async def plan(session: str, to: Named = None, strategy: Named = None, link: Named = None) -> body.Plan:
        """Say what a move would take, term by term for every strategy, and make none."""
        return plan_body(desk.plan(session, to, strategy=strategy, link=link))

    @app.post("/api/sessions/{session}/move", responses=REFUSED)
    async def move(session: str, request: body.MoveSession | None = None) -> body.Move:
        """Move a world and answer when it is known how that ended: the outcome is in the body. 409: refused."""
        request = request or body.MoveSession()
        report = await desk.move(
            session, request.to, damage=request.damage, strategy=request.strategy, link=request.link
        )
        answer = move_body(report, frame_period_s)
        if report.outcome is Outcome.REFUSED:
            raise Refused(answer)
        return answer

    @app.post("/api/sessions/{session}/cancel")
    async def cancel(session: str) -> body.Move:
        """Give a world's move up if that is still possible, and answer how it ended. 409: nothing moves."""
        return move_body(await desk.cancel(session), frame_period_s)

    @app.post("/api/sessions/{session}/recover", status_code=202)
    async def recover(session: str) -> body.Recovered:
        """Show, beside the world, a throw-away copy of it that was rebuilt from its last picture alone."""
        return body.Recovered(name=await desk.recover(session))

    @app.websocket("/api/sessions/{session}/play")
    async def play_session(
        websocket: WebSocket, session: str, *, watch: bool = False, received: ReceivedBlock = None
    ) -> None:
        on_closed = parts.metrics.player_closed
        await play(websocket, desk, session, controls=not watch, received=received, on_closed=on_closed)
