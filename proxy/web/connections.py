"""Limits of client connections: their number, the time to send a request head, and the speed of reading a response.

aiohttp itself limits only how long a connection is idle. These limits bound what slow clients can hold (RFC 9110
§15.5.9, CWE-400).
"""

import asyncio
from contextlib import suppress
from typing import Any, NamedTuple

import structlog

from proxy import config
from proxy.kit.aiohttp_internals.server import ConnectionHandler

MIN_READ_BYTES = 16_384  # that a client must read in `write_seconds`
LOG_SECONDS = 10.0  # between two log lines about refused connections, or about slow readers
JUDGED_SECONDS = 1.0  # after which the speed of a reader counts before that of newer ones

log = structlog.get_logger()


class ConnectionLimits(NamedTuple):
    """`connections`: their number in this process. `header_seconds`: from the first to the last byte of a request head.
    `idle_seconds`: between requests. `write_seconds`: in which a client must read at least 16 KiB of a response.
    `unread_bytes`: of responses that wait to be read, over all connections."""

    connections: int = 1_000
    header_seconds: float = 20.0
    idle_seconds: float = 120.0
    write_seconds: float = 30.0
    unread_bytes: int = 134_217_728

    @classmethod
    def from_settings(cls, listen: config.ListenSettings) -> "ConnectionLimits":
        return cls(
            listen.connections, listen.header_seconds, listen.idle_seconds, listen.write_seconds, listen.unread_bytes
        )


class ConnectionLimiter:
    """The open connections. At the limit a new one replaces the oldest idle one, as in nginx.

    `draining`: the program is about to stop, so each response is the last one of its connection.
    """

    def __init__(self, limits: ConnectionLimits, loop: asyncio.AbstractEventLoop) -> None:
        # Those of a reload apply also to open connections, except that these keep their idle time.
        self.limits = limits
        self.draining = False
        self._all_closed = asyncio.Event()
        self._loop = loop
        # A dict for its order: the oldest first.
        self._open: dict[LimitedConnection, None] = {}
        self._unread: dict[LimitedConnection, None] = {}
        self._logged: dict[str, float] = {}

    def open_connections(self) -> int:
        return len(self._open)

    def opened(self, connection: "LimitedConnection") -> int:
        """Add a connection; return how many there are beyond the limit. None of them is idle then."""
        if len(self._open) >= self.limits.connections:
            self._close_oldest_idle()
        self._open[connection] = None
        return len(self._open) - self.limits.connections

    def closed(self, connection: "LimitedConnection") -> None:
        self._open.pop(connection, None)
        self._unread.pop(connection, None)
        if self.draining and not self._open:
            self._all_closed.set()

    def waits_for_reader(self, connection: "LimitedConnection") -> None:
        """Note that a response waits to be read. Beyond `unread_bytes` the slowest readers are disconnected, but never
        the last one, whose response alone may be longer."""
        self._unread[connection] = None
        total, limit = sum(connection.unread_bytes() for connection in self._unread), self.limits.unread_bytes
        if total <= limit:
            return
        if self._is_to_be_logged("slow readers"):
            log.warning("slow readers disconnected", unread_bytes=total, limit=limit)
        others = [other for other in self._unread if other is not connection]
        for reader in sorted(others, key=LimitedConnection.reading_speed):
            total -= reader.unread_bytes()
            del self._unread[reader]
            reader.abort()
            if total <= limit:
                return

    def was_read(self, connection: "LimitedConnection") -> None:
        """Note that no response of a connection waits any more."""
        self._unread.pop(connection, None)

    async def drain(self, seconds: float) -> None:
        """Let clients move to new connections: each response says `Connection: close` from now on. Waits until no
        connection is left, at most so long.

        Idle connections stay open meanwhile: a request may be on its way on one, and closing it would lose it.
        """
        self.draining = True
        if self._open:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._all_closed.wait()

    def _close_oldest_idle(self) -> None:
        if self._is_to_be_logged("connection limit"):
            log.warning("connection limit reached", open=len(self._open), limit=self.limits.connections)
        idle = next((connection for connection in self._open if connection.is_idle()), None)
        if idle is not None:
            del self._open[idle]
            idle.force_close()

    def _is_to_be_logged(self, subject: str) -> bool:
        now = self._loop.time()
        if now - self._logged.get(subject, -LOG_SECONDS) < LOG_SECONDS:
            return False
        self._logged[subject] = now
        return True


class LimitedConnection(ConnectionHandler):
    """Connection handler with the limits. `over_limit`: there are too many connections; this one serves health checks
    only."""

    __slots__ = ("_head_timer", "_limiter", "_unread", "_unread_since", "_write_timer", "over_limit")

    def __init__(self, manager: object, *, limiter: ConnectionLimiter, **settings: Any) -> None:
        super().__init__(manager, keepalive_timeout=limiter.limits.idle_seconds, **settings)
        self._limiter = limiter
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._unread = 0  # bytes at `_unread_since`
        self._unread_since = 0.0
        self.over_limit = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        excess = self._limiter.opened(self)
        self.over_limit = excess > 0
        if excess > config.HEALTH_CHECK_CONNECTIONS:
            self.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._limiter.closed(self)
        self._stop_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # aiohttp parses the bytes in this call; the counter tells how many requests they completed.
        before = self.request_count
        super().data_received(data)
        if self.request_count > before:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None
        # From the first byte, not renewed by further ones: a client that sends one byte at a time runs out of time.
        elif self._head_timer is None and self.is_idle():
            self._head_timer = self.event_loop.call_later(self._limiter.limits.header_seconds, self.abort)

    def announces_close(self) -> bool:
        # After this response the connection is closed: of pipelined requests the last one says so.
        return self._limiter.draining and not self.has_queued_requests

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()
        self._limiter.waits_for_reader(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._limiter.was_read(self)
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def unread_bytes(self) -> int:
        """Return how many bytes of responses wait to be read."""
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def reading_speed(self) -> tuple[bool, float]:
        """Return the speed of the client in bytes a second; first, whether that says little yet."""
        seconds = self.event_loop.time() - self._unread_since
        return seconds < JUDGED_SECONDS, (self._unread - self.unread_bytes()) / max(seconds, JUDGED_SECONDS)

    def _watch_reader(self) -> None:
        self._unread = self.unread_bytes()
        self._unread_since = self.event_loop.time()
        self._write_timer = self.event_loop.call_later(self._limiter.limits.write_seconds, self._check_reader)

    def _check_reader(self) -> None:
        # Progress, not completion: a long response over a slow line is fine.
        if self._unread - self.unread_bytes() < MIN_READ_BYTES:
            self.abort()
        else:
            self._watch_reader()

    def abort(self) -> None:
        """Close the connection without waiting for unsent bytes, unlike close(): the client does not read them."""
        if self.transport is not None:
            self.transport.abort()

    def _stop_timers(self) -> None:
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
