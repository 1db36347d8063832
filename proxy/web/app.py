"""Composition root: builds the aiohttp application from a configuration. No other module knows all packages."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry

from proxy import config, errors, model
from proxy.gateway import applications, directory, load_shedding, pipeline, rate_limit
from proxy.gateway.cache import entries, lookup, shared_keys
from proxy.gateway.cache import shared as shared_cache
from proxy.gateway.quota import reconciliation, reservations
from proxy.kit import clock as clocks
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning import projection_cache
from proxy.stores import open as opening
from proxy.stores.protocols import Store
from proxy.telemetry import merging, request_ids, tracing
from proxy.telemetry import metrics as metering
from proxy.upstream import batching, supply_counts
from proxy.upstream.auth import token_store
from proxy.web import (
    authentication,
    client_address,
    fast_path,
    legacy_proxy,
    middleware,
    operator_endpoints,
    shadowing,
    upstream_services,
)
from proxy.web.v3 import encoded_cache, routes, unparsed
from proxy.web.v3.description import openapi


@dataclass(frozen=True)
class _Base:
    """Common dependencies of the parts. `resources` closes parts in reverse order, so that a part is closed before
    those that it uses."""

    settings: config.Config
    upstream: config.UpstreamSettings
    clock: clocks.Clock
    metrics: metering.Metrics
    resources: AsyncExitStack


async def create_app(
    settings: config.Config,
    clock: clocks.Clock,
    slot: merging.WorkerSlot | None = None,
    client_factory: upstream_services.ClientFactory | None = None,
) -> web.Application:
    """Build the application, in the event loop that will serve it. `settings.upstream` must hold addresses.

    `slot` is that of a worker among several; None: this process is the whole service. `client_factory` replaces the
    usual GraphQL client. Raises MappingError and ConfigError.
    """
    if settings.upstream == "sandbox":
        raise errors.ConfigError("upstream: sandbox has no addresses until the sandbox runs")
    metrics = metering.Metrics(CollectorRegistry(), clock)
    async with AsyncExitStack() as resources:
        base = _Base(settings, settings.upstream, clock, metrics, resources)
        app = await _compose(base, slot, client_factory)
        # Only once all is built; an error before this closes what was opened.
        app.on_cleanup.append(_closing(resources.pop_all()))
        return app


async def _compose(
    base: _Base, slot: merging.WorkerSlot | None, client_factory: upstream_services.ClientFactory | None
) -> web.Application:
    """Build the parts in the order in which they use each other: data, upstream, gateway, web."""
    settings, clock, metrics = base.settings, base.clock, base.metrics
    mappings = loader.load(shipped.path("mappings"), base.upstream.site, Path(settings.uids) if settings.uids else None)
    served = applications.Applications(settings.applications)
    spans = _open_tracing(base)
    load = _start_load_shedding(base)
    # Early: it is closed last, when everything that books has been closed.
    store = await opening.open_store(settings.store, clock)
    base.resources.push_async_callback(store.aclose)
    quota = await _start_quota(base, store, served)
    services = upstream_services.connect(
        base.upstream,
        settings.coalescing,
        store=token_store.EncryptedTokenStore(store, settings.store_key),
        spans=spans,
        clock=clock,
        metrics=metrics,
        resources=base.resources,
        client_factory=client_factory,
    )
    requests = _pipeline(base, mappings, served=served, store=store, quota=quota, services=services, load=load)

    addresses = client_address.ClientAddressResolver(settings.listen.trusted_proxies)
    authenticator = authentication.Authenticator(served, settings.listen.failed_auth_per_minute, addresses, metrics)
    # A share of the bytes of the setting, so that both caches together stay within it.
    cache = encoded_cache.EncodedResponseCache(
        settings.cache.bytes // entries.ENCODED_SHARE, clock, settings.cache.stale_seconds
    )
    ids = request_ids.RequestIds()
    request_middleware = middleware.RequestMiddleware(metrics, clock, addresses, ids)
    hits = unparsed.UnparsedHits(cache, unparsed.HitContext(authenticator, addresses, requests, ids, metrics))
    outer = [middleware.traced(spans)] if spans else []
    outer += await shadowing.middlewares(
        settings, served, store=store, clock=clock, metrics=metrics, resources=base.resources
    )
    # Inside of the request middleware, so that forwarded requests are logged and counted like others.
    inner = legacy_proxy.middlewares(settings, authenticator, base.resources)
    app = web.Application(middlewares=[*outer, request_middleware.middleware(), *inner])
    fixed_paths = routes.V3Routes(
        requests,
        authenticator,
        mappings,
        cache=cache,
        hits=hits,
        coalesces=settings.coalescing.enabled,
        metrics=metrics,
    ).add_to(app)
    app[fast_path.REFUSED] = request_middleware.wrap(fast_path.refuse, "unknown")
    if not (outer or inner):  # the fast path runs no middleware but the request's own
        app[fast_path.FILTERS] = hits, unparsed.OverloadFilter(load, cache, metrics)
        app[fast_path.DIRECT] = {path: request_middleware.wrap(handler, path) for path, handler in fixed_paths.items()}
    openapi.add_to(app, mappings)
    checks = operator_endpoints.readiness_checks(served, store, services, clock)
    operator_endpoints.add_to(app, _metrics_text(app, metrics, slot), checks)
    return app


def _pipeline(
    base: _Base,
    mappings: loader.Mappings,
    *,
    served: applications.Applications,
    store: Store,
    quota: reservations.Quota,
    services: upstream_services.UpstreamServices,
    load: load_shedding.LoadShedding,
) -> pipeline.Pipeline:
    """Build the pipeline, and start its background work: the catalogue lists and the reconciliation of usage."""
    settings, upstream, clock, metrics = base.settings, base.upstream, base.clock, base.metrics
    projections = _compile_projections(mappings, served)
    lists = directory.Directory(
        projections.list_definitions(), services.client, settings.lists.seconds, upstream.timeouts.total_seconds, clock
    )
    base.resources.push_async_callback(lists.close)
    coalescing = settings.coalescing
    batches = batching.Batcher(services.client, coalescing.enabled, upstream.connections, metrics)
    base.resources.push_async_callback(batches.close)
    counts = supply_counts.SupplyCountsClient(services.http, upstream.graphql_url, clock)
    reconciler = reconciliation.Reconciler(
        store, reconciliation.reconciled_applications(settings.applications), counts, clock
    )
    base.resources.push_async_callback(reconciler.close)
    reconciler.start()
    memory = entries.ResponseCache(settings.cache, clock) if settings.cache.enabled else None
    requests = pipeline.Pipeline(
        projections=projections,
        cache=lookup.QueryCache(memory, coalescing.enabled, metrics, _open_shared_cache(base)),
        load=load,
        quota=quota,
        rate_limits=rate_limit.RateLimits(store),
        upstream=batches,
        directory=lists,
        tables=mappings.tables,
        single_query=settings.translation.single_query,
        metrics=metrics,
    )
    # Resources close in reverse order: the pipeline, whose second attempts use the batcher, before the batcher.
    base.resources.push_async_callback(requests.close)
    return requests


def _open_shared_cache(base: _Base) -> shared_cache.SharedCache | None:
    """Open the shared cache; None if it is off, or if the store is in memory."""
    settings = base.settings
    if not (settings.cache.enabled and settings.cache.shared):
        return None
    size, lease = settings.cache.shared_bytes, shared_cache.CLAIM_SECONDS
    store = opening.open_cache(settings.store, size, lease, base.clock)
    if store is None:
        return None
    # A changed mapping, uid or setting must not find entries that were made with the old one.
    files = [file for file in shipped.path("mappings").iterdir() if file.is_file()]
    files += [Path(settings.uids)] if settings.uids else []
    scope = shared_keys.namespace(settings, base.upstream, files)
    claims = settings.coalescing.enabled
    opened = shared_cache.SharedCache(store, settings.cache, scope, claims=claims, metrics=base.metrics)
    base.resources.push_async_callback(opened.close)
    opened.start()
    return opened


def _compile_projections(
    mappings: loader.Mappings, served: applications.Applications
) -> projection_cache.ProjectionCache:
    """Compile the default projection of every application. A mistake in any mapping rule raises MappingError here."""
    projections = projection_cache.ProjectionCache(mappings)
    projections.check(config.FEATURES)
    # What most first requests need is compiled before the service accepts any.
    for application in served.applications.values():
        projections.match(model.Projection(features=application.features))
    return projections


async def _start_quota(base: _Base, store: Store, served: applications.Applications) -> reservations.Quota:
    started = reservations.Quota(
        store, [each.accounts for each in served.all], secrets.token_hex(8), base.clock, base.metrics
    )
    base.resources.push_async_callback(started.close)
    await started.start()
    return started


def _open_tracing(base: _Base) -> tracing.Tracing | None:
    """Open tracing, if the configuration names a collector."""
    settings = base.settings.tracing
    if not settings.otlp_url:
        return None
    spans = tracing.open_tracing(settings.otlp_url, settings.share)
    base.resources.push_async_callback(spans.close)
    return spans


def _start_load_shedding(base: _Base) -> load_shedding.LoadShedding:
    load = load_shedding.LoadShedding(base.settings.overload, base.metrics)
    base.resources.push_async_callback(load.close)
    load.start()
    return load


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
