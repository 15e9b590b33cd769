"""The routes of the page: one file of it for everybody who plays."""

from collections.abc import Mapping

from fastapi import FastAPI, Response

from worldmove.errors import UserError
from worldmove.serve.page import PageFile


def add_page(app: FastAPI, page: Mapping[str, PageFile]) -> None:
    """The page is served, and every file of it."""

    @app.get("/", include_in_schema=False)
    async def new_world() -> Response:
        return _file(page, "index.html")

    @app.get("/play/{session}", include_in_schema=False)
    async def old_world(session: str) -> Response:
        return _file(page, "index.html")

    @app.get("/viewer/{path:path}", include_in_schema=False)
    async def viewer(path: str) -> Response:
        return _file(page, path)


def _file(page: Mapping[str, PageFile], path: str) -> Response:
    if path not in page:
        raise UserError(f"There is no file {path}.", code="not_found", status=404)
    return Response(page[path].content, media_type=page[path].media_type, headers={"cache-control": "no-cache"})
