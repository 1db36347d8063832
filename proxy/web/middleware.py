"""The frame around every request: its id, its line in the log, its metrics, and errors as v3 replies.

Whatever goes wrong inside, a client gets JSON with a message; what it may not see goes to the log by type and place.
"""

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from multidict import istr

from proxy import errors
from proxy.kit.clock import Clock
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.request_ids import REQUEST_ID, RequestIds
from proxy.telemetry.tracing import Tracing
from proxy.web.v3 import replies
from proxy.web.v3.parameters import Parameters, Style
from proxy.web.v3.routes import APPLICATION

X_REQUEST_ID, TRACEPARENT = istr("X-Request-Id"), istr("traceparent")  # an istr is not folded at every look-up


def frame(metrics: Metrics, clock: Clock) -> Middleware:
    """What is around every request."""
    log = structlog.get_logger().bind()
    ids = RequestIds()

    @web.middleware
    async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
        started = clock.monotonic()
        headers = request.headers
        request_id = ids.taken(headers.get(X_REQUEST_ID), headers.get(TRACEPARENT), request.raw_path)
        REQUEST_ID.set(request_id)
        try:
            response = await _answer(request, handler)
            response.headers[X_REQUEST_ID] = request_id
            seconds = clock.monotonic() - started
            route = _route(request)
            metrics.requests[route, str(response.status)] += 1
            metrics.request_seconds.observe(route, seconds)
            log.info(
                "request",
                route=route,
                status=response.status,
                ms=round(seconds * 1000, 1),
                application=request.get(APPLICATION),
            )
            return response
        finally:
            REQUEST_ID.set("")  # the connection's task goes on to the next request, or to what is none

    async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            return await handler(request)
        except errors.BridgeError as error:
            if isinstance(error, errors.ServerError):
                log.warning("upstream trouble", exc_info=error)
            return _failed(error, request)
        except web.HTTPException as error:
            return _failed(_from_http(error, request), request)
        except Exception as error:  # the last resort, so that no client ever sees a trace
            log.error("a request failed inside", exc_info=error)
            return _failed(errors.ServerError(f"Internal error (request {REQUEST_ID.get()})"), request)

    return around


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
                "v3bridge.application": request.get(APPLICATION),
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


def _failed(error: errors.BridgeError, request: web.Request) -> web.Response:
    try:
        style = Parameters(request.raw_path).style()
    except errors.BridgeError:
        style = Style()
    return replies.failed(error, style, request)


def _from_http(error: web.HTTPException, request: web.Request) -> errors.BridgeError:
    """aiohttp's own refusals."""
    if error.status == 405:
        return errors.MethodNotAllowed(f"{request.method[:20]} is not allowed here; v3 is read with GET")
    if error.status == 404:
        return errors.NotFound("there is no such path; v3's paths begin with /v3 or /api/v3")
    return errors.BadRequest("the request cannot be served") if error.status < 500 else errors.ServerError(error.reason)
