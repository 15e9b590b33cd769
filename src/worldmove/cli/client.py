"""The server as a client sees it: JSON over HTTP, with the standard library. No proxy is asked."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from math import isfinite
from types import MappingProxyType
from typing import Any, BinaryIO
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

from worldmove.errors import Fault, UserError

TIMEOUT_S = 120.0
MOVE_TIMEOUT_S = 3600.0 + TIMEOUT_S
"""A move is answered when it has ended: that takes as long as a server may let it prepare, and some more."""
PIECE_BYTES = 64 << 10
MAX_ANSWER_BYTES = 64 << 20
"""Of what comes as JSON."""
MAX_DIGITS = 20
NO_CONTENT = 204
NO_QUERY: Mapping[str, object] = MappingProxyType({})


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


class Unanswered(UserError):
    """The server has been asked, and has not answered in time."""

    fault = Fault.REMOTE

    def __init__(self, server: str, within_s: float) -> None:
        super().__init__(
            f"The server at {server} has not answered within {within_s:.0f} s. It may still be at it: "
            "`worldmove sessions` says how things are.",
            code="unanswered",
            status=504,
        )


class ServerError(UserError):
    """What the server answered instead of doing it. ``body`` is its whole answer."""

    fault = Fault.REMOTE

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        said = body.get("error")
        fields = said if isinstance(said, dict) else {}
        message = str(fields.get("message", f"The server answered with status {status}."))
        super().__init__(message, code=str(fields.get("code", "internal")), status=status)
        self.session_runs = fields.get("session_runs")
        self.retry_after_s = fields.get("retry_after_s")
        self.body = body


class Client:
    """One server's verbs. Raises Unreachable and ServerError."""

    def __init__(self, server: str) -> None:
        try:
            parts = urlsplit(server)
        except ValueError:  # brackets without an address
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UserError(f"{server} is no address of a server; write it like http://127.0.0.1:8787.")
        self.server = server.rstrip("/")
        self._opener = build_opener(ProxyHandler({}))

    def get(self, *path: str, query: Mapping[str, object] = NO_QUERY) -> dict[str, Any]:
        """Read something."""
        return self._ask("GET", path, None, query)

    def post(self, *path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Do something."""
        return self._ask("POST", path, body)

    def delete(self, *path: str) -> None:
        """End something."""
        with self._open(Request(self._url(path, NO_QUERY), method="DELETE"), TIMEOUT_S) as answer:
            if answer.status != NO_CONTENT:
                raise _no_server(answer.url)

    @contextmanager
    def download(self, *path: str, query: Mapping[str, object], endless: bool = False) -> Iterator[Iterator[bytes]]:
        """Give bytes as they come. ``endless``: there may be long silences between them."""
        with self._open(Request(self._url(path, query)), None if endless else TIMEOUT_S) as answer:
            yield self._pieces(answer)

    def upload(self, *path: str, query: Mapping[str, object], file: BinaryIO, num_bytes: int) -> dict[str, Any]:
        """Send a file's bytes."""
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(num_bytes)}
        return self._object_of(Request(self._url(path, query), data=file, method="POST", headers=headers))

    def _ask(
        self,
        method: str,
        path: tuple[str, ...],
        body: Mapping[str, Any] | None,
        query: Mapping[str, object] = NO_QUERY,
    ) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        timeout_s = MOVE_TIMEOUT_S if method == "POST" and path[-1] == "move" else TIMEOUT_S
        return self._object_of(Request(self._url(path, query), data=data, method=method, headers=headers), timeout_s)

    def _url(self, path: tuple[str, ...], query: Mapping[str, object]) -> str:
        url = "/".join((self.server, "api", *(quote(part, safe="", errors="replace") for part in path)))
        said = {name: value for name, value in query.items() if value is not None}
        return f"{url}?{urlencode(said)}" if said else url

    def _object_of(self, request: Request, timeout_s: float = TIMEOUT_S) -> dict[str, Any]:
        with self._open(request, timeout_s) as answer, self._reachable(timeout_s):
            return _object(answer.read(MAX_ANSWER_BYTES + 1), request.full_url)

    def _open(self, request: Request, timeout_s: float | None) -> Any:
        """Return the answer to a request, which whoever reads it closes. Raises ServerError where it is an error."""
        with self._reachable(timeout_s):
            try:
                return self._opener.open(request, timeout=timeout_s)
            except HTTPError as error:
                with error:
                    said = error.read(MAX_ANSWER_BYTES + 1)
                    raise ServerError(error.code, _object(said, request.full_url)) from error

    def _pieces(self, answer: Any) -> Iterator[bytes]:
        while True:
            with self._reachable():
                piece: bytes = answer.read1(PIECE_BYTES)
            if not piece:
                return
            yield piece

    @contextmanager
    def _reachable(self, timeout_s: float | None = None) -> Iterator[None]:
        """Say of a connection that fails inside that the server does not answer, or not in time."""
        try:
            yield
        except TimeoutError as error:  # it was reached: a connection that is not made in time comes as a URLError
            raise Unanswered(self.server, timeout_s or TIMEOUT_S) from error
        except URLError as error:
            raise Unreachable(self.server, _reason(error.reason)) from error
        except (OSError, ValueError, HTTPException) as error:
            raise Unreachable(self.server, _reason(error)) from error


class _Said(dict[str, Any]):
    """An object of an answer. Raises UserError where it is asked for what it does not say."""

    def __missing__(self, name: str) -> Any:
        why = f"What answers there is no WorldMove server, or one of another version: it does not say {name!r}."
        raise UserError(why, code="unreachable", status=502)


def _object(content: bytes, url: str) -> dict[str, Any]:
    if len(content) > MAX_ANSWER_BYTES:
        raise _no_server(url)
    try:
        found = json.loads(
            content or b"{}", object_hook=_Said, parse_constant=_number, parse_float=_number, parse_int=_whole
        )
    except (ValueError, RecursionError) as error:
        raise _no_server(url) from error
    return found if isinstance(found, _Said) else _Said()


def _number(text: str) -> float:
    """Raises ValueError for what is none: nothing is reckoned with it."""
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is no number")
    return number


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _no_server(url: str) -> UserError:
    return UserError(f"What answers at {url} is no WorldMove server.", code="unreachable", status=502)


def _reason(why: object) -> str:
    return str(getattr(why, "strerror", None) or why)
