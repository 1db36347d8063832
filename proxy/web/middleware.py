"""The frame around every request: its id, its line in the log, its metrics, and errors as v3 replies.

Whatever goes wrong inside, a client gets JSON with a message; what it may not see goes to the log by type and place.
"""

import secrets
from itertools import count

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from proxy import errors
from proxy.kit.clock import Clock
from proxy.telemetry.metrics import Metrics
from proxy.web.v3 import replies
from proxy.web.v3.parameters import Parameters, Style
from proxy.web.v3.routes import APPLICATION


def frame(metrics: Metrics, clock: Clock) -> Middleware:
    """The one middleware of the service."""
    log = structlog.get_logger().bind()
    process, numbers = secrets.token_hex(4), count()  # together unlike any other process's ids, at no cost

    @web.middleware
    async def around(request: web.Request, handler: Handler) -> web.StreamResponse:
        started = clock.monotonic()
        request_id = f"{process}{next(numbers):08x}"
        try:
            response = await handler(request)
        except errors.BridgeError as error:
            if isinstance(error, errors.ServerError):
                log.warning("upstream trouble", request=request_id, exc_info=error)
            response = _failed(error, request)
        except web.HTTPException as error:
            response = _failed(_from_http(error, request), request)
        except Exception as error:  # the last resort, so that no client ever sees a trace
            log.error("a request failed inside", request=request_id, exc_info=error)
            response = _failed(errors.ServerError(f"Internal error (request {request_id})"), request)
        response.headers["X-Request-Id"] = request_id
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
            request=request_id,
        )
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
