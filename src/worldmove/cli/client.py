"""The server as a client sees it: JSON over HTTP, with the standard library. No proxy is asked, and none redirects it.

What fails before all of a request has left was not asked for: no server acts on less. What fails after that may have
been done; of a request that changes something that is said.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from types import MappingProxyType
from typing import Any, BinaryIO
from urllib.parse import quote, urlencode, urlsplit

from worldmove.cli.answer_objects import MAX_ANSWER_BYTES, Said, object_of
from worldmove.cli.no_answer import LOOK, NoServer, ServerError, Unanswered, Unreachable, broken, late
from worldmove.cli.termination import heard_as_interrupt
from worldmove.errors import UserError

TIMEOUT_S = 120.0
MOVE_TIMEOUT_S = 3600.0 + TIMEOUT_S
"""A move is answered when it has ended: that takes as long as a server may let it prepare, and some more."""
PIECE_BYTES = 64 << 10
MAX_REASON = 100
"""Of what came instead of an answer, which a reason may quote."""
NO_CONTENT = 204
DONE = range(200, 300)
NO_QUERY: Mapping[str, object] = MappingProxyType({})
KINDS: Mapping[str, type[HTTPConnection]] = MappingProxyType({"http": HTTPConnection, "https": HTTPSConnection})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One request. ``timeout_s``: for how long nothing of its answer may come; None: for ever."""

    method: str
    target: str
    timeout_s: float | None
    body: bytes | BinaryIO | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def changes(self) -> bool:
        """Return whether it asks for more than to be told something."""
        return self.method != "GET"


def _nobody_hears(_sentence: str) -> None:
    """Drop it."""


class Client:
    """One server's verbs. Raises NoAnswer and ServerError."""

    def __init__(self, server: str, *, on_interrupt: Callable[[str], None] = _nobody_hears) -> None:
        """``on_interrupt`` is told what may go on at the server when Ctrl-C, or a signal, ends that wait."""
        try:
            parts = urlsplit(server)
        except ValueError:  # brackets without an address
            parts = urlsplit("")
        if parts.scheme not in KINDS or not parts.netloc:
            raise UserError(f"{server} is no address of a server; write it like http://127.0.0.1:8787.")
        self.server = server.rstrip("/")
        self._kind, self._place, self._prefix = KINDS[parts.scheme], parts.netloc, parts.path.rstrip("/")
        self._on_interrupt = on_interrupt

    def get(self, *path: str, query: Mapping[str, object] = NO_QUERY) -> dict[str, Any]:
        """Read something."""
        return self._object_of(Ask(method="GET", target=self._target(path, query), timeout_s=TIMEOUT_S))

    def post(self, *path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Do something."""
        return self._object_of(
            Ask(
                method="POST",
                target=self._target(path),
                timeout_s=MOVE_TIMEOUT_S if path[-1] == "move" else TIMEOUT_S,
                body=json.dumps(body, allow_nan=False).encode(),
                headers={"Content-Type": "application/json"},
            )
        )

    def delete(self, *path: str) -> None:
        """End something."""
        ask = Ask(method="DELETE", target=self._target(path), timeout_s=TIMEOUT_S)
        with self._open(ask) as answer, self._awaiting(ask):
            if answer.status != NO_CONTENT:
                raise NoServer(f"at {self._url(ask)}")

    @contextmanager
    def download(self, *path: str, query: Mapping[str, object], endless: bool = False) -> Iterator[Iterator[bytes]]:
        """Give bytes as they come. ``endless``: there may be long silences between them."""
        ask = Ask(method="GET", target=self._target(path, query), timeout_s=None if endless else TIMEOUT_S)
        with self._open(ask) as answer:
            yield self._pieces(ask, answer)

    def upload(self, *path: str, query: Mapping[str, object], file: BinaryIO, num_bytes: int) -> dict[str, Any]:
        """Send a file's bytes."""
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(num_bytes)}
        target = self._target(path, query)
        return self._object_of(Ask(method="POST", target=target, timeout_s=TIMEOUT_S, body=file, headers=headers))

    def _target(self, path: tuple[str, ...], query: Mapping[str, object] = NO_QUERY) -> str:
        target = "/".join((self._prefix, "api", *(quote(part, safe="", errors="replace") for part in path)))
        said = {name: value for name, value in query.items() if value is not None}
        return f"{target}?{urlencode(said)}" if said else target

    def _url(self, ask: Ask) -> str:
        return self.server + ask.target.removeprefix(self._prefix)

    def _object_of(self, ask: Ask) -> Said:
        with self._open(ask) as answer, self._awaiting(ask):
            return self._read(ask, answer)

    def _read(self, ask: Ask, answer: HTTPResponse) -> Said:
        content = answer.read(MAX_ANSWER_BYTES + 1)
        if answer.length and len(content) <= MAX_ANSWER_BYTES:
            raise IncompleteRead(content, answer.length)
        return object_of(content, self._url(ask))

    @contextmanager
    def _open(self, ask: Ask) -> Iterator[HTTPResponse]:
        """Give the answer to a request. Raises ServerError where it is an error."""
        with heard_as_interrupt() if ask.changes else nullcontext():
            with self._reaching():
                connection = self._kind(self._place, timeout=ask.timeout_s)
                connection.connect()
            with closing(connection), self._answered(ask, connection) as answer:
                yield answer

    def _answered(self, ask: Ask, connection: HTTPConnection) -> HTTPResponse:
        with self._awaiting(ask):
            with self._reaching():
                connection.request(ask.method, ask.target, ask.body, {**ask.headers, "Connection": "close"})
            answer = connection.getresponse()
            if answer.status in DONE:
                return answer
            with answer:
                said = self._read(ask, answer)
            if ask.changes and not isinstance(said.get("error"), dict):  # whoever stands between us and the server
                raise NoServer(f"at {self._url(ask)}", f" (status {answer.status})")
            raise ServerError(answer.status, said)

    def _pieces(self, ask: Ask, answer: HTTPResponse) -> Iterator[bytes]:
        while True:
            with self._awaiting(ask):
                piece: bytes = answer.read1(PIECE_BYTES)
                if not piece and answer.length:  # it does not complain itself
                    raise IncompleteRead(b"", answer.length)
            if not piece:
                return
            yield piece

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Say of what fails inside that the server does not answer. Nothing was asked for."""
        try:
            yield
        except (OSError, ValueError, HTTPException) as error:
            raise Unreachable(self.server, _reason(error)) from error

    @contextmanager
    def _awaiting(self, ask: Ask) -> Iterator[None]:
        """Say of what fails inside that there is no answer, and of a change that it may have been made."""
        try:
            yield
        except NoServer as error:
            if not ask.changes:
                raise
            raise Unanswered(f"{error} {LOOK}") from error
        except (OSError, ValueError, HTTPException) as error:
            if isinstance(error, TimeoutError) and error.errno is None and ask.timeout_s is not None:
                raise late(self.server, ask.timeout_s) from error
            raise (broken if ask.changes else Unreachable)(self.server, _reason(error)) from error
        except KeyboardInterrupt:
            if ask.changes:
                self._on_interrupt(f"Interrupted before the server at {self.server} answered. {LOOK}")
            raise


def _reason(why: Exception) -> str:
    if isinstance(why, IncompleteRead):
        return "its answer broke off"
    said = str(getattr(why, "strerror", None) or why)
    return " ".join(said.split())[:MAX_REASON]
