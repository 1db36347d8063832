"""The frame around every request: its id, its line in the log, its metrics, and errors as v3 replies.

Whatever goes wrong inside, a client gets JSON with a message; what it may not see goes to the log by type and place.
"""

import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware
from multidict import istr

from proxy import errors
from proxy.kit.clock import Clock
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.request_ids import REQUEST_ID, RequestIds
from proxy.telemetry.tracing import Tracing
from proxy.web import ops
from proxy.web.client_address import ClientAddresses
from proxy.web.server import PLAIN
from proxy.web.v3 import near_misses, replies
from proxy.web.v3.parameters import Parameters, Style
from proxy.web.v3.routes import BILL, CLIENT, RECEIPT

log = structlog.get_logger()

AUTHORITY = re.compile(r"[a-z0-9.-]{1,253}:\d{1,5}", re.IGNORECASE)  # of a CONNECT: RFC 9110 §9.3.6
X_REQUEST_ID, TRACEPARENT = istr("X-Request-Id"), istr("traceparent")  # an istr is not folded at every look-up


Framed = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Frame:
    """What is around every request."""

    def __init__(self, metrics: Metrics, clock: Clock, addresses: ClientAddresses) -> None:
        self._metrics = metrics
        self._addresses = addresses
        self._clock = clock
        self._log = structlog.get_logger().bind()
        self._informs = self._log.is_enabled_for(logging.INFO)
        self._debugs = self._log.is_enabled_for(logging.DEBUG)
        self._ids = RequestIds()

    def middleware(self) -> Middleware:
        """For aiohttp's router, whichever route it finds."""

        @web.middleware
        async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._around(request, handler, _route(request))

        return around

    def of(self, handler: Handler, route: str) -> Framed:
        """A handler with its frame, for who has found it without the router."""

        def framed(request: web.Request) -> Awaitable[web.StreamResponse]:
            return self._around(request, handler, route)

        return framed

    async def _around(self, request: web.Request, handler: Handler, route: str) -> web.StreamResponse:
        started = self._clock.monotonic()
        headers = request.headers
        request_id = self._ids.resolve(headers.get(X_REQUEST_ID), headers.get(TRACEPARENT), request.raw_path)
        REQUEST_ID.set(request_id)
        kind = None
        try:
            try:
                response = await handler(request)
            except Exception as error:
                known = self._known(error, request)
                response, kind = failed(known, request), type(known).__name__
            response.headers[X_REQUEST_ID] = request_id
            self._note(request, response.status, route, kind, self._clock.monotonic() - started)
            return response
        finally:
            REQUEST_ID.set("")  # the connection's task goes on to the next request, or to what is none

    def _note(self, request: web.Request, status: int, route: str, kind: str | None, seconds: float) -> None:
        """Count the request, and write its line: at debug for the checks of /healthz and the like, else at info."""
        self._metrics.requests[route, str(status)] += 1
        self._metrics.request_seconds.observe(route, seconds)
        if route in ops.PATHS:
            if self._debugs:
                self._log.debug("request completed", **self._line(request, status, route, kind, seconds))
        elif self._informs:
            self._log.info("request completed", **self._line(request, status, route, kind, seconds))

    def _line(self, request: web.Request, status: int, route: str, kind: str | None, seconds: float) -> dict[str, Any]:
        return _line(request, status, route, kind, seconds) | {"address": self._addresses.of(request).address}

    def _known(self, error: Exception, request: web.Request) -> errors.BridgeError:
        """The error that the client is told."""
        if isinstance(error, errors.BridgeError):
            if isinstance(error, errors.ServerError) and not isinstance(error, errors.Overloaded):
                self._log.warning("request failed", exc_info=error)
            return error
        if isinstance(error, web.HTTPException):
            return _from_http(error, request)
        # the last resort, so that no client ever sees a trace
        self._log.error("internal error caught", exc_info=error)
        return errors.ServerError(f"Internal error (request {REQUEST_ID.get()})")


def _line(request: web.Request, status: int, route: str, kind: str | None, seconds: float) -> dict[str, Any]:
    """The fields of a request's log line: nothing that a client chose, for that may be its apikey. `parts` and `cache`
    are there where parts were asked for, `error` where the reply is one."""
    method = request.method if request.method in hdrs.METH_ALL else "other"
    line = {"method": method, "route": route, "status": status, "ms": round(seconds * 1000, 1)}
    client, receipt = request.get(CLIENT), request.get(RECEIPT)
    if client is not None:
        line |= {"application": client.application.name, "key": client.key}
    if receipt is not None and (receipt.source or receipt.cost):
        line |= {"parts": receipt.cost, "cache": receipt.source}
    if kind is not None:
        line["error"] = kind
    return line


def traced(tracing: Tracing) -> Middleware:
    """A span around all of that, for where tracing is on. What a request cost and saved is in its reply's headers."""

    @web.middleware
    async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
        with tracing.request(request.headers.get(TRACEPARENT)) as span:
            response = await handler(request)
            route, headers = _route(request), response.headers
            span.update_name(route)
            known = {
                "http.route": route,
                "http.response.status_code": response.status,
                "v3bridge.request": headers.get(X_REQUEST_ID),
                "v3bridge.application": client.application.name if (client := request.get(CLIENT)) else None,
                "v3bridge.parts": int(headers.get("X-Parts-Cost", 0)),
                "v3bridge.cache": headers.get("X-Cache"),
            }
            span.set_attributes({name: value for name, value in known.items() if value is not None})
            if response.status >= 500:
                tracing.failed(span)
            return response

    return around


def _route(request: web.Request) -> str:
    """The path's pattern: nothing that a client chose."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else "unknown"


def failed(error: errors.BridgeError, request: web.Request) -> web.Response:
    """An error as v3's reply, written as the request asks for."""
    try:
        style = Parameters(request.raw_path).style()
    except errors.BridgeError:
        style = Style()
    response, bill = replies.failed(error, style, request), request.get(BILL)
    return replies.account(response, *bill) if bill else response


def _from_http(error: web.HTTPException, request: web.Request) -> errors.BridgeError:
    """aiohttp's own refusals."""
    if request.method == "CONNECT":
        target = request.raw_path if AUTHORITY.fullmatch(request.raw_path) else None  # nothing else: it could be a key
        log.warning("CONNECT refused", target=target)
        return errors.MethodNotAllowed("CONNECT is refused: this is no proxy for https; " + PLAIN)
    if error.status == 405:
        return errors.MethodNotAllowed(f"{request.method[:20]} is not allowed here; v3 is read with GET")
    if error.status == 404:
        return errors.NotFound(near_misses.message(request.path))
    return errors.BadRequest("the request cannot be served") if error.status < 500 else errors.ServerError(error.reason)
