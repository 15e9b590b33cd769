"""Who may talk to a server on this machine, and how much: a check of ``Host``, ``Origin`` and size before the rest.

A page on the Internet can make a visitor's browser ask any address, also one whose name it has just bound to
127.0.0.1. So ``Host`` must be an address or a name that is known here, and ``Origin``, where a browser sends
one, must be this very server.
"""

import re
from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::(?P<port>[0-9]{1,5}))?")
MAX_BODY_BYTES = 64 << 10
RESTORE = "/api/sessions/restore"
"""The one request with a large body: it is not held in memory, and its route says how large it may be."""
FORBIDDEN = "This server answers only under its own name; open it as http://127.0.0.1 or localhost."
TOO_LARGE = f"The request's body is larger than {MAX_BODY_BYTES >> 10} KiB; none that this server understands is."
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "worker-src 'self'; manifest-src 'self'; connect-src 'self' ws://{host} wss://{host}; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def host_name(host: str) -> str:
    """Return a ``Host`` header's name without its port; empty for one that is not exactly a name and a port.

    The header goes into the content policy as it is, so nothing else may stand in it.
    """
    found = HOST.fullmatch(host)
    if found is None or int(found["port"] or 0) > 65_535:
        return ""
    return found["name"].strip("[]").lower()


def host_is_known(host: str, names: Iterable[str], *, loopback_only: bool) -> bool:
    """Whether a ``Host`` header names this server: ``localhost``, an address, or one of ``names``."""
    name = host_name(host)
    if name == "localhost" or name in tuple(names):
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or not loopback_only


def origin_is_own(origin: str | None, host: str) -> bool:
    """Whether a request comes from this server's own page, or from no page at all."""
    if origin is None:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


class OwnOnly:
    """An ASGI layer that refuses strangers, and adds the headers that keep a page to itself."""

    def __init__(self, app: ASGIApp, *, names: tuple[str, ...] = (), loopback_only: bool = True) -> None:
        self._app = app
        self._names = names
        self._loopback_only = loopback_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        host = headers.get("host", "")
        known = host_is_known(host, self._names, loopback_only=self._loopback_only)
        if known and origin_is_own(headers.get("origin"), host):
            await self._admit(scope, receive, with_headers(send, host), headers)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": "not this server's page"})
        else:
            await _refuse(scope, receive, send, status=403, code="forbidden", message=FORBIDDEN)

    async def _admit(self, scope: Scope, receive: Receive, send: Send, headers: dict[str, str]) -> None:
        """Call the application, unless the request's body is larger than any that it could mean."""
        if scope["type"] == "http" and (scope["method"], scope["path"]) == ("POST", RESTORE):
            await self._app(scope, receive, send)
            return
        fits = size_fits(headers.get("content-length"))
        if fits and scope["type"] == "http" and "transfer-encoding" in headers:
            body = await read_body(receive)
            fits = body is not None
            receive = again(body or b"", receive)
        if fits:
            await self._app(scope, receive, send)
        else:
            # What is not read would be taken for the next request, or held in memory.
            headers_out = {"connection": "close"}
            await _refuse(scope, receive, send, status=413, code="too_large", message=TOO_LARGE, headers=headers_out)


def size_fits(content_length: str | None) -> bool:
    """Whether a body that says its size may be read."""
    if content_length is None:
        return True
    is_number = content_length.isascii() and content_length.isdigit() and len(content_length) <= 20
    return is_number and int(content_length) <= MAX_BODY_BYTES


async def read_body(receive: Receive) -> bytes | None:
    """Read a body that does not say its size; None, and no more of it is read, where it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def again(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives a body that was read already, and then what comes after it."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Message:
        return waiting.pop() if waiting else await receive()

    return receiving


def with_headers(send: Send, host: str) -> Send:
    """Return a ``send`` that adds the security headers to each answer."""
    extra = {**HEADERS, "content-security-policy": CONTENT_POLICY.format(host=host)}
    raw = [(key.encode(), value.encode("latin-1")) for key, value in extra.items()]

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *raw]}
        await send(message)

    return sending


async def _refuse(
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    status: int,
    code: str,
    message: str,
    headers: dict[str, str] | None = None,
) -> None:
    error = {"code": code, "message": message, "fault": "remote", "session_runs": None, "retry_after_s": None}
    await JSONResponse({"error": error}, status_code=status, headers=headers)(scope, receive, send)


def is_loopback(host: str) -> bool:
    """Whether an address to answer at is this machine's alone."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
