"""Composition root of the service: builds the aiohttp application around a gateway."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

from aiohttp import web

from proxy import config
from proxy.gateway import assembly, load_shedding
from proxy.kit import clock as clocks
from proxy.stores import open as opening
from proxy.telemetry import merging, request_ids
from proxy.upstream import services
from proxy.web import (
    authentication,
    client_address,
    fast_path,
    figures,
    legacy_proxy,
    middleware,
    operator_endpoints,
    service,
    shadowing,
)
from proxy.web.v3 import encoded_cache, routes, traced_requests, unparsed
from proxy.web.v3.description import openapi


async def create_app(
    settings: config.Config,
    clock: clocks.Clock,
    slot: merging.WorkerSlot | None = None,
    client_factory: services.ClientFactory | None = None,
) -> web.Application:
    """Build the application, in the event loop that will serve it. `settings.upstream` must hold addresses.

    `slot` is that of a worker among several; None: this process is the whole service. `client_factory` replaces the
    usual GraphQL client. Raises MappingError and ConfigError.
    """
    async with AsyncExitStack() as resources:
        gateway = await assembly.build(settings, clock, resources, client_factory=client_factory)
        app = await _compose(gateway, resources, slot)
        # Only once all is built; an error before this closes what was opened.
        app.on_cleanup.append(_closing(resources.pop_all()))
        return app


async def _compose(
    gateway: assembly.Gateway, resources: AsyncExitStack, slot: merging.WorkerSlot | None
) -> web.Application:
    """Build the parts of the server in the order in which they use each other."""
    settings, clock, metrics = gateway.settings, gateway.clock, gateway.metrics
    served, requests = gateway.applications, gateway.pipeline
    gateway.activity.is_key = served.is_key
    addresses = client_address.ClientAddressResolver(settings.listen.trusted_proxies)
    authenticator = authentication.Authenticator(served, settings.listen.failed_auth_per_minute, addresses, metrics)
    cache = encoded_cache.EncodedResponseCache(settings.cache.encoded_bytes, clock, settings.cache.stale_seconds)
    gateway.cache.clear_responses = cache.clear
    metrics.caches["responses"] = cache.usage
    ids = request_ids.RequestIds()
    request_middleware = middleware.RequestMiddleware(metrics, gateway.activity, clock, addresses, ids)
    hits = unparsed.UnparsedHits(
        cache, unparsed.HitContext(authenticator, addresses, requests, ids, metrics, gateway.activity)
    )
    outer = [middleware.traced(gateway.spans)] if gateway.spans else []
    outer += await shadowing.middlewares(
        settings, served, store=gateway.store, clock=clock, metrics=metrics, resources=resources
    )
    # Inside of the request middleware, so that forwarded requests are logged and counted like others.
    inner = legacy_proxy.middlewares(settings, authenticator, clock, resources)
    app = web.Application(middlewares=[*outer, request_middleware.middleware(), *inner])
    fixed_paths = routes.V3Routes(
        requests,
        authenticator,
        gateway.mappings,
        cache=cache,
        hits=hits,
        coalesces=settings.coalescing.enabled,
        metrics=metrics,
        traced_requests=traced_requests.TracedRequests(gateway, authenticator),
    ).add_to(app)
    app[fast_path.REFUSED] = request_middleware.wrap(fast_path.refuse, "unknown")
    if not (outer or inner):  # the fast path runs no middleware but the request's own
        app[fast_path.FILTERS] = hits, unparsed.OverloadFilter(gateway.load, cache, metrics)
        app[fast_path.DIRECT] = {path: request_middleware.wrap(handler, path) for path, handler in fixed_paths.items()}
    openapi.add_to(app, gateway.mappings)
    checks = operator_endpoints.readiness_checks(served, gateway.store, gateway.services, clock)
    workers = merging.WorkerFigures(metrics, gateway.activity, slot, load_shedding.memory_used)
    all_figures = figures.Figures(workers, gateway.store, clock, shared=opening.has_machines(settings.store))
    app.cleanup_ctx.append(lambda _: _sharing(all_figures))
    running = service.RunningService(gateway, checks, all_figures)
    running.alerts.start()
    resources.push_async_callback(running.alerts.close)
    operator_endpoints.add_health(app)
    if settings.listen.metrics:
        operator_endpoints.add_monitoring(app, running)
    app[service.SERVICE] = running
    return app


async def _sharing(shared: figures.Figures) -> AsyncIterator[None]:
    """Share the figures of this worker and of this machine while the application runs."""
    task = asyncio.create_task(shared.run(), name="figures")
    yield
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _closing(resources: AsyncExitStack) -> Callable[[web.Application], Awaitable[None]]:
    async def close(_: web.Application) -> None:
        await resources.aclose()

    return close
