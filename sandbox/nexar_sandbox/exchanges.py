"""Middleware of the query service and the token endpoint: journals every request and injects faults.

Handlers get an `Exchange`, by which they record billed parts and read the injected fault. Transport faults reset the
connection, or truncate, replace or slow down the response. The bodies of 5xx and 429 are our own: the contract has none
(contract graphql.md §3.2).
"""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import orjson
from aiohttp import web

from nexar_sandbox import faults, journal, pages


@dataclass(slots=True)
class Exchange:
    entry: journal.JournalEntry
    journal: journal.RequestJournal
    injected: faults.InjectedFault = faults.NO_FAULT
    request: web.Request | None = None

    @property
    def origin(self) -> str:
        return "" if self.request is None else str(self.request.url.origin())

    def record_fault(self, kind: type[faults.Fault]) -> None:
        """Record that a fault took effect."""
        self.journal.record_fault(self.entry, faults.kind_name(kind))


Handler: TypeAlias = Callable[[web.Request, Exchange], Awaitable[web.Response]]


class ExchangeMiddleware:
    def __init__(self, faults_: faults.FaultInjector, requests: journal.RequestJournal) -> None:
        self._injector, self._journal = faults_, requests

    def wrap(self, service: str, handler: Handler) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Wrap a handler for aiohttp. `service` is "graphql" or "token"."""

        async def handle(request: web.Request) -> web.StreamResponse:
            injected = self._injector.draw(service) if self._injector.active else faults.NO_FAULT
            exchange, is_complete = Exchange(self._journal.begin(service), self._journal, injected, request), False
            try:
                # The response of the handler, or of a fault that replaces it.
                original = replacement_response(injected.fault, service) if injected.fault else None
                if original is None:
                    original = await handler(request, exchange)
                else:
                    await request.read()
                response, is_complete = await _deliver(request, exchange, original)
            except web.HTTPException as refused:
                exchange.entry.status, is_complete = refused.status, True
                raise
            finally:
                self._journal.finish(exchange.entry, is_complete=is_complete)
            return response

        return handle

    @contextmanager
    def record(self, service: str, request: web.Request) -> Iterator[Exchange]:
        """Journal a WebSocket operation, or a request caused by a page of the sandbox. No faults are injected."""
        exchange = Exchange(self._journal.begin(service), self._journal, request=request)
        try:
            yield exchange
        finally:
            exchange.entry.status = exchange.entry.status or 200
            self._journal.finish(exchange.entry, is_complete=True)


async def _deliver(request: web.Request, exchange: Exchange, original: web.Response) -> tuple[web.StreamResponse, bool]:
    """Send the response, modified by faults. Returns it, and whether the original was delivered completely."""
    if exchange.injected is faults.NO_FAULT:
        exchange.entry.status = original.status
        return original, await send(request, original)
    if exchange.injected.delay:
        exchange.record_fault(faults.LatencyFault)
        await asyncio.sleep(exchange.injected.delay)
    fault = exchange.injected.fault
    if isinstance(fault, TRANSPORT_FAULTS):
        exchange.record_fault(type(fault))
    if isinstance(fault, faults.ResetFault):
        reset_connection(request)
        return original, False
    delivered = malformed_response(original, fault) if isinstance(fault, faults.MalformedBodyFault) else original
    exchange.entry.status = delivered.status
    if isinstance(fault, faults.TruncationFault):
        return await send_truncated(request, delivered, fault.after), False
    if isinstance(fault, faults.SlowBodyFault):
        return await send_slowly(request, delivered, fault.ms / 1000)
    return delivered, await send(request, delivered) and delivered is original


# Faults that are applied here; the services apply the others.
TRANSPORT_FAULTS = (
    faults.ResetFault,
    faults.ServerErrorFault,
    faults.RateLimitFault,
    faults.TruncationFault,
    faults.MalformedBodyFault,
    faults.SlowBodyFault,
)

_SERVER_ERRORS = {
    "graphql": {"errors": [{"message": "Unexpected Execution Error"}], "data": None},
    "token": {"error": "server_error"},
}
_NO_LINGER = struct.pack("ii", 1, 0)


def replacement_response(fault: faults.RandomFault, service: str) -> web.Response | None:
    """Return the response of a fault that replaces the handler; None: call it. The response for a reset is not sent."""
    if isinstance(fault, faults.ServerErrorFault):
        headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
        if fault.body == "json":
            body = orjson.dumps(_SERVER_ERRORS[service])
            return web.Response(body=body, status=fault.status, headers=headers, content_type="application/json")
        return web.Response(
            text=pages.gateway_error(fault.status), status=fault.status, headers=headers, content_type="text/html"
        )
    if isinstance(fault, faults.RateLimitFault):
        return web.Response(text="Too many requests", status=429, headers={"Retry-After": str(fault.retry_after)})
    return web.Response() if isinstance(fault, faults.ResetFault) and fault.when == "before" else None


def malformed_response(original: web.Response, fault: faults.MalformedBodyFault) -> web.Response:
    if fault.body == "html":
        return web.Response(text=pages.gateway_error(200), content_type="text/html")
    body = _body(original)
    return web.Response(body=body[: len(body) // 2] if fault.body == "half" else b"", headers=_headers(original))


async def send(request: web.Request, response: web.StreamResponse) -> bool:
    """Send the response. Returns whether the connection was open."""
    try:
        await response.prepare(request)
        await response.write_eof()
    except ConnectionError:
        return False
    return True


async def send_truncated(request: web.Request, original: web.Response, after: int) -> web.StreamResponse:
    """Announce the full Content-Length, send the first `after` bytes (never all), and close the connection."""
    body = _body(original)
    announced = _announced_response(original, body)
    try:
        await announced.prepare(request)
        await announced.write(body[: min(after, len(body) - 1)])
    except ConnectionError:
        return announced
    if request.transport is not None:
        request.transport.close()
    return announced


async def send_slowly(request: web.Request, original: web.Response, seconds: float) -> tuple[web.StreamResponse, bool]:
    """Send the body byte by byte, `seconds` apart. Returns the response and whether the connection stayed open."""
    body = _body(original)
    announced = _announced_response(original, body)
    try:
        await announced.prepare(request)
        for position in range(len(body)):
            await asyncio.sleep(seconds)
            await announced.write(body[position : position + 1])
        await announced.write_eof()
    except ConnectionError:
        return announced, False
    return announced, True


def reset_connection(request: web.Request) -> None:
    """Reset the connection (RST), discarding unread and unsent data."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
    transport.abort()


def _announced_response(original: web.Response, body: bytes) -> web.StreamResponse:
    announced = web.StreamResponse(status=original.status, headers=_headers(original))
    announced.content_length = len(body)
    return announced


def _headers(original: web.Response) -> dict[str, str]:
    return {name: value for name, value in original.headers.items() if name != "Content-Length"}


def _body(original: web.Response) -> bytes:
    return original.body if isinstance(original.body, bytes) else b""
