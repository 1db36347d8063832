"""Handlers of all v3 paths: authenticate, answer from a cache or execute the action (v3/actions.py), respond."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog
from aiohttp import hdrs, web

from proxy import errors
from proxy.gateway.core import Client, Gateway, ResponseMetadata
from proxy.model import QuotaStatus
from proxy.v3.actions import AuthenticatedRequest, V3Actions
from proxy.v3.encoding import EncodedBody
from proxy.v3.endpoints import ENDPOINTS, PREFIXES, Endpoint
from proxy.v3.headers import X_V3_UNSUPPORTED
from proxy.v3.parsing.request_parameters import RequestParameters
from proxy.web import routing
from proxy.web.authentication import Authenticator
from proxy.web.v3 import responses
from proxy.web.v3.encoded_cache import EncodedResponse, EncodedResponseCache

log = structlog.get_logger()

# For the log line and the error response, which see the request after its handler.
CLIENT = web.RequestKey("client", Client)
METADATA = web.RequestKey("metadata", ResponseMetadata)
USAGE = web.RequestKey("usage", tuple[ResponseMetadata, QuotaStatus])  # of a failed request that has used parts


class KeyPlaces(NamedTuple):
    """Where a request has its API key: one of some parameters, or a header, which comes first. `missing` is the message
    for a request without; None: v3's."""

    parameters: tuple[str, ...] = ("apikey",)
    header: str | None = None
    missing: str | None = None

    def client(self, authenticator: Authenticator, request: web.BaseRequest, parameters: RequestParameters) -> Client:
        """Return the client of a request. Raises the errors of `Authenticator.client`."""
        apikey = self.in_header(request) or next(filter(None, map(parameters.text, self.parameters)), None)
        try:
            return authenticator.client(request, apikey)
        except errors.MissingKey:
            if self.missing is None:
                raise
            raise errors.MissingKey(self.missing) from None

    def in_header(self, request: web.BaseRequest) -> str:
        """Return the API key that is not in the request target."""
        return request.headers.get(self.header, "") if self.header else ""


class Dialect(NamedTuple):
    """What is different in paths of another dialect that are served as v3's: the action, and where its API key is."""

    execute: Callable[[AuthenticatedRequest, bool], Awaitable[EncodedBody]]
    keys: KeyPlaces


class V3Routes:
    def __init__(
        self,
        gateway: Gateway,
        authenticator: Authenticator,
        cache: EncodedResponseCache,
    ) -> None:
        self._cache = cache
        self._authenticator = authenticator
        self._gateway = gateway
        self._v3 = Dialect(V3Actions(gateway.objects, gateway.mappings, gateway.clock).execute, KeyPlaces())
        self._metrics = gateway.metrics
        self._clock = gateway.clock
        self._retired: set[str] = set()  # names of the accounts of API keys whose end has been logged

    def add_to(self, routes: routing.Routes) -> None:
        """Register every path under both prefixes."""
        for endpoint in ENDPOINTS:
            handler = self.handler(endpoint, self._v3)
            for prefix in PREFIXES:
                add(routes, f"{prefix}{endpoint.path}", handler)

    def handler(self, endpoint: Endpoint, dialect: Dialect) -> routing.Handler:
        """Return the handler of an endpoint."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            target, gzip = _target(request, dialect.keys), responses.accepts_gzip(request)
            cached = None if hdrs.CACHE_CONTROL in request.headers else self._cache.get(target, gzip)
            if cached is not None:
                return self._from_cache(cached, request)
            executed = await self._execute(endpoint, dialect, request, gzip)
            self._cache.add(target, gzip, executed)
            return self._response(*executed)

        return handle

    async def _execute(
        self, endpoint: Endpoint, dialect: Dialect, request: web.BaseRequest, gzip: bool
    ) -> EncodedResponse:
        """Parse, authenticate and execute a request."""
        started = self._clock.monotonic()
        parameters = RequestParameters(request.raw_path)
        client = dialect.keys.client(self._authenticator, request, parameters)
        self._identify(request, client)
        self._gateway.admit(client)
        request[METADATA] = metadata = ResponseMetadata(started)
        received = AuthenticatedRequest(endpoint, parameters, client, metadata, started)
        if endpoint.action == "get":
            uid = request.rel_url.path_safe.removesuffix("/").rpartition("/")[2]
            received = received._replace(path=request.path, uid=uid)
        try:
            return EncodedResponse(await dialect.execute(received, gzip), client, metadata)
        except errors.BridgeError as error:
            self._add_usage(request, client, metadata, error)
            raise

    def _identify(self, request: web.BaseRequest, client: Client) -> None:
        """Note the client of a request. Raises Gone after its sunset and ExpiredKey after the key's last day, which
        costs it neither rate nor quota."""
        request[CLIENT] = client
        refusal = client.refusal(self._clock.now())
        if refusal is None:
            return
        if client.name not in self._retired:
            self._retired.add(client.name)
            if isinstance(refusal, errors.ExpiredKey):
                log.warning("API key expired", application=client.application.name, key=client.key)
            else:
                log.warning("sunset passed", application=client.application.name, key=client.key)
        raise refusal

    def _add_usage(
        self, request: web.BaseRequest, client: Client, metadata: ResponseMetadata, error: errors.BridgeError
    ) -> None:
        """Let the error response have usage headers, if parts were used or there are none left."""
        if metadata.cost or isinstance(error, errors.QuotaExhausted):
            status = self._gateway.quota_status(client)
            # Where the plan has no parts the end of the period brings none.
            if isinstance(error, errors.QuotaExhausted) and error.retry_after is None:
                status = status._replace(reset=None)
            request[USAGE] = metadata, status

    def _from_cache(self, cached: EncodedResponse, request: web.BaseRequest) -> web.Response:
        """Return the response to a request whose encoded response is cached. Limits of the client apply as to any
        other."""
        self._authenticator.check(request, cached.client)
        self._identify(request, cached.client)
        request[METADATA] = cached.metadata
        self._gateway.admit(cached.client)
        self._metrics.queries.labels("hit").inc(cached.metadata.results)
        return self._response(*cached)

    def _response(self, body: EncodedBody, client: Client, metadata: ResponseMetadata) -> web.Response:
        """Return a 200, with the headers of usage where parts were requested."""
        response = responses.response(body)
        if X_V3_UNSUPPORTED in body.headers:
            log.warning("parameters ignored", parameters=body.headers[X_V3_UNSUPPORTED])
        if metadata.source is not None:
            age = self._clock.monotonic() - metadata.stored
            usage = responses.usage_headers(metadata, self._gateway.quota_status(client), age)
            response.headers.update(usage)
        return response


def _target(request: web.BaseRequest, keys: KeyPlaces) -> str:
    """Return the request target by which responses are cached: requests of an API key in a header have their own."""
    apikey = keys.in_header(request)
    return f"{apikey} {request.raw_path}" if apikey else request.raw_path


def add(routes: routing.Routes, path: str, handler: routing.Handler) -> None:
    """Register a path that is read."""
    routes.add(path, handler, *routing.READ)
    routes.add(path, _other_method)


async def _other_method(request: web.BaseRequest) -> web.StreamResponse:
    """OPTIONS lists the allowed methods; any other method is a 405."""
    if request.method == "OPTIONS":
        return web.Response(status=204, headers={"Allow": responses.ALLOWED})
    raise errors.MethodNotAllowed.of(request.method)
