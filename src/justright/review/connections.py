"""How many connections may be open, and how long a request may take to arrive.

Whoever opens a connection is a stranger until a request on it brought the token. Strangers have some of the places:
when these are taken, the stranger who has waited longest is sent away, so that a newcomer always has time to ask. The
other places are kept for those with the token.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from justright.review.security import Access


@dataclass(frozen=True)
class ConnectionLimits:
    """What the server bears."""

    n_connections: int = 256  # how many may be open at once; a request on one more is answered with 503
    n_strangers: int = 96  # how many of them may be without the token; for one more, the oldest of these is closed
    seconds: float = 20.0  # for a request to arrive whole, line, headers and body; then its connection is closed
    seconds_idle: int = 30  # how long a connection is kept open between two requests


LIMITS = ConnectionLimits()  # those of `justright review`


class GuardedConnection(H11Protocol):
    """One connection of the server. `strangers` are those without the token, the oldest first, shared by all."""

    def __init__(
        self, access: Access, limits: ConnectionLimits, strangers: dict[GuardedConnection, None], **uvicorn: Any
    ):
        super().__init__(**uvicorn)
        self.access = access
        self.limits = limits
        self.strangers = strangers
        self._clock: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin as a stranger, in the place of the oldest one if there is no other."""
        super().connection_made(transport)
        self.strangers[self] = None
        if len(self.strangers) > self.limits.n_strangers:
            oldest = next(iter(self.strangers))
            del self.strangers[oldest]
            self.connections.discard(oldest)  # it counts no longer, though the loop closes it a moment later
            oldest.transport.abort()
        self._start_clock()

    def data_received(self, data: bytes) -> None:
        """Read on. With the token it is no longer a stranger's; with a whole request the clock stops."""
        super().data_received(data)
        if self in self.strangers and self.scope is not None and self.access.admits(self.scope["path"]):
            del self.strangers[self]
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._start_clock()
        else:
            self._stop_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self.strangers.pop(self, None)
        self._stop_clock()
        super().connection_lost(exc)

    def _start_clock(self) -> None:
        if self._clock is None:
            self._clock = self.loop.call_later(self.limits.seconds, self.transport.close)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
