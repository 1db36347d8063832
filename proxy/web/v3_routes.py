"""Handlers of all v3 paths, and of v4's REST wrapper: respond from the cache of encoded responses, or authenticate,
execute the action (v3/actions.py) and respond."""

from collections.abc import Awaitable, Callable
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import cachetools
import structlog
from aiohttp import hdrs, web

from proxy import errors, v4
from proxy.gateway import Client, Gateway, ResponseMetadata
from proxy.v3.actions import AuthenticatedRequest, V3Actions
from proxy.v3.encoding import X_V3_UNSUPPORTED, EncodedBody, Parameters
from proxy.v3.endpoints import ENDPOINTS, PREFIXES, Endpoint
from proxy.web import messages
from proxy.web.authentication import Authenticator
from proxy.web.messages import Request

log = structlog.get_logger()

CACHE_BYTES = 16 * 2**20  # that cached responses may take in the memory of a worker
ENTRY_BYTES = 400  # that a response takes beside its body
TOKEN_MISSING = "token missing: send your API key as header `token: KEY`, or as ?token=KEY"  # noqa: S105 - a message

Execute = Callable[[AuthenticatedRequest, bool], Awaitable[EncodedBody]]


class EncodedResponse(NamedTuple):
    """Body of a response, its client and metadata, which are those of all that the cache serves, and the bytes that it
    takes there."""

    body: EncodedBody
    client: Client
    metadata: ResponseMetadata
    memory: int


class V3Routes:
    """Handlers, with the cache of responses all of whose results were hits, until the first of them expires. Every path
    is added to the routes under both prefixes, and that of the wrapper."""

    def __init__(self, routes: messages.Routes, gateway: Gateway, authenticator: Authenticator) -> None:
        self._gateway, self._authenticator, self._clock = gateway, authenticator, gateway.clock
        self._cache: cachetools.LRUCache[tuple[str, str | None, bool], EncodedResponse]
        self._cache = cachetools.LRUCache(CACHE_BYTES if gateway.settings.cache.bytes else 0, attrgetter("memory"))
        gateway.on_forgotten = self._cache.clear
        match = v4.MATCH
        execute = V3Actions(gateway.objects, gateway.mappings, gateway.clock).execute
        served = [(f"{prefix}{each.path}", each, execute) for each in ENDPOINTS for prefix in PREFIXES]
        actions = v4.WrapperActions(gateway.objects, gateway.mappings.views[match.object], gateway.clock)
        for path, endpoint, action in (*served, (f"{v4.PREFIX}{match.path}", match, actions.execute)):
            routes.add(path, partial(self._handle, endpoint, action), *messages.READ)
            routes.add(path, _options, hdrs.METH_OPTIONS)

    async def _handle(self, endpoint: Endpoint, execute: Execute, request: Request) -> web.StreamResponse:
        """Respond from the cache, or execute a request. The API key of v4's wrapper may be in a header."""
        gzip = messages.accepts_gzip(request)
        key = request.raw_path, request.headers.get(messages.TOKEN), gzip
        try:
            found = self._cache[key]
        except KeyError:
            found = None
        if found is not None and found.metadata.until > self._clock.monotonic():
            self._authenticator.admit(request, found.client)
            request.metadata = metadata = found.metadata
            self._gateway.metrics.queries.inc("hit", by=metadata.results)
        else:
            found = await self._executed(endpoint, execute, request, gzip)
            metadata = found.metadata
            if metadata.source == "hit" and found.memory <= self._cache.maxsize:
                self._cache[key] = found
        if X_V3_UNSUPPORTED in found.body.headers:
            log.warning("parameters ignored", parameters=found.body.headers[X_V3_UNSUPPORTED])
        if metadata.source is not None:
            request.added |= messages.usage_headers(self._gateway, found.client, metadata)
        return messages.response(request, found.body)

    async def _executed(self, endpoint: Endpoint, execute: Execute, request: Request, gzip: bool) -> EncodedResponse:
        request.metadata = metadata = self._gateway.metadata()
        metadata.is_quote = request.method == hdrs.METH_HEAD
        parameters = Parameters(request.raw_path)
        apikey = parameters.text("apikey") or ""
        if endpoint is v4.MATCH:
            apikey = request.headers.get(messages.TOKEN) or parameters.text("token") or apikey
            if not apikey:
                raise errors.MissingKey(TOKEN_MISSING)
        client = self._authenticator.client(request, apikey)
        self._authenticator.admit(request, client)
        received = AuthenticatedRequest(endpoint, parameters, client, metadata)
        if endpoint.action == "get":
            uid = request.rel_url.path_safe.removesuffix("/").rpartition("/")[2]
            received = received._replace(path=request.path, uid=uid)
        try:
            body = await execute(received, gzip)
        except errors.NotFetched:
            body = EncodedBody(b"", {})
        except errors.BridgeError as error:
            if isinstance(error, errors.BadRequest) and error.refused:
                metadata.unsupported += (f"{error.refused} (refused)",)
            if metadata.cost or isinstance(error, errors.QuotaExhausted):  # parts were used, or there are none left
                request.added |= messages.usage_headers(self._gateway, client, metadata, error)
            raise
        return EncodedResponse(body, client, metadata, ENTRY_BYTES + len(request.raw_path) + len(body.body))


async def _options(_: Request) -> web.StreamResponse:
    return web.Response(status=204, headers={hdrs.ALLOW: messages.ALLOWED})
