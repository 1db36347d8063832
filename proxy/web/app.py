"""Composition root of the service: builds the aiohttp application of a configuration around its gateway.

A reload builds another one beside the first, serves with it from the next request on, and closes the replaced one when
its requests have ended.
"""

import asyncio
import functools
from contextlib import AsyncExitStack

import msgspec
from aiohttp import web

from proxy import config
from proxy.gateway import assembly, process
from proxy.graphql import schema
from proxy.graphql.service import GraphQLService
from proxy.kit import clock as clocks
from proxy.kit.periodic import PeriodicTask
from proxy.mapping.loader import Mappings
from proxy.telemetry import request_ids
from proxy.v3.description import openapi
from proxy.v3.endpoints import PREFIXES
from proxy.v4 import wrapper
from proxy.v4.documents import V4DocumentReader
from proxy.web import (
    authentication,
    client_address,
    graphql,
    middleware,
    operator_endpoints,
    routing,
    service,
)
from proxy.web.v3 import encoded_cache, routes
from proxy.web.v4 import routes as v4_routes

RETIREMENT_SECONDS = 0.05  # between two looks whether a replaced application still has requests
MEASURE_SECONDS = 1.0  # between two measurements of the process


class ServiceBuilder:
    """Builds the application of each configuration of a process: the first one, and that of every reload."""

    def __init__(self, clock: clocks.Clock) -> None:
        self._process = process.ProcessState(clock)
        self._ids = request_ids.RequestIds(self._process.redaction)
        self._failures = middleware.Failures()
        self._service: service.RunningService | None = None
        self._current: service.ConfiguredApp | None = None
        self._retiring: set[asyncio.Task[None]] = set()

    async def build(self, settings: config.Config) -> service.ConfiguredApp:
        """Build the application of the first configuration, in the event loop that will serve it.

        `settings.upstream` must hold addresses. Raises MappingError and ConfigError.
        """
        self._current = await self._build(settings)
        self._current.activate()
        return self._current

    async def build_next(self, settings: config.Config) -> service.ConfiguredApp:
        """Build an application beside the current one, for `switch`, or to be closed by the caller. Raises MappingError
        and ConfigError."""
        return await self._build(settings)

    def switch(self, configured: service.ConfiguredApp) -> None:
        """Make an application the current one. The replaced one is closed when its requests have ended."""
        replaced, self._current = self._current, configured
        if self._service is not None:
            self._service.switch(configured)
        if replaced is not None:
            task = asyncio.create_task(self._retire(replaced), name="retirement of a replaced application")
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def close(self) -> None:
        """Close all applications. Their requests must have ended, or been cancelled."""
        while self._retiring:
            await asyncio.wait(self._retiring)
        if self._current is not None:
            await self._current.close()

    async def _retire(self, replaced: service.ConfiguredApp) -> None:
        """Close an application once the requests that began in it have ended. New ones begin in another one."""
        while replaced.requests.in_flight:  # noqa: ASYNC110 - an event would cost every request something
            await asyncio.sleep(RETIREMENT_SECONDS)
        await replaced.close()
        if self._current is not None:
            gateway = self._current.gateway
            configured = gateway.applications.applications.values()
            gateway.services.tokens.retain({application.credentials for application in configured})

    async def _build(self, settings: config.Config) -> service.ConfiguredApp:
        state, previous = self._process, self._current
        async with AsyncExitStack() as resources:
            gateway = await assembly.build(
                settings,
                state.clock,
                resources,
                process=state,
                previous=None if previous is None else previous.gateway,
            )
            await state.shared.obtain("metrics", resources, self._measure)
            if self._service is None:
                self._service = service.RunningService(gateway, self._failures)
            configured = self._compose(gateway, self._service)
            if previous is not None:
                configured.authenticator.adopt(previous.authenticator)
            # Only once all is built; an error before this closes what was opened.
            configured.resources = resources.pop_all()
            return configured

    def _compose(self, gateway: assembly.Gateway, running: service.RunningService) -> service.ConfiguredApp:
        """Build the parts of the server in the order in which they use each other."""
        settings, clock, metrics = gateway.settings, gateway.clock, gateway.metrics
        callers = gateway.callers if settings.clients.days else None
        addresses = client_address.ClientAddressResolver(settings.listen.trusted_proxies)
        authenticator = authentication.Authenticator(
            gateway.applications,
            settings.listen.failed_auth_per_minute,
            addresses,
            metrics,
            callers,
        )
        # New with every reload: an entry knows its client, and is made again from cached results.
        cache = encoded_cache.EncodedResponseCache(settings.cache.encoded_bytes, clock)
        gateway.cache.clear_responses = cache.clear
        paths = routing.Routes()
        request_middleware = middleware.RequestMiddleware(
            paths,
            metrics,
            clock,
            addresses,
            ids=self._ids,
            failures=self._failures,
            callers=callers,
        )
        v3_routes = routes.V3Routes(
            gateway.pipeline,
            authenticator,
            gateway.mappings,
            cache=cache,
            metrics=metrics,
        )
        v3_routes.add_to(paths)
        view = gateway.mappings.views[wrapper.MATCH.object]
        v4_routes.add_wrapper(paths, v3_routes, wrapper.WrapperActions(gateway.pipeline, view, clock))
        _add_graphql(paths, gateway, authenticator)
        _add_operator_paths(paths, gateway, running)
        return service.ConfiguredApp(running, gateway, request_middleware, authenticator, responses=cache)

    async def _measure(self, closing: AsyncExitStack) -> None:
        measuring = PeriodicTask("metrics of this process", self._process.metrics.measure, MEASURE_SECONDS)
        measuring.start()
        closing.push_async_callback(measuring.close)


def _add_graphql(paths: routing.Routes, gateway: assembly.Gateway, authenticator: authentication.Authenticator) -> None:
    upstream = gateway.settings.upstream
    assert upstream != "sandbox"  # noqa: S101 - it holds addresses by now
    service = GraphQLService(gateway.pipeline, schema.load(upstream.site))
    served = graphql.GraphQLRoutes(service, gateway, authenticator)
    served.add_to(paths)
    v4_routes.add_endpoint(paths, served, V4DocumentReader(service.documents, upstream.site))


def _add_description(paths: routing.Routes, mappings: Mappings) -> None:
    """Serve the OpenAPI document under both prefixes; no API key needed."""

    @functools.cache
    def body() -> bytes:  # made on the first request: few services ever serve it
        return msgspec.json.encode(openapi.document(mappings))

    async def description(_: web.BaseRequest) -> web.Response:
        response = web.Response(body=body(), content_type="application/json")
        response.enable_compression()
        return response

    for prefix in PREFIXES:
        routes.add(paths, f"{prefix}{openapi.PATH}", description)


def _add_operator_paths(paths: routing.Routes, gateway: assembly.Gateway, running: service.RunningService) -> None:
    _add_description(paths, gateway.mappings)
    operator_endpoints.add_health(paths)
    if gateway.settings.listen.metrics:
        operator_endpoints.add_monitoring(paths, running)
