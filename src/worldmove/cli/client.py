"""The server as a client sees it: JSON over HTTP, with the standard library. No proxy is asked."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from worldmove.errors import Fault, UserError

TIMEOUT_S = 120.0
"""A move is answered when it has ended."""


class Unreachable(UserError):
    """The server does not answer."""

    fault = Fault.REMOTE

    def __init__(self, server: str, why: str) -> None:
        super().__init__(
            f"The server at {server} does not answer ({why}). Start one with `worldmove serve`, or name it with "
            "--server or WORLDMOVE_SERVER.",
            code="unreachable",
            status=503,
        )


class ServerError(UserError):
    """What the server answered instead of doing it. ``body`` is its whole answer."""

    fault = Fault.REMOTE

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        fields = body.get("error", {})
        message = str(fields.get("message", f"The server answered with status {status}."))
        super().__init__(message, code=str(fields.get("code", "internal")), status=status)
        self.session_runs = fields.get("session_runs")
        self.retry_after_s = fields.get("retry_after_s")
        self.body = body


class Client:
    """One server's verbs. Raises Unreachable and ServerError."""

    def __init__(self, server: str) -> None:
        parts = urlsplit(server)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UserError(f"{server} is no address of a server; write it like http://127.0.0.1:8787.")
        self.server = server.rstrip("/")
        self._opener = build_opener(ProxyHandler({}))

    def get(self, *path: str) -> dict[str, Any]:
        """Read something."""
        return self._ask("GET", path, None)

    def post(self, *path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Do something."""
        return self._ask("POST", path, body)

    def delete(self, *path: str) -> None:
        """End something."""
        self._ask("DELETE", path, None)

    def _ask(self, method: str, path: tuple[str, ...], body: Mapping[str, Any] | None) -> dict[str, Any]:
        url = "/".join((self.server, "api", *(quote(part, safe="") for part in path)))
        data = None if body is None else json.dumps(body).encode()
        request = Request(url, data=data, method=method, headers={"Content-Type": "application/json"})
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as answer:
                return _object(answer.read(), url)
        except HTTPError as error:
            with error:
                raise ServerError(error.code, _object(error.read(), url)) from error
        except URLError as error:
            raise Unreachable(self.server, _reason(error.reason)) from error
        except (OSError, ValueError) as error:
            raise Unreachable(self.server, _reason(error)) from error


def _object(content: bytes, url: str) -> dict[str, Any]:
    if not content:
        return {}
    try:
        found = json.loads(content)
    except ValueError as error:
        raise UserError(f"What answers at {url} is no WorldMove server.", code="unreachable", status=502) from error
    return found if isinstance(found, dict) else {}


def _reason(why: object) -> str:
    return str(getattr(why, "strerror", None) or why)
