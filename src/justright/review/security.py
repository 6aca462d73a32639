"""Who may talk to the review page: the browser that was given its address, from that page, in small messages.

The token is the first part of every path. So there is no cookie that a browser would send along for another site, or
to another program on another port, and without the token nothing answers. The rest guards against a page elsewhere
that learned the address: names that lead here by a trick (Host), requests sent from other sites (Origin), long bodies.
"""

from __future__ import annotations

import ipaddress
import secrets
import socket
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 256 * 1024  # bytes of a request; an action that lists the most images it may, fits
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
    """Where the page is served: the address listened on, and the token."""

    host: str
    port: int
    token: str

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host == "localhost" or (_is_address(self.host) and ipaddress.ip_address(self.host).is_loopback)

    @property
    def url(self) -> str:
        """The address to open in a browser, token included."""
        host = "127.0.0.1" if self.is_wildcard else f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/{self.token}/"

    @property
    def is_wildcard(self) -> bool:
        """Whether it listens on every address of the machine."""
        return _is_address(self.host) and ipaddress.ip_address(self.host).is_unspecified

    def knows(self, host: str) -> bool:
        """Whether a Host header names this server: a foreign name that leads here is refused."""
        name, colon, port = host.rpartition(":")
        if not colon or port.endswith("]"):  # no port, or the colons of an IPv6 address
            name, port = host, "80"
        if port != str(self.port) or not name.strip("[]"):  # a request without a Host header has an empty name
            return False
        if name in (*LOOPBACK, self.host, f"[{self.host}]"):
            return True
        # Listening everywhere: any address of this machine, or its own name. A rebound name is neither.
        return self.is_wildcard and (_is_address(name.strip("[]")) or name == socket.gethostname())

    def admits(self, path: str) -> bool:
        """Whether a path begins with the token."""
        first, slash, _ = path[1:].partition("/")
        return bool(slash) and secrets.compare_digest(first.encode(), self.token.encode())


class Guard:
    """Lets a request through to `app`, without the token in its path, or refuses it."""

    def __init__(self, app: ASGIApp, access: Access):
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise RuntimeError("the review page speaks HTTP only")

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refusal(scope)
        body = None if refused else await _body(receive)
        if body is None:
            status, text = refused or TOO_LONG
            # what is left of a refused body is not read: the connection ends here
            await PlainTextResponse(text, status, {"connection": "close"})(scope, receive, sending)
            return
        inside = scope["path"][len(self.access.token) + 1 :]
        inner = {**scope, "path": inside, "raw_path": inside.encode()}
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replaying() -> Message:
            return waiting.pop() if waiting else await receive()

        await self.app(inner, replaying, sending)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        if sum(len(name) + len(value) for name, value in scope["headers"]) + len(scope["path"]) > MAX_HEAD:
            return 431, "The request is too long."
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not self.access.knows(headers.get("host", "")):
            return 421, "This name does not lead here."
        if not self.access.admits(scope["path"]):
            return 403, "The address lacks the token. Open the address that `justright review` printed."
        is_read = scope["method"] in ("GET", "HEAD")
        is_opening = is_read and headers.get("sec-fetch-mode") == "navigate"
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") and not is_opening:
            return 403, "Requests from other sites are refused."
        if not is_read and headers.get("origin", f"http://{headers['host']}") != f"http://{headers['host']}":
            return 403, "Requests from other sites are refused."
        if not is_read and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "Expected application/json."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:12]) > MAX_BODY:
            return TOO_LONG
        return None


async def _body(receive: Receive) -> bytes | None:
    """The whole body, None if it is too long (one sent in chunks tells no length before) or its sender has gone."""
    body, is_more = b"", True
    while is_more and len(body) <= MAX_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body, is_more = body + message.get("body", b""), message.get("more_body", False)
    return body if len(body) <= MAX_BODY else None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
