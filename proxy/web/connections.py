"""Limits of client connections: their number, the time for a request head, and the speed of reading a response.
aiohttp itself limits only how long a connection is idle. Bodies have their limits in `messages.py`."""

import asyncio
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import structlog

from proxy import config

MIN_READ_BYTES = 16_384  # that a client must read in `write_seconds`
WATCH_SECONDS = 0.5  # between two looks at all connections, so that a request needs no timer
LOG_SECONDS = 10.0  # between two log lines about refused connections, or about slow readers

log = structlog.get_logger()


class Limits(NamedTuple):
    """Limits of client connections: how many are open, how long a stop waits for requests and for idle connections, how
    long a head may take, a connection be idle and a client read MIN_READ_BYTES of a response, and bytes of responses
    that wait to be read, over all connections."""

    connections: int = 1000
    stop_seconds: float = config.STOP_SECONDS
    drain_seconds: float = 2.0
    header_seconds: float = 20.0
    # Longer than proxies in front keep connections (nginx: 60 s), so that none sends a request as this side closes.
    idle_seconds: float = 120.0
    write_seconds: float = 30.0
    unread_bytes: int = 134_217_728


@dataclass(eq=False)
class Connections:
    """The open connections. At the limit a new one replaces the one that is idle for the longest time, as in nginx."""

    limits: Limits  # those of a reload apply also to open connections
    open: set["Connection"] = field(default_factory=set)
    _logged: dict[str, float] = field(default_factory=dict)

    async def watch(self) -> None:
        """Close the connections whose clients take too long, until this is cancelled."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            limits, now = self.limits, asyncio.get_running_loop().time()
            for connection in list(self.open):
                unread = connection.unread_bytes()
                # Progress, not completion: a long response over a slow line is fine.
                if not unread or unread > connection.unread or connection.unread - unread >= MIN_READ_BYTES:
                    connection.unread, connection.read_at = unread, now
                seconds = limits.header_seconds if connection.in_head else limits.idle_seconds
                is_over = now - connection.since > seconds and connection.is_idle()
                if is_over or now - connection.read_at > limits.write_seconds:
                    connection.abort()

    def warn(self, event: str, **fields: int) -> None:
        """Log an event that may come often, once in LOG_SECONDS."""
        now = asyncio.get_running_loop().time()
        if now - self._logged.get(event, -LOG_SECONDS) >= LOG_SECONDS:
            self._logged[event] = now
            log.warning(event, **fields)


class Connection(asyncio.Protocol):
    """Connection with the limits, between its transport and aiohttp's protocol. One `over_limit` serves health checks
    only. `since`: when it became idle, or the first byte of a head came; `in_request` from the end of a head to that of
    the response. `read_at`: when its client last read, and how many bytes were `unread` then."""

    def __init__(self, connections: Connections, http: asyncio.Protocol) -> None:
        self._connections, self._http, self._time = connections, http, asyncio.get_running_loop().time
        self.in_head = self.in_request = self.over_limit = False
        self.unread = 0
        self.since = self.read_at = self._time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.unread_bytes = self.transport.get_write_buffer_size
        opened, limit = self._connections.open, self._connections.limits.connections
        if len(opened) >= limit:
            self._connections.warn("connection limit reached", open=len(opened), limit=limit)
            # Beyond the limit none is idle.
            if idle := [connection for connection in opened if connection.is_idle()]:
                min(idle, key=lambda connection: connection.since).abort()
        opened.add(self)
        self._http.connection_made(transport)
        excess = len(opened) - limit
        self.over_limit = excess > 0
        if excess > config.HEALTH_CHECK_CONNECTIONS:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.open.discard(self)
        self._http.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # From the first byte, not renewed by further ones: a client that sends one byte at a time runs out of time.
        if not self.in_request and not self.in_head:
            self.in_head = True
            self.since = self._time()
        self._http.data_received(data)

    def pause_writing(self) -> None:
        self.unread, self.read_at = self.unread_bytes(), self._time()
        opened, limit = self._connections.open, self._connections.limits.unread_bytes
        total = sum(connection.unread_bytes() for connection in opened)
        if total > limit:
            self._connections.warn("slow readers disconnected", unread_bytes=total, limit=limit)
            # The slowest first; this response may be longer alone.
            for connection in sorted(opened - {self}, key=lambda connection: connection.read_at):
                if (unread := connection.unread_bytes()) and total > limit:
                    total -= unread
                    connection.abort()
        self._http.pause_writing()

    def resume_writing(self) -> None:
        self._http.resume_writing()

    def is_idle(self) -> bool:
        return not self.in_request and not self.unread_bytes()

    def abort(self) -> None:
        """Close the connection at once, without waiting for the client to read the rest."""
        self._connections.open.discard(self)
        self.transport.abort()
