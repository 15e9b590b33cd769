"""The routes, and nothing but the routes. See docs/http.md; /openapi.json has the models."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response, WebSocket
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.exceptions import HTTPException

from worldmove import __version__
from worldmove.errors import UserError, WorldMoveError
from worldmove.fleet.reports import Outcome
from worldmove.fleet.views import SessionView
from worldmove.serve import http_models as body
from worldmove.serve.answers import (
    environment_body,
    error_fields,
    leaves_body,
    move_body,
    session_body,
    status_of,
    worker_body,
)
from worldmove.serve.desk import Desk
from worldmove.serve.gateway import Gateway
from worldmove.serve.metrics import Metrics
from worldmove.serve.origin import RESTORE
from worldmove.serve.page import PageFile
from worldmove.serve.play_socket import play
from worldmove.serve.records import Records
from worldmove.serve.spool import Spool

ReceivedBlock = Annotated[int | None, Query(ge=0, lt=1 << 53)]

Responses = dict[int | str, dict[str, Any]]

ERRORS: Responses = {
    status: {"model": body.ErrorAnswer} for status in (400, 403, 404, 409, 410, 411, 413, 422, 500, 503, 507)
}
OCTETS = "application/octet-stream"
BYTES: Responses = {200: {"content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}}}
OCTETS_IN = {
    "requestBody": {"required": True, "content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}},
}
BlocksQuery = Annotated[int | None, Query(ge=1, description="End after so many blocks, counted from the first.")]
WorkerQuery = Annotated[str | None, Query(min_length=1, max_length=64, description="Left out: the roomiest.")]
REFUSED: Responses = {**ERRORS, 409: {"model": body.RefusedMove | body.ErrorAnswer}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the routes stand on."""

    desk: Desk
    gateway: Gateway
    metrics: Metrics
    page: Mapping[str, PageFile]
    spool: Spool = field(default_factory=Spool)


def build_app(parts: Parts) -> FastAPI:
    """Return the application. It makes no call to the outside and its documentation needs none."""
    app = FastAPI(title="WorldMove", version=__version__, docs_url=None, redoc_url=None, responses=ERRORS)
    _errors(app)
    _sessions(app, parts)
    _records(app, parts)
    _play(app, parts)
    _fleet(app, parts)
    _page(app, parts)
    return app


def _sessions(app: FastAPI, parts: Parts) -> None:
    desk, gateway, fleet = parts.desk, parts.gateway, parts.gateway.fleet

    def session_of(view: SessionView) -> body.Session:
        return session_body(view, gateway.lives.get(view.name))

    @app.post("/api/sessions", status_code=201)
    async def open_session(request: body.OpenSession | None = None) -> body.Session:
        """Begin a world."""
        request = request or body.OpenSession()
        return session_of(await desk.open(seed=request.seed, on=request.worker))

    @app.get("/api/sessions")
    async def sessions() -> body.Sessions:
        """List the worlds that are open."""
        return body.Sessions(sessions=[session_of(view) for view in fleet.sessions() if not view.throwaway])

    @app.get("/api/sessions/{session}")
    async def session(session: str) -> body.Session:
        """Show one world."""
        return session_of(desk.view(session))

    @app.delete("/api/sessions/{session}", status_code=204)
    async def close_session(session: str) -> None:
        """End a world."""
        await desk.close(session)


def _records(app: FastAPI, parts: Parts) -> None:
    records = Records(desk=parts.desk, gateway=parts.gateway, spool=parts.spool)

    @app.get("/api/sessions/{session}/record", response_class=Response, responses=BYTES)
    async def record(session: str, *, blocks: BlocksQuery = None, follow: bool = False) -> Response:
        """Send a world's record from its first block on: what there is, or, following it, as it grows."""
        return StreamingResponse(records.record(session, blocks, follow=follow), media_type=OCTETS)

    @app.get("/api/sessions/{session}/leaves")
    async def leaves(session: str) -> body.Leaves:
        """List what a world's state consists of."""
        return leaves_body(await records.leaves(session))

    @app.get("/api/sessions/{session}/saved", response_class=Response, responses=BYTES)
    async def saved(session: str) -> Response:
        """Save a world: its whole state at a block boundary, exactly; see docs/records.md."""
        found = await records.save(session)
        return StreamingResponse(found.parts, media_type=OCTETS, headers={"content-length": str(found.num_bytes)})

    @app.post(RESTORE, status_code=201, openapi_extra=OCTETS_IN)
    async def restore(request: Request, worker: WorkerQuery = None) -> body.Session:
        """Begin a world where a saved one had come to. The body is the saved session, and says its length."""
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit() and len(length) <= 18):
            raise UserError("A saved session's request says its Content-Length.", code="usage", status=411)
        view = await records.restore(request.stream(), int(length), on=worker)
        return session_body(view, parts.gateway.lives.get(view.name))


def _play(app: FastAPI, parts: Parts) -> None:
    desk, frame_period_s = parts.desk, 1 / parts.gateway.config.live.spec.frames_per_s

    @app.post("/api/sessions/{session}/move", responses=REFUSED)
    async def move(session: str, request: body.MoveSession | None = None) -> body.Move:
        """Move a world and answer when it is known how that ended: the outcome is in the body. 409: refused."""
        request = request or body.MoveSession()
        report = await desk.move(session, request.to, damage=request.damage)
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


def _fleet(app: FastAPI, parts: Parts) -> None:
    fleet, live = parts.gateway.fleet, parts.gateway.config.live
    frame_period_s = 1 / live.spec.frames_per_s

    @app.get("/api/workers")
    async def workers() -> body.Workers:
        """List the workers."""
        return body.Workers(workers=[worker_body(view) for view in fleet.workers()])

    @app.get("/api/moves")
    async def moves() -> body.Moves:
        """List the last moves, oldest first."""
        return body.Moves(moves=[move_body(report, frame_period_s) for report in fleet.moves()])

    @app.get("/api/environment")
    async def environment() -> body.Environment:
        """Show what decides whether two workers compute the same bytes, and where they differ."""
        return environment_body(fleet.workers())

    @app.get("/healthz")
    async def health() -> body.Health:
        """Say that the server answers, and what it serves."""
        return body.Health(
            status="ok",
            ledger="ok" if fleet.ledger_failure is None else str(fleet.ledger_failure),
            version=__version__,
            server_life=live.server_life,
            engine=live.spec.name,
            preset=live.spec.preset,
            weights_sha256=live.spec.weights_sha256,
            num_sessions=len(parts.gateway.lives),
        )

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Show the counters in Prometheus' text format."""
        return Response(parts.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _page(app: FastAPI, parts: Parts) -> None:
    @app.get("/", include_in_schema=False)
    async def new_world() -> Response:
        return _file(parts.page, "index.html")

    @app.get("/play/{session}", include_in_schema=False)
    async def old_world(session: str) -> Response:
        return _file(parts.page, "index.html")

    @app.get("/viewer/{path:path}", include_in_schema=False)
    async def viewer(path: str) -> Response:
        return _file(parts.page, path)


def _file(page: Mapping[str, PageFile], path: str) -> Response:
    if path not in page:
        raise UserError(f"There is no file {path}.", code="not_found", status=404)
    return Response(page[path].content, media_type=page[path].media_type, headers={"cache-control": "no-cache"})


class Refused(Exception):
    """Carries a refused move to its answer."""

    def __init__(self, move: body.Move) -> None:
        super().__init__(move.sentence)
        self.move = move


def _errors(app: FastAPI) -> None:
    @app.exception_handler(WorldMoveError)
    async def ours(_: Request, error: WorldMoveError) -> JSONResponse:
        return _error(status_of(error), error_fields(error))

    @app.exception_handler(Refused)
    async def refused(_: Request, refused: Refused) -> JSONResponse:
        move = refused.move
        fields = _fields("refused", move.sentence, session_runs=move.runs_at is not None)
        answer = body.RefusedMove(error=fields, move=move)
        return JSONResponse(answer.model_dump(by_alias=True), status_code=409)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _error(422, _fields("usage", f"The request is not understood: {where}: {first['msg']}."))

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        code, sentence = "not_found" if error.status_code == 404 else "http", f"{str(error.detail).rstrip('.')}."
        return _error(error.status_code, _fields(code, sentence))

    @app.exception_handler(Exception)
    async def unexpected(_: Request, error: Exception) -> JSONResponse:
        return _error(500, _fields("internal", f"The server failed: {type(error).__name__}; its log says more."))


def _fields(code: str, message: str, *, session_runs: bool | None = None) -> body.ErrorFields:
    return body.ErrorFields(code=code, message=message, fault="remote", session_runs=session_runs, retry_after_s=None)


def _error(status: int, fields: body.ErrorFields) -> JSONResponse:
    headers = {} if fields.retry_after_s is None else {"retry-after": str(round(fields.retry_after_s))}
    return JSONResponse({"error": fields.model_dump()}, status_code=status, headers=headers)
