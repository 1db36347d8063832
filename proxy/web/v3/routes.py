"""Handlers of all v3 paths: parse the request, call the pipeline, render the response."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import msgspec
import structlog
from aiohttp import web

from proxy import errors, model
from proxy.endpoints import ENDPOINTS, PREFIXES, Endpoint
from proxy.gateway.applications import Client
from proxy.gateway.cache.entries import RenderedResult
from proxy.gateway.pipeline import Pipeline
from proxy.gateway.queries import GatewayRequest
from proxy.gateway.quota.reservations import QuotaStatus
from proxy.gateway.response_metadata import HIT, ResponseMetadata
from proxy.mapping.loader import Mappings
from proxy.parsing import match_queries, requests
from proxy.parsing import search as search_parser
from proxy.parsing.request_parameters import RequestParameters
from proxy.telemetry.metrics import Metrics
from proxy.web.authentication import Authenticator
from proxy.web.v3 import responses, search, unsupported
from proxy.web.v3.encoded_cache import (
    CoalescedResult,
    EncodedResponse,
    EncodedResponseCache,
    RequestCoalescing,
    RequestInFlight,
)
from proxy.web.v3.responses import EncodedBody
from proxy.web.v3.unparsed import UnparsedHits

log = structlog.get_logger()

# For the log line, the error response and the shadow, which see the request after its handler.
CLIENT = web.RequestKey("client", Client)
METADATA = web.RequestKey("metadata", ResponseMetadata)
USAGE = web.RequestKey("usage", tuple[ResponseMetadata, QuotaStatus])  # of a failed request that has used parts

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ActionHandler = Callable[[Endpoint, "AuthenticatedRequest"], Awaitable[Any]]


class AuthenticatedRequest(NamedTuple):
    """One authenticated v3 request. `started` is in the clock's monotonic seconds."""

    request: web.Request
    parameters: RequestParameters
    client: Client
    metadata: ResponseMetadata
    started: float


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
        self._mappings = mappings
        self._metrics = metrics
        self._clock = metrics.clock
        self._actions: dict[str, ActionHandler] = {
            "match": self._match,
            "search": self._search,
            "get_multi": self._get_multi,
            "get": self._get,
        }

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
            received = AuthenticatedRequest(request, parameters, client, metadata, started)
            body = await self._encoded(endpoint, received, gzip)
            result = CoalescedResult(metadata, body)
        except errors.BridgeError as error:
            result = CoalescedResult(metadata, None, error)
            self._add_usage(request, client, metadata, error)
            raise
        finally:
            leader.end(result)
        self._cache.add(request.raw_path, gzip, body, client, metadata)
        return self._response(body, client, metadata)

    async def _encoded(self, endpoint: Endpoint, received: AuthenticatedRequest, gzip: bool) -> EncodedBody:
        response_format = received.parameters.response_format()
        result = await self._actions[endpoint.action](endpoint, received)
        executed = self._clock.monotonic()
        body = responses.encode_body(responses.encode_json(result, response_format), response_format, gzip)
        self._metrics.observe_stage("reply", executed)
        if received.metadata.unsupported:
            body = body._replace(headers=body.headers | unsupported.header(received.metadata.unsupported))
        return body

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
            request[USAGE] = metadata, self._pipeline.quota_status(client)

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

    async def _match(self, endpoint: Endpoint, received: AuthenticatedRequest) -> Any:
        """/parts/match (contract v3-rest.md §4)."""
        raws, request = requests.parse_match(received.parameters)
        received.metadata.unsupported = tuple(match_queries.unknown_keys(raws))
        answers = await self._pipeline.match_parts(self._caller(endpoint, received), request)
        return match_response(raws, request, answers, self._msec(received))

    async def _search(self, endpoint: Endpoint, received: AuthenticatedRequest) -> Any:
        """All searches (contract v3-rest.md §1.1, §3.6). Only a search of parts returns country and currency."""
        request = search_parser.parse(received.parameters)
        caller = self._caller(endpoint, received)
        if endpoint.object != "Part":
            items, listed = await self._pipeline.search_listed(caller, endpoint.object, request)
            return search.response(request, items, listed.hits, listed, self._msec(received))
        answer = await self._pipeline.search_parts(caller, request)
        return {
            **search.parts_response(request, answer, self._msec(received)),
            "user_country": caller.context.country,
            "user_currency": caller.context.currency,
        }

    async def _get_multi(self, endpoint: Endpoint, received: AuthenticatedRequest) -> Any:
        """Objects by requested uid; unknown uids are left out (contract v3-rest.md §1)."""
        return await self._objects(endpoint, received, requests.parse_uids(received.parameters))

    async def _get(self, endpoint: Endpoint, received: AuthenticatedRequest) -> Any:
        """One object, without an envelope."""
        uid = requests.checked_uid(received.request.path, received.request.match_info["uid"])
        objects = await self._objects(endpoint, received, [uid])
        if uid not in objects:
            raise errors.NotFound(f"there is no {endpoint.object.lower()} with the uid {uid[:40]!r}")
        return objects[uid]

    async def _objects(self, endpoint: Endpoint, received: AuthenticatedRequest, uids: list[str]) -> dict[str, Any]:
        caller = self._caller(endpoint, received)
        if endpoint.object == "Part":
            parts = await self._pipeline.parts(caller, uids)
            return {uid: msgspec.Raw(part) for uid, part in parts.items()}
        return await self._pipeline.listed(caller, endpoint.object, uids)

    def _caller(self, endpoint: Endpoint, received: AuthenticatedRequest) -> GatewayRequest:
        """Client, projection and slices of a request: the last of its parameters to be parsed."""
        application = received.client.application
        projection = received.parameters.projection(application.features, self._mappings, endpoint.object)
        self._metrics.observe_stage("parse", received.started)
        return GatewayRequest.of(received.client, projection.projection, projection.slices, received.metadata)

    def _msec(self, received: AuthenticatedRequest) -> int:
        return int((self._clock.monotonic() - received.started) * 1000)


def match_response(
    raws: list[Any], request: model.PartsMatchRequest, answers: list[RenderedResult], msec: int
) -> dict[str, Any]:
    """Body of /parts/match (contract v3-rest.md §3.6). `answers` are the results of the queries, in their order."""
    return {
        "__class__": "PartsMatchResponse",
        "msec": msec,
        "request": {
            "__class__": "PartsMatchRequest",
            "queries": [_query_echo(raw) for raw in raws],
            "exact_only": request.exact_only,
        },
        "results": [
            {
                "__class__": "PartsMatchResult",
                "items": msgspec.Raw(answer.items),
                "hits": answer.hits,
                "reference": query.reference,
                "error": answer.error,
            }
            for query, answer in zip(request.queries, answers, strict=True)
        ],
    }


def _query_echo(raw: Any) -> dict[str, Any]:
    """The nine keys of a query as sent, with defaults for the others."""
    return {
        "__class__": "PartsMatchQuery",
        **match_queries.DEFAULTS,
        **(match_queries.non_null(raw) if isinstance(raw, dict) else {}),
    }


async def other_method(request: web.Request) -> web.StreamResponse:
    """OPTIONS lists the allowed methods; any other method is a 405."""
    if request.method == "OPTIONS":
        return web.Response(status=204, headers={"Allow": responses.ALLOWED})
    raise errors.MethodNotAllowed(f"{request.method[:20]} is not allowed here; v3 is read with GET")
