"""Client connections and their limits: how many there are, and how long one may take to send a head or read a response.

aiohttp closes a connection that is idle. What it does not bound is bounded here, so that clients that send or read
slowly, on purpose or not, hold nothing for long (RFC 9110 §15.5.9, CWE-400).
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import structlog
from aiohttp.web import StreamResponse
from aiohttp.web_protocol import RequestHandler

from proxy import config

CHECKS_KEPT_OPEN = 64  # connections beyond the limit that are accepted, so that health checks get a response
READ_AT_LEAST = 16_384  # bytes that a client must read in `write_seconds`
PIPELINE_SECONDS = 0.05  # between two looks at whether requests are left that were sent together
LOG_SECONDS = 10.0  # between two log lines about refused connections

Refuse = Callable[[bytes], bytes | None]  # the response to bytes that are a request which is not even parsed

log = structlog.get_logger()


class Limits(NamedTuple):
    """`connections` is their number in this process. A head must be whole `header_seconds` after its first byte; a
    connection may be idle for `idle_seconds`; a client must read at least 16 KiB of a response in `write_seconds`."""

    connections: int = 1_000
    header_seconds: float = 20.0
    idle_seconds: float = 120.0
    write_seconds: float = 30.0

    @classmethod
    def of(cls, listen: config.ListenSettings) -> "Limits":
        """The limits of a configuration."""
        return cls(listen.connections, listen.header_seconds, listen.idle_seconds, listen.write_seconds)


class Census:
    """The open connections. At the limit the oldest idle one is closed for a new one, as nginx does."""

    def __init__(self, limits: Limits, loop: asyncio.AbstractEventLoop, refuse: Refuse | None = None) -> None:
        self.limits = limits
        self.refuse = refuse
        self._loop = loop
        self._open: dict[LimitedHandler, None] = {}
        self._logged = -LOG_SECONDS

    def opened(self, handler: "LimitedHandler") -> int:
        """How many connections there are beyond the limit, with this one: all of them have a request under way."""
        if len(self._open) >= self.limits.connections:
            self._make_room()
        self._open[handler] = None
        return len(self._open) - self.limits.connections

    def closed(self, handler: "LimitedHandler") -> None:
        """One connection fewer."""
        self._open.pop(handler, None)

    def _make_room(self) -> None:
        if self._loop.time() - self._logged >= LOG_SECONDS:
            self._logged = self._loop.time()
            log.warning("connection limit reached", open=len(self._open), limit=self.limits.connections)
        idle = next((handler for handler in self._open if handler.is_idle()), None)
        if idle is not None:
            del self._open[idle]
            idle.force_close()


class LimitedHandler(RequestHandler):
    """aiohttp's connection handler within the limits. `crowded`: it is beyond the limit of connections, and only health
    checks get a response on it."""

    __slots__ = ("_census", "_head_timer", "_responses", "_unread", "_write_timer", "crowded")

    def __init__(self, manager: object, *, census: Census, **settings: object) -> None:
        super().__init__(manager, keepalive_timeout=census.limits.idle_seconds, **settings)  # type: ignore[arg-type]
        self._census = census
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._unread = 0
        self._responses = 0
        self.crowded = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        beyond = self._census.opened(self)
        self.crowded = beyond > 0
        if beyond > CHECKS_KEPT_OPEN:
            self._abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._census.closed(self)
        self._stop_timers()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_refused(data):
            return
        before = self._request_count
        super().data_received(data)
        if self._request_count != before:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None
        elif self._head_timer is None and self.is_idle():
            self._head_timer = self._loop.call_later(self._census.limits.header_seconds, self._abort)

    def _is_refused(self, data: bytes) -> bool:
        """Whether the request that these bytes are has got its response here."""
        refuse, transport = self._census.refuse, self.transport
        if refuse is None or transport is None or self._head_timer is not None or not self.is_idle():
            return False
        if transport.get_write_buffer_size() or (response := refuse(data)) is None:
            return False
        transport.write(response)
        return True

    def is_idle(self) -> bool:
        """Whether every request that came has its whole response."""
        return self._responses == self._request_count

    async def _handle_request(self, *request: Any) -> tuple[StreamResponse, bool]:
        # aiohttp waits for the next request only in a later turn of the event loop, and under load the request comes
        # first: its own state would not tell that this connection is idle.
        try:
            return await super()._handle_request(*request)
        finally:
            self._responses += 1

    def eof_received(self) -> bool:  # type: ignore[override] # asyncio reads the value
        """A client that has closed its side still gets the responses to what it sent (RFC 9112 §9.6)."""
        if self.is_idle():
            return False
        self._close_after_responses()
        return True

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _close_after_responses(self) -> None:
        if self.is_idle():
            self.force_close()
        elif self._messages:  # `_close` would drop them
            self._loop.call_later(PIPELINE_SECONDS, self._close_after_responses)
        else:
            self._close = True

    def _watch_reader(self) -> None:
        self._unread = 0 if self.transport is None else self.transport.get_write_buffer_size()
        self._write_timer = self._loop.call_later(self._census.limits.write_seconds, self._check_reader)

    def _check_reader(self) -> None:
        if self.transport is None:
            return
        if self._unread - self.transport.get_write_buffer_size() < READ_AT_LEAST:
            self._abort()
        else:
            self._watch_reader()

    def _abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _stop_timers(self) -> None:
        for timer in (self._head_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
