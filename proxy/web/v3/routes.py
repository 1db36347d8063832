"""Handlers of all v3 paths: authenticate, answer from a cache or execute the action (serving/actions.py), respond."""

from collections.abc import Awaitable, Callable

import structlog
from aiohttp import web

from proxy import errors
from proxy.endpoints import ENDPOINTS, PREFIXES, Endpoint
from proxy.gateway.applications import Client
from proxy.gateway.pipeline import Pipeline
from proxy.gateway.quota.reservations import QuotaStatus
from proxy.gateway.response_metadata import HIT, ResponseMetadata
from proxy.mapping.loader import Mappings
from proxy.parsing.request_parameters import RequestParameters
from proxy.serving import unsupported
from proxy.serving.actions import AuthenticatedRequest, V3Actions
from proxy.serving.encoding import EncodedBody
from proxy.telemetry.metrics import Metrics
from proxy.web.authentication import Authenticator
from proxy.web.v3 import responses
from proxy.web.v3.encoded_cache import (
    CoalescedResult,
    EncodedResponse,
    EncodedResponseCache,
    RequestCoalescing,
    RequestInFlight,
)
from proxy.web.v3.unparsed import UnparsedHits

log = structlog.get_logger()

# For the log line, the error response and the shadow, which see the request after its handler.
CLIENT = web.RequestKey("client", Client)
METADATA = web.RequestKey("metadata", ResponseMetadata)
USAGE = web.RequestKey("usage", tuple[ResponseMetadata, QuotaStatus])  # of a failed request that has used parts

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class V3Routes:
    """The handlers of all v3 paths."""

    def __init__(
        self,
        pipeline: Pipeline,
        authenticator: Authenticator,
        mappings: Mappings,
        *,
        cache: EncodedResponseCache,
        hits: UnparsedHits,
        coalesces: bool,
        metrics: Metrics,
    ) -> None:
        self._cache = cache
        self._hits = hits
        self._in_flight = RequestCoalescing(coalesces)
        self._authenticator = authenticator
        self._pipeline = pipeline
        self._actions = V3Actions(pipeline, mappings, metrics)
        self._metrics = metrics
        self._clock = metrics.clock

    def add_to(self, app: web.Application) -> dict[str, Handler]:
        """Register every path under both prefixes, with and without a trailing slash. Returns the handlers of paths
        without a uid, for the fast path."""
        fixed = {}
        for endpoint in ENDPOINTS:
            handler = self._handler(endpoint)
            for prefix in PREFIXES:
                for path in (f"{prefix}{endpoint.path}", f"{prefix}{endpoint.path}/"):
                    app.router.add_get(path, handler)
                    app.router.add_route("*", path, other_method)
                    if "{" not in path:
                        fixed[path] = handler
        return fixed

    def _handler(self, endpoint: Endpoint) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            gzip = responses.accepts_gzip(request)
            cached = self._cache.get(request.raw_path, gzip)
            if cached is not None:
                return await self._from_cache(cached, request, gzip)
            leader = self._in_flight.get((request.raw_path, gzip))
            if leader is None:
                return await self._execute(endpoint, request, gzip, None)
            return await self._join(leader, request) or await self._execute(endpoint, request, gzip, leader.client)

        return handle

    async def _execute(
        self, endpoint: Endpoint, request: web.Request, gzip: bool, admitted: Client | None
    ) -> web.Response:
        """Parse and execute a request, and let equal ones share its response. `admitted`: its client, if it was
        authenticated and counted before."""
        started = self._clock.monotonic()
        parameters = RequestParameters(request.raw_path)
        if admitted is None:
            client = self._authenticator.client(request, parameters.text("apikey"))
            request[CLIENT] = client
            await self._pipeline.admit(client)
        else:
            client = admitted
        request[METADATA] = metadata = ResponseMetadata(started)
        leader, result = self._in_flight.begin((request.raw_path, gzip), client), None
        try:
            received = AuthenticatedRequest(endpoint, parameters, client, metadata, started)
            if endpoint.action == "get":
                received = received._replace(path=request.path, uid=request.match_info["uid"])
            body = await self._actions.execute(received, gzip)
            result = CoalescedResult(metadata, body)
        except errors.BridgeError as error:
            result = CoalescedResult(metadata, None, error)
            self._add_usage(request, client, metadata, error)
            raise
        finally:
            leader.end(result)
        self._cache.add(request.raw_path, gzip, body, client, metadata)
        return self._response(body, client, metadata)

    async def _join(self, leader: RequestInFlight, request: web.Request) -> web.Response | None:
        """The response to a request that waits for an equal one; None if it has to be executed after all. Limits of
        the client apply as to any other."""
        client = leader.client
        self._authenticator.check(request, client)
        request[CLIENT] = client
        if client.rate:
            await self._pipeline.admit(client)
        result = await leader.wait()
        if result is None:
            return None
        request[METADATA] = metadata = result.metadata.of_shared_response()
        if metadata.source is not None:
            self._metrics.queries["shared",] += metadata.results
        if result.body is not None:
            return self._response(result.body, client, metadata)
        assert result.error is not None  # noqa: S101 - a result has a body or an error
        self._add_usage(request, client, metadata, result.error)
        raise result.error.shared()

    def _add_usage(
        self, request: web.Request, client: Client, metadata: ResponseMetadata, error: errors.BridgeError
    ) -> None:
        """Let the error response have usage headers, if parts were used or there are none left."""
        if metadata.cost or isinstance(error, errors.QuotaExhausted):
            status = self._pipeline.quota_status(client)
            # Where the plan has no parts the end of the period brings none.
            if isinstance(error, errors.QuotaExhausted) and error.retry_after is None:
                status = status._replace(reset=None)
            request[USAGE] = metadata, status

    async def _from_cache(self, cached: EncodedResponse, request: web.Request, gzip: bool) -> web.Response:
        """The response to a request whose encoded response is cached. Limits of the client apply as to any other."""
        self._authenticator.check(request, cached.client)
        request[CLIENT], request[METADATA] = cached.client, HIT
        if cached.client.rate:
            await self._pipeline.admit(cached.client)
        self._metrics.queries["hit",] += cached.results
        self._hits.remember(request, gzip, cached)
        return self._response(cached.body, cached.client, HIT)

    def _response(self, body: EncodedBody, client: Client, metadata: ResponseMetadata) -> web.Response:
        """A 200, with the headers of usage where parts were requested."""
        response = responses.response(body)
        if unsupported.HEADER in body.headers:
            log.warning("parameters ignored", parameters=body.headers[unsupported.HEADER])
        if metadata.source is not None:
            return responses.add_usage_headers(response, metadata, self._pipeline.quota_status(client))
        return response


async def other_method(request: web.Request) -> web.StreamResponse:
    """OPTIONS lists the allowed methods; any other method is a 405."""
    if request.method == "OPTIONS":
        return web.Response(status=204, headers={"Allow": responses.ALLOWED})
    raise errors.MethodNotAllowed.of(request.method)
