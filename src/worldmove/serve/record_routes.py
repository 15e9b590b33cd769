"""The routes of what can be taken home of a world: its record, its leaves, its whole state."""

from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from starlette.requests import ClientDisconnect

from worldmove.errors import UserError
from worldmove.limits import MAX_NAME
from worldmove.serve import http_models as body
from worldmove.serve.answers import leaves_json, session_body
from worldmove.serve.http_errors import Responses
from worldmove.serve.origin import RESTORE
from worldmove.serve.parts import Parts
from worldmove.serve.records import Records
from worldmove.serve.streamed import Streamed

OCTETS = "application/octet-stream"
BYTES: Responses = {200: {"content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}}}
OCTETS_IN = {
    "requestBody": {"required": True, "content": {OCTETS: {"schema": {"type": "string", "format": "binary"}}}},
}
BlocksQuery = Annotated[int | None, Query(ge=1, description="End after so many blocks, counted from the first.")]
WorkerQuery = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME, description="Left out: the roomiest.")]


def add_records(app: FastAPI, parts: Parts) -> None:
    """Worlds are recorded, saved and restored."""
    records = Records(desk=parts.desk, gateway=parts.gateway, spool=parts.spool)

    @app.get("/api/sessions/{session}/record", response_class=Response, responses=BYTES)
    async def record(session: str, *, blocks: BlocksQuery = None, follow: bool = False) -> Response:
        """Send a world's record from its first block on: what there is, or, following it, as it grows."""
        return Streamed(records.record(session, blocks, follow=follow), media_type=OCTETS)

    @app.get("/api/sessions/{session}/leaves", response_model=body.Leaves)
    async def leaves(session: str) -> Response:
        """List what a world's state consists of."""
        return Response(leaves_json(await records.leaves(session)), media_type="application/json")

    @app.get("/api/sessions/{session}/saved", response_class=Response, responses=BYTES)
    async def saved(session: str) -> Response:
        """Save a world: its whole state at a block boundary, exactly; see docs/records.md."""
        found = await records.save(session)
        return Streamed(found.parts, media_type=OCTETS, headers={"content-length": str(found.num_bytes)})

    @app.post(RESTORE, status_code=201, openapi_extra=OCTETS_IN)
    async def restore(request: Request, worker: WorkerQuery = None) -> body.Session:
        """Begin a world where a saved one had come to. The body is the saved world, and says its length."""
        length = request.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit() and len(length) <= 18):
            raise UserError("A saved world's request says its Content-Length.", code="usage", status=411)
        try:
            view = await records.restore(request.stream(), int(length), on=worker)
        except ClientDisconnect as error:
            raise UserError("The client left in the middle of its request.", code="bad_file", status=422) from error
        return session_body(view, parts.gateway.lives.get(view.name), parts.gateway.stalls.stalled_s(view.name))
