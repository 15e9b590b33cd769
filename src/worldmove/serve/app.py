"""The application: every route, and errors in one form. See docs/http.md; /openapi.json has the models."""

from fastapi import FastAPI

from worldmove import __version__
from worldmove.serve.fleet_routes import add_fleet
from worldmove.serve.http_errors import ERRORS, answer_errors
from worldmove.serve.page_routes import add_page
from worldmove.serve.parts import Parts
from worldmove.serve.record_routes import add_records
from worldmove.serve.session_routes import add_play, add_sessions

__all__ = ["Parts", "build_app"]


def build_app(parts: Parts) -> FastAPI:
    """Return the application. It makes no call to the outside and its documentation needs none."""
    app = FastAPI(title="WorldMove", version=__version__, docs_url=None, redoc_url=None, responses=ERRORS)
    answer_errors(app)
    add_sessions(app, parts)
    add_records(app, parts)
    add_play(app, parts)
    add_fleet(app, parts)
    add_page(app, parts.page)
    return app
