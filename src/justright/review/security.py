"""Access control of the review page: token, Host, Origin, size of requests, number of connections.

The token is the first part of every path. There is no cookie, which a browser would also send for other sites or to
other ports, and without the token every request is rejected. The other checks protect against a foreign page that
learned the address: rebound names (Host), requests from other sites (Origin), long bodies. starlette's
TrustedHostMiddleware does not compare ports, and cannot allow all addresses but no names (for 0.0.0.0).

A connection is unauthorized until a request on it had the token. Unauthorized connections are limited to a part of all
connections: one more closes the oldest of them, so a new connection is always served. The others are reserved for
connections with the token.
"""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
from dataclasses import dataclass
from typing import Any

import h11
from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_BODY = 256 * 1024  # bytes of a request; enough for the longest action
MAX_HEAD = 32 * 1024  # bytes of all headers and of the path
TOO_LONG = (413, "The request is too long.")
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Access:
    """The address of the page and its token."""

    host: str
    port: int
    token: str

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        address = _address(self.host)
        return self.host == "localhost" or (address is not None and address.is_loopback)

    @property
    def url(self) -> str:
        """The address to open in a browser, token included."""
        host = "127.0.0.1" if self.is_wildcard else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/{self.token}/"

    @property
    def is_wildcard(self) -> bool:
        """Whether it listens on every address of the machine."""
        address = _address(self.host)
        return address is not None and address.is_unspecified

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server."""
        name, colon, port = host.rpartition(":")
        if not colon or port.endswith("]"):  # no port; the colons belong to an IPv6 address
            name, port = host, "80"
        if port != str(self.port) or not name.strip("[]"):  # a request without a Host header has an empty name
            return False
        if name in (*LOOPBACK, self.host, f"[{self.host}]"):
            return True
        # on all interfaces: any address, or the name of this machine, but no rebound name
        return self.is_wildcard and (_address(name.strip("[]")) is not None or name == socket.gethostname())

    def admits(self, path: str) -> bool:
        """Whether a path begins with the token."""
        first, slash, _ = path[1:].partition("/")
        return bool(slash) and secrets.compare_digest(first.encode(), self.token.encode())


class Guard:
    """ASGI middleware that rejects a request, or passes it to `app` without the token in its path."""

    def __init__(self, app: ASGIApp, access: Access):
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            raise RuntimeError("the review page accepts HTTP only")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        problem = self._problem(scope)
        body = None if problem else await _body(receive)
        if body is None:
            status, text = problem or TOO_LONG
            # the rest of a rejected body is not read
            await PlainTextResponse(text, status, {"connection": "close"})(scope, receive, send_with_headers)
            return
        inside = scope["path"][len(self.access.token) + 1 :]
        inner = {**scope, "path": inside, "raw_path": inside.encode()}
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_body() -> Message:
            return waiting.pop() if waiting else await receive()

        await self.app(inner, receive_body, send_with_headers)

    def _problem(self, scope: Scope) -> tuple[int, str] | None:
        if sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope["path"]) > MAX_HEAD:
            return 431, "The request is too long."
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not self.access.knows(headers.get("host", "")):
            return 421, "Unknown host name."
        if not self.access.admits(scope["path"]):
            return 403, "The address lacks the token. Open the address that `justright review` printed."
        is_read = scope["method"] in ("GET", "HEAD")
        is_navigation = is_read and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") and not is_navigation:
            return 403, "Requests from other sites are not allowed."
        if not is_read and headers.get("origin", f"http://{headers['host']}") != f"http://{headers['host']}":
            return 403, "Requests from other sites are not allowed."
        if not is_read and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "Expected application/json."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:12]) > MAX_BODY:
            return TOO_LONG
        return None


async def _body(receive: Receive) -> bytes | None:
    """Read the whole body; None if it is too long (chunked bodies have no length header) or the client disconnected."""
    body, is_more = b"", True
    while is_more and len(body) <= MAX_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body, is_more = body + message.get("body", b""), message.get("more_body", False)
    return body if len(body) <= MAX_BODY else None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of the server."""

    n_connections: int = 256  # open connections; a request on one more gets status 503
    n_unauthorized: int = 96  # of them without the token; for one more, the oldest is closed
    seconds: float = 20.0  # for a complete request to arrive before its connection is closed
    seconds_idle: int = 30  # for which a connection is kept open between two requests


LIMITS = ConnectionLimits()  # defaults of `justright review`


class GuardedConnection(H11Protocol):
    """One connection; `unauthorized` are all connections without the token, the oldest first."""

    def __init__(
        self, access: Access, limits: ConnectionLimits, unauthorized: dict[GuardedConnection, None], **uvicorn: Any
    ):
        super().__init__(**uvicorn)
        self.access = access
        self.limits = limits
        self.unauthorized = unauthorized
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start unauthorized; disconnect the oldest such connection if there are too many."""
        super().connection_made(transport)
        self.unauthorized[self] = None
        if len(self.unauthorized) > self.limits.n_unauthorized:
            oldest = next(iter(self.unauthorized))
            del self.unauthorized[oldest]
            self.connections.discard(oldest)  # it no longer counts, though the loop closes it later
            oldest.transport.abort()
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Read data. A request with the token authorizes the connection; a complete request stops the timer."""
        super().data_received(data)
        if self in self.unauthorized and self.scope is not None and self.access.admits(self.scope["path"]):
            del self.unauthorized[self]
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._start_timer()
        else:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and stop its timer."""
        self.unauthorized.pop(self, None)
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self.limits.seconds, self.transport.close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
