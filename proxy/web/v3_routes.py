"""Handlers of all v3 paths, and of v4's REST wrapper: respond from the cache of encoded responses, or authenticate,
execute the action (v3/actions.py) and respond."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

import structlog
from aiohttp import hdrs, web

from proxy import errors
from proxy.gateway.core import Gateway, ResponseMetadata
from proxy.v3.actions import AuthenticatedRequest, V3Actions
from proxy.v3.encoding import X_V3_UNSUPPORTED, EncodedBody
from proxy.v3.endpoints import ENDPOINTS, PREFIXES, Endpoint
from proxy.v3.parameters import Parameters
from proxy.v4 import wrapper
from proxy.web import responses, routing
from proxy.web.authentication import Authenticator
from proxy.web.responses import EncodedResponse
from proxy.web.routing import Request

log = structlog.get_logger()

TOKEN_MISSING = "token missing: send your API key as header `token: KEY`, or as ?token=KEY"  # noqa: S105 - a message


class Dialect(NamedTuple):
    """What is different in v4's wrapper: the action, and where the API key is."""

    execute: Callable[[AuthenticatedRequest, bool], Awaitable[EncodedBody]]
    apikey: Callable[[Request, Parameters], str]


def _v3_key(_: Request, parameters: Parameters) -> str:
    return parameters.text("apikey") or ""


def _v4_key(request: Request, parameters: Parameters) -> str:
    apikey = request.headers.get(responses.TOKEN) or parameters.text("token") or parameters.text("apikey")
    if not apikey:
        raise errors.MissingKey(TOKEN_MISSING)
    return apikey


class V3Routes:
    def __init__(self, gateway: Gateway, authenticator: Authenticator, cache: responses.EncodedResponses) -> None:
        self._cache = cache
        self._authenticator = authenticator
        self._gateway = gateway
        self._clock = gateway.clock

    def add_to(self, routes: routing.Routes) -> None:
        """Register every path under both prefixes, and that of the wrapper."""
        gateway = self._gateway
        v3 = Dialect(V3Actions(gateway.objects, gateway.mappings, gateway.clock).execute, _v3_key)
        served = [(f"{prefix}{each.path}", each, v3) for each in ENDPOINTS for prefix in PREFIXES]
        view = gateway.mappings.views[wrapper.MATCH.object]
        v4 = Dialect(wrapper.WrapperActions(gateway.objects, view, gateway.clock).execute, _v4_key)
        served.append((f"{wrapper.PREFIX}{wrapper.MATCH.path}", wrapper.MATCH, v4))
        for path, endpoint, dialect in served:
            routes.add(path, partial(self._handle, endpoint, dialect), *routing.READ)
            routes.add(path, _other_method)

    async def _handle(self, endpoint: Endpoint, dialect: Dialect, request: Request) -> web.StreamResponse:
        found = self._cache.get(request)
        if found is None:
            found = await self._executed(endpoint, dialect, request)
            self._cache.add(request, found)
        else:
            self._authenticator.admit(request, found.client)
            request.metadata = found.metadata
            self._gateway.metrics.queries.labels("hit").inc(found.metadata.results)
        body, metadata = found.body, found.metadata
        if X_V3_UNSUPPORTED in body.headers:
            log.warning("parameters ignored", parameters=body.headers[X_V3_UNSUPPORTED])
        if metadata.source is not None:
            request.added |= responses.usage_headers(self._gateway, found.client, metadata)
        return responses.response(request, body)

    async def _executed(self, endpoint: Endpoint, dialect: Dialect, request: Request) -> EncodedResponse:
        """Parse, authenticate and execute a request."""
        request.metadata = metadata = ResponseMetadata(self._clock.monotonic())
        parameters = Parameters(request.raw_path)
        client = self._authenticator.client(request, dialect.apikey(request, parameters))
        self._authenticator.admit(request, client)
        received = AuthenticatedRequest(endpoint, parameters, client, metadata)
        if endpoint.action == "get":
            uid = request.rel_url.path_safe.removesuffix("/").rpartition("/")[2]
            received = received._replace(path=request.path, uid=uid)
        try:
            body = await dialect.execute(received, responses.accepts_gzip(request))
        except errors.BridgeError as error:
            if isinstance(error, errors.BadRequest) and error.refused:
                metadata.unsupported += (f"{error.refused} (refused)",)
            if metadata.cost or isinstance(error, errors.QuotaExhausted):  # parts were used, or there are none left
                request.added |= responses.usage_headers(self._gateway, client, metadata, error)
            raise
        return EncodedResponse(body, client, request.raw_path, metadata)


async def _other_method(request: Request) -> web.StreamResponse:
    """OPTIONS lists the allowed methods; any other method is a 405."""
    if request.method == hdrs.METH_OPTIONS:
        return web.Response(status=204, headers={hdrs.ALLOW: responses.ALLOWED})
    raise errors.MethodNotAllowed.of(request.method)
