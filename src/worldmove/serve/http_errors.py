"""Errors as HTTP says them: a status, a code, a sentence. See docs/operations.md for every code."""

import asyncio
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from worldmove.errors import WorldMoveError
from worldmove.serve import http_models as body
from worldmove.serve.answers import error_fields, status_of

Responses = dict[int | str, dict[str, Any]]

ERRORS: Responses = {
    status: {"model": body.ErrorAnswer} for status in (400, 403, 404, 409, 410, 411, 413, 422, 500, 503, 507)
}
REFUSED: Responses = {**ERRORS, 409: {"model": body.RefusedMove | body.ErrorAnswer}}


class Refused(Exception):
    """Carries a refused move to its answer."""

    def __init__(self, move: body.Move) -> None:
        super().__init__(move.sentence)
        self.move = move


def answer_errors(app: FastAPI) -> None:
    """Have an application answer every error in the one form."""

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


def told_of_the_end(app: ASGIApp) -> ASGIApp:
    """Have whoever still waits for an answer when the server ends be told so: a move may take longer than that."""

    async def answered(scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await app(scope, receive, noted if scope["type"] == "http" else send)
        except asyncio.CancelledError:
            if scope["type"] != "http" or has_begun:
                raise
            fields = _fields("server_ends", "The server ends. What was asked for may be done all the same: look again.")
            await _error(503, fields)(scope, receive, send)

    return answered


def _fields(code: str, message: str, *, session_runs: bool | None = None) -> body.ErrorFields:
    return body.ErrorFields(code=code, message=message, fault="remote", session_runs=session_runs, retry_after_s=None)


def _error(status: int, fields: body.ErrorFields) -> JSONResponse:
    headers = {} if fields.retry_after_s is None else {"retry-after": str(round(fields.retry_after_s))}
    return JSONResponse({"error": fields.model_dump()}, status_code=status, headers=headers)
