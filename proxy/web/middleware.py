"""Middleware around every request: request id, log line, metrics, and conversion of exceptions into v3 error responses.

A client always gets JSON with a message. What it must not see is logged, by type and place.
"""

import re
from collections.abc import Callable
from typing import Any

import structlog
from aiohttp import hdrs, web

from proxy import errors
from proxy.kit.clock import Clock
from proxy.telemetry import log as logging
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.request_ids import REDACTION, REQUEST_ID, TRACEPARENT, X_REQUEST_ID, RequestIds
from proxy.telemetry.seen import FailureDetail, SeenRequests
from proxy.v3.parsing import path_suggestions
from proxy.v3.parsing.request_parameters import RequestParameters, ResponseFormat
from proxy.web import operator_endpoints, routing
from proxy.web.client_address import ClientAddressResolver
from proxy.web.v3 import responses
from proxy.web.v3.routes import CLIENT, METADATA, USAGE

log = structlog.get_logger()

PLAIN = "this port speaks plain HTTP: send http:// URLs to it, or put a TLS server in front (docs/how-to/deploy.md)"
AUTHORITY = re.compile(r"[a-z0-9.-]{1,253}:\d{1,5}", re.IGNORECASE)  # of a CONNECT: RFC 9110 §9.3.6

# Of a dialect that is not v3: renders its errors.
ErrorRenderer = Callable[[errors.BridgeError, web.BaseRequest], web.Response]
ERRORS: web.RequestKey[ErrorRenderer] = web.RequestKey("errors")
# Of a response that has been rendered although it failed: logged and counted as if it had been raised.
FAILURE: web.RequestKey[errors.BridgeError | None] = web.RequestKey("failure")


class RequestMiddleware:
    """Handles every request of a configuration, by its routes."""

    def __init__(
        self,
        routes: routing.Routes,
        metrics: Metrics,
        clock: Clock,
        addresses: ClientAddressResolver,
        *,
        ids: RequestIds,
        seen: SeenRequests | None,
    ) -> None:
        self._routes = routes
        self._metrics = metrics
        self._addresses = addresses
        self._clock = clock
        self._ids = ids
        self._seen = seen
        self.in_flight = 0  # requests that are being handled

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Return the response to a request, which may be an error."""
        started = self._clock.monotonic()
        headers = request.headers
        request_id = self._ids.resolve(headers.get(X_REQUEST_ID), headers.get(TRACEPARENT), request.raw_path)
        REQUEST_ID.set(request_id)
        REDACTION.set(self._ids.redaction)
        route, kind = self._routes.find(request), None
        self.in_flight += 1
        try:
            try:
                handler = _refuse_path if route is None else route.handler(request.method)
                response = await handler(request)
                if (failure := request.get(FAILURE)) is not None:
                    kind = type(self._client_error(failure)).__name__
            except Exception as error:
                client_error = self._client_error(error)
                response, kind = error_response(client_error, request), type(client_error).__name__
                if isinstance(client_error, errors.BadRequest) and client_error.refused and METADATA in request:
                    request[METADATA].unsupported += (f"{client_error.refused} (refused)",)
            client = request.get(CLIENT)
            if client is not None and client.sunset is not None and ERRORS not in request:  # that of v3
                response.headers.update(client.sunset.headers)
            response.headers[X_REQUEST_ID] = request_id
            path = routing.UNKNOWN if route is None else route.path
            self._record(request, response.status, path, kind, self._clock.monotonic() - started)
            return response
        finally:
            self.in_flight -= 1
            REQUEST_ID.set("")  # the connection's task handles the next request, or logs bytes that are none

    def _record(self, request: web.BaseRequest, status: int, route: str, kind: str | None, seconds: float) -> None:
        """Count the request, log it, and keep it if it failed."""
        self._metrics.requests.labels(route, str(status)).inc()
        self._metrics.request_seconds.labels(route).observe(seconds)
        fields = _log_fields(request, status, route, kind)
        fields["ms"] = round(seconds * 1000, 1)
        fields["address"] = self._addresses.from_request(request).address
        # Operators' endpoints are polled by balancers.
        is_check = route in operator_endpoints.PATHS
        logging.request_completed("debug" if is_check else "info", fields)
        if self._seen is not None and not is_check:
            self._keep(self._seen, request, fields, kind)

    def _keep(self, seen: SeenRequests, request: web.BaseRequest, fields: dict[str, Any], kind: str | None) -> None:
        """Keep a request for the record. Failures without a valid API key only if the service itself failed: anybody
        can send any number of them."""
        now, route, status = self._clock.now(), fields["route"], fields["status"]
        application, key = fields.get("application"), fields.get("key")
        if kind is not None and (key is not None or status >= 500):
            detail = FailureDetail(REQUEST_ID.get(), fields["method"], status, fields["ms"], kind)
            seen.add_failure(now, route, application, key, detail)
        metadata = request.get(METADATA)
        seen.add_client(
            now,
            route,
            request.headers.get(hdrs.USER_AGENT, ""),
            application=application,
            key=key,
            target=request.raw_path,
            unsupported=metadata.ignored if metadata is not None else (),
            error=kind,
        )

    def _client_error(self, error: Exception) -> errors.BridgeError:
        """Log an exception, and convert it to the error that the client gets."""
        if isinstance(error, errors.BridgeError):
            if isinstance(error, errors.ServerError):
                log.warning("request failed", exc_info=error)
            return error
        # a bug: the client gets the request id, the log the exception's type and place
        log.error("internal error caught", exc_info=error)
        return errors.ServerError(f"Internal error (request {REQUEST_ID.get()})")


def _log_fields(request: web.BaseRequest, status: int, route: str, kind: str | None) -> dict[str, Any]:
    """Return what is known of a request in the end. None of it is text from the client, which might be its API key."""
    # Any token is a valid method.
    method = request.method if request.method in hdrs.METH_ALL else "other"
    fields: dict[str, Any] = {"method": method, "route": route, "status": status}
    client, metadata = request.get(CLIENT), request.get(METADATA)
    if client is not None:
        fields |= {"application": client.application.name, "key": client.key}
    if metadata is not None and (metadata.source or metadata.cost):
        fields["parts"] = metadata.cost
        if metadata.source is not None:
            fields["cache"] = metadata.source
    if kind is not None:
        fields["error"] = kind
    return fields


def error_response(error: errors.BridgeError, request: web.BaseRequest) -> web.Response:
    renderer: ErrorRenderer | None = request.get(ERRORS)
    if renderer is not None:
        return renderer(error, request)
    try:
        response_format = RequestParameters(request.raw_path).response_format()
    except errors.BridgeError:
        # The format itself may be the mistake, such as an invalid callback.
        response_format = ResponseFormat()
    response, usage = responses.error_response(error, response_format, request), request.get(USAGE)
    if usage:
        response.headers.update(responses.usage_headers(*usage))
    return response


async def _refuse_path(request: web.BaseRequest) -> web.StreamResponse:
    """Raise the error of a path that is not served."""
    if request.method == "CONNECT":
        # Only host:port is logged: any other target might hold an API key.
        target = request.raw_path if AUTHORITY.fullmatch(request.raw_path) else None
        log.warning("CONNECT refused", target=target)
        raise errors.MethodNotAllowed("CONNECT is refused: this is not a proxy for https; " + PLAIN)
    if request.path in operator_endpoints.PATHS:
        raise errors.NotFound(operator_endpoints.MOVED)
    raise errors.NotFound(path_suggestions.message(request.path))
