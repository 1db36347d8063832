"""Assembly of a gateway: builds the pipeline and everything that it uses from a configuration.

The HTTP server is built around a gateway (web/app.py); commands use one without a server, with the same quota, tokens
and caches.
"""

import secrets
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from proxy import config, errors, model
from proxy.gateway import applications, callers, directory, load_shedding, pipeline, rate_limit
from proxy.gateway.cache import clearing, entries, lookup, shared_keys
from proxy.gateway.cache import shared as shared_cache
from proxy.gateway.quota import reconciliation, reservations
from proxy.kit import clock as clocks
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning import projection_cache
from proxy.stores import open as opening
from proxy.stores.protocols import Store
from proxy.telemetry import activity as activities
from proxy.telemetry import callers as caller_counts
from proxy.telemetry import metrics as metering
from proxy.telemetry import tracing
from proxy.upstream import batching, services, supply_counts
from proxy.upstream.auth import token_store


@dataclass(frozen=True, slots=True)
class Gateway:
    """Pipeline, and the parts of it that its users need, too. `spans` is None without a collector of traces."""

    settings: config.Config
    clock: clocks.Clock
    metrics: metering.Metrics
    activity: activities.Activity
    mappings: loader.Mappings
    applications: applications.Applications
    store: Store
    quota: reservations.Quota
    services: services.UpstreamServices
    load: load_shedding.LoadShedding
    cache: lookup.QueryCache
    pipeline: pipeline.Pipeline
    reconciler: reconciliation.Reconciler
    spans: tracing.Tracing | None


@dataclass(frozen=True, slots=True)
class SharedCacheLocation:
    """Where the shared cache is, if not beside the store: the address of a store, and the name of the upstream whose
    results it holds, for one whose address changes."""

    store: config.StoreUrl
    upstream: str


@dataclass(frozen=True, slots=True)
class _Base:
    """Common dependencies of the parts. `resources` closes parts in reverse order, so that a part is closed before
    those that it uses."""

    settings: config.Config
    upstream: config.UpstreamSettings
    clock: clocks.Clock
    metrics: metering.Metrics
    resources: AsyncExitStack


async def build(
    settings: config.Config,
    clock: clocks.Clock,
    resources: AsyncExitStack,
    *,
    client_factory: services.ClientFactory | None = None,
    cache_location: SharedCacheLocation | None = None,
) -> Gateway:
    """Build a gateway and start its background work, in the event loop that will use it; `resources` closes it.

    `settings.upstream` must hold addresses. `client_factory` replaces the usual GraphQL client. Raises MappingError
    and ConfigError.
    """
    if settings.upstream == "sandbox":
        raise errors.ConfigError("upstream: sandbox has no addresses until the sandbox runs")
    metrics = metering.Metrics(CollectorRegistry(), clock)
    base = _Base(settings, settings.upstream, clock, metrics, resources)
    uids = Path(settings.uids) if settings.uids else None
    mappings = loader.load(shipped.path("mappings"), base.upstream.site, uids)
    served = applications.Applications(settings.applications)
    counts = caller_counts.CallerCounts()
    activity = activities.Activity(clock, counts.add) if settings.clients.days else activities.Activity(clock)
    spans = _open_tracing(base)
    load = _start_load_shedding(base)
    # Early: it is closed last, when everything that books has been closed.
    store = await opening.open_store(settings.store, clock)
    resources.push_async_callback(store.aclose)
    _start_recording(base, counts, store)
    quota = await _start_quota(base, store, served)
    connected = services.connect(
        base.upstream,
        settings.coalescing,
        store=token_store.EncryptedTokenStore(store, settings.store_key),
        spans=spans,
        clock=clock,
        metrics=metrics,
        activity=activity,
        resources=resources,
        client_factory=client_factory,
    )
    cache = await _open_cache(base, cache_location, store)
    requests = _pipeline(
        base, mappings, served=served, store=store, quota=quota, connected=connected, load=load, cache=cache
    )
    return Gateway(
        settings=settings,
        clock=clock,
        metrics=metrics,
        activity=activity,
        mappings=mappings,
        applications=served,
        store=store,
        quota=quota,
        services=connected,
        load=load,
        cache=cache,
        pipeline=requests,
        reconciler=_start_reconciler(base, store, connected),
        spans=spans,
    )


def _pipeline(
    base: _Base,
    mappings: loader.Mappings,
    *,
    served: applications.Applications,
    store: Store,
    quota: reservations.Quota,
    connected: services.UpstreamServices,
    load: load_shedding.LoadShedding,
    cache: lookup.QueryCache,
) -> pipeline.Pipeline:
    """Build the pipeline, and start its background work: the catalogue lists."""
    settings, upstream, clock, metrics = base.settings, base.upstream, base.clock, base.metrics
    projections = _compile_projections(mappings, served)
    lists = directory.Directory(
        projections.list_definitions(), connected.client, settings.lists.seconds, upstream.timeouts.total_seconds, clock
    )
    base.resources.push_async_callback(lists.close)
    batches = batching.Batcher(connected.client, settings.coalescing.enabled, upstream.connections, metrics)
    base.resources.push_async_callback(batches.close)
    requests = pipeline.Pipeline(
        projections=projections,
        cache=cache,
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


def _start_reconciler(base: _Base, store: Store, connected: services.UpstreamServices) -> reconciliation.Reconciler:
    counts = supply_counts.SupplyCountsClient(connected.http, base.upstream.graphql_url, base.clock)
    applications = reconciliation.reconciled_applications(base.settings.applications)
    reconciler = reconciliation.Reconciler(store, applications, counts, base.clock)
    base.resources.push_async_callback(reconciler.close)
    reconciler.start()
    return reconciler


async def _open_cache(base: _Base, location: SharedCacheLocation | None, store: Store) -> lookup.QueryCache:
    """Open the response cache, the shared one, and start to follow their clearing by other processes."""
    settings = base.settings
    memory = entries.ResponseCache(settings.cache, base.clock) if settings.cache.enabled else None
    shared = _open_shared_cache(base, location)
    cache = lookup.QueryCache(memory, settings.coalescing.enabled, base.metrics, shared)
    if memory is not None:
        started = clearing.CacheClearing(store, cache.clear)
        base.resources.push_async_callback(started.close)
        await started.start()
    return cache


def _open_shared_cache(base: _Base, location: SharedCacheLocation | None) -> shared_cache.SharedCache | None:
    """Open the shared cache; None if it is off, or if the store is in memory."""
    settings, upstream = base.settings, base.upstream
    if not (settings.cache.enabled and settings.cache.shared):
        return None
    address = settings.store
    if location is not None:
        address, upstream = location.store, msgspec.structs.replace(upstream, graphql_url=location.upstream)
    store = opening.open_cache(address, settings.cache.shared_bytes, shared_cache.CLAIM_SECONDS, base.clock)
    if store is None:
        return None
    # A changed mapping, uid or setting must not find entries that were made with the old one.
    files = shipped.mapping_files() + ([Path(settings.uids)] if settings.uids else [])
    scope = shared_keys.namespace(settings, upstream, files)
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


def _start_recording(base: _Base, counts: caller_counts.CallerCounts, store: Store) -> None:
    """Start to write who called. With `clients.days: 0` nothing is counted, and what was is deleted."""
    recorder = callers.CallerRecorder(counts, store, base.settings.clients.days, base.clock)
    base.resources.push_async_callback(recorder.close)
    recorder.start()


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
