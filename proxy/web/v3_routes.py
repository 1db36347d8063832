"""Handlers of all v3 paths, and of v4's REST wrapper: authenticate, execute the action (v3/actions.py), respond; or
respond from the cache of encoded responses."""

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog
from aiohttp import web

from proxy import errors
from proxy.gateway.core import Client, Gateway, ResponseMetadata
from proxy.v3.actions import AuthenticatedRequest, V3Actions
from proxy.v3.encoding import X_V3_UNSUPPORTED, EncodedBody
from proxy.v3.endpoints import ENDPOINTS, PREFIXES, Endpoint
from proxy.v3.parameters import Parameters
from proxy.v4 import wrapper
from proxy.web import responses, routing
from proxy.web.authentication import Authenticator
from proxy.web.responses import EncodedResponse
from proxy.web.routing import STATE, RequestState

log = structlog.get_logger()

TOKEN_MISSING = "token missing: send your API key as header `token: KEY`, or as ?token=KEY"  # noqa: S105 - a message


class Dialect(NamedTuple):
    """What is different in v4's wrapper: the action, and the API key, which may also be in the header `token`."""

    execute: Callable[[AuthenticatedRequest, bool], Awaitable[EncodedBody]]
    key_parameters: tuple[str, ...] = ("apikey",)
    takes_header: bool = False

    def client(self, authenticator: Authenticator, request: web.BaseRequest, parameters: Parameters) -> Client:
        """Return the client of a request. Raises the errors of `Authenticator.client`."""
        apikey = request.headers.get(responses.TOKEN) if self.takes_header else None
        try:
            sent = apikey or next(filter(None, map(parameters.text, self.key_parameters)), None)
            return authenticator.client(request, sent)
        except errors.MissingKey:
            if self.takes_header:
                raise errors.MissingKey(TOKEN_MISSING) from None
            raise


class V3Routes:
    def __init__(self, gateway: Gateway, authenticator: Authenticator, cache: responses.EncodedResponses) -> None:
        self._cache = cache
        self._authenticator = authenticator
        self._gateway = gateway
        self._metrics = gateway.metrics
        self._clock = gateway.clock
        self._retired: set[str] = set()  # names of the accounts of API keys whose end has been logged

    def add_to(self, routes: routing.Routes) -> None:
        """Register every path under both prefixes, and that of the wrapper."""
        gateway = self._gateway
        v3 = Dialect(V3Actions(gateway.objects, gateway.mappings, gateway.clock).execute)
        for endpoint in ENDPOINTS:
            for prefix in PREFIXES:
                self._add(routes, f"{prefix}{endpoint.path}", endpoint, v3)
        view = gateway.mappings.views[wrapper.MATCH.object]
        actions = wrapper.WrapperActions(gateway.objects, view, gateway.clock)
        v4 = Dialect(actions.execute, ("token", "apikey"), takes_header=True)
        self._add(routes, f"{wrapper.PREFIX}{wrapper.MATCH.path}", wrapper.MATCH, v4)

    def _add(self, routes: routing.Routes, path: str, endpoint: Endpoint, dialect: Dialect) -> None:
        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            """Parse, authenticate and execute a request."""
            state, gzip, started = request[STATE], responses.accepts_gzip(request), self._clock.monotonic()
            parameters = Parameters(request.raw_path)
            client = dialect.client(self._authenticator, request, parameters)
            self._admit(state, client)
            state.metadata = metadata = ResponseMetadata(started)
            received = AuthenticatedRequest(endpoint, parameters, client, metadata, started)
            if endpoint.action == "get":
                uid = request.rel_url.path_safe.removesuffix("/").rpartition("/")[2]
                received = received._replace(path=request.path, uid=uid)
            try:
                body = await dialect.execute(received, gzip)
            except errors.BridgeError as error:
                self._add_quota(state, client, metadata, error)
                raise
            executed = EncodedResponse(body, client, request.raw_path, path, metadata)
            self._cache.add(request, executed)
            return self._response(request, executed)

        routes.add(path, handle, *routing.READ)
        routes.add(path, _other_method)

    def from_cache(self, request: web.BaseRequest, cached: EncodedResponse, state: RequestState) -> web.StreamResponse:
        """Return the response to a request whose encoded response is cached. Limits of the client apply as to any
        other."""
        self._authenticator.check(state.origin, cached.client)
        self._admit(state, cached.client)
        state.metadata = cached.metadata
        self._metrics.queries.labels("hit").inc(cached.metadata.results)
        return self._response(request, cached)

    def _admit(self, state: RequestState, client: Client) -> None:
        """Note the client of a request, and count it against its rate. Raises Gone after its sunset and ExpiredKey
        after the key's last day, which costs it neither rate nor quota; and TooManyRequests."""
        state.client = client
        refusal = client.refusal(self._clock.now()) if client.sunset or client.expires else None
        if refusal is None:
            if client.rate:
                self._gateway.admit(client)
            return
        if client.name not in self._retired:
            self._retired.add(client.name)
            event = "API key expired" if isinstance(refusal, errors.ExpiredKey) else "sunset passed"
            log.warning(event, application=client.application.name, key=client.key)
        raise refusal

    def _add_quota(
        self, state: RequestState, client: Client, metadata: ResponseMetadata, error: errors.BridgeError
    ) -> None:
        """Let the error response have usage headers, if parts were used or there are none left."""
        if metadata.cost or isinstance(error, errors.QuotaExhausted):
            status = self._gateway.quota_status(client)
            # Where the plan has no parts the end of the period brings none.
            if isinstance(error, errors.QuotaExhausted) and error.retry_after is None:
                status = status._replace(reset=None)
            state.quota = status

    def _response(self, request: web.BaseRequest, executed: EncodedResponse) -> web.StreamResponse:
        """Return a 200, with the headers of usage where parts were requested."""
        body, metadata = executed.body, executed.metadata
        if X_V3_UNSUPPORTED in body.headers:
            log.warning("parameters ignored", parameters=body.headers[X_V3_UNSUPPORTED])
        headers = dict(body.headers)
        if metadata.source is not None:
            age = self._clock.monotonic() - metadata.stored
            headers |= responses.usage_headers(metadata, self._gateway.quota_status(executed.client), age)
        return responses.response(request, body.body, headers)


async def _other_method(request: web.BaseRequest) -> web.StreamResponse:
    """OPTIONS lists the allowed methods; any other method is a 405."""
    if request.method == "OPTIONS":
        return web.Response(status=204, headers={"Allow": responses.ALLOWED})
    raise errors.MethodNotAllowed.of(request.method)
