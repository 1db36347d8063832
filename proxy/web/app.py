"""Composition root of the service: builds the aiohttp application around a gateway."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

from aiohttp import web

from proxy import config
from proxy.gateway import assembly
from proxy.gateway.cache import entries
from proxy.kit import clock as clocks
from proxy.telemetry import merging, request_ids
from proxy.telemetry import metrics as metering
from proxy.upstream import services
from proxy.web import (
    authentication,
    client_address,
    fast_path,
    legacy_proxy,
    middleware,
    operator_endpoints,
    service,
    shadowing,
)
from proxy.web.v3 import encoded_cache, routes, unparsed
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
    addresses = client_address.ClientAddressResolver(settings.listen.trusted_proxies)
    authenticator = authentication.Authenticator(served, settings.listen.failed_auth_per_minute, addresses, metrics)
    # A share of the bytes of the setting, so that both caches together stay within it.
    cache = encoded_cache.EncodedResponseCache(
        settings.cache.bytes // entries.ENCODED_SHARE, clock, settings.cache.stale_seconds
    )
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
    ).add_to(app)
    app[fast_path.REFUSED] = request_middleware.wrap(fast_path.refuse, "unknown")
    if not (outer or inner):  # the fast path runs no middleware but the request's own
        app[fast_path.FILTERS] = hits, unparsed.OverloadFilter(gateway.load, cache, metrics)
        app[fast_path.DIRECT] = {path: request_middleware.wrap(handler, path) for path, handler in fixed_paths.items()}
    openapi.add_to(app, gateway.mappings)
    checks = operator_endpoints.readiness_checks(served, gateway.store, gateway.services, clock)
    running = service.RunningService(gateway, checks, _metrics_text(app, metrics, slot))
    operator_endpoints.add_health(app)
    operator_endpoints.add_monitoring(app, running)
    app[service.SERVICE] = running
    return app


def _metrics_text(
    app: web.Application, metrics: metering.Metrics, slot: merging.WorkerSlot | None
) -> Callable[[], bytes]:
    """Return the function that renders `/metrics`: of this process, or merged with those of the other workers."""
    if slot is None:

        def of_this_process() -> bytes:
            metrics.sample()
            return metrics.text()

        return of_this_process
    merged = merging.MergedMetrics(metrics, slot)

    async def writing(_: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(merged.write_regularly(), name="metrics of this worker")
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    app.cleanup_ctx.append(writing)
    return merged.text


def _closing(resources: AsyncExitStack) -> Callable[[web.Application], Awaitable[None]]:
    async def close(_: web.Application) -> None:
        await resources.aclose()

    return close
