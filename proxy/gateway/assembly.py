"""Assembly of a gateway: builds the pipeline and everything that it uses from a configuration.

The service is built around a gateway (proxy/app.py); commands use one without a server, with the same quota, tokens and
caches.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric

from proxy import config, errors, model
from proxy.config import changes
from proxy.gateway import (
    access_tokens,
    applications,
    directory,
    pipeline,
    plan_knowledge,
    queries,
    rate_limit,
    readiness,
    recording,
    stored_state,
)
from proxy.gateway import process as processes
from proxy.gateway.applications import Client
from proxy.gateway.cache import clearing, coalescing, entries, lookup, shared_keys
from proxy.gateway.cache import shared as shared_cache
from proxy.gateway.quota import reservations, usage
from proxy.gateway.readiness import FailureReason
from proxy.kit import clock as clocks
from proxy.kit import shipped
from proxy.kit.periodic import PeriodicTask
from proxy.mapping import loader, tables
from proxy.planning import listing, projection_cache
from proxy.store import open as opening
from proxy.store.store import Store
from proxy.stores.protocols import Store as CoreStore
from proxy.telemetry import metrics as metering
from proxy.telemetry import seen as seeing
from proxy.upstream import batching, classify, http_post, policies, services

T = TypeVar("T")

SWEEP_SECONDS = 60.0  # between two looks for what the store need not keep


@dataclass(frozen=True, slots=True)
class Gateway:
    """Pipeline, and the parts of it that its users need, too. `contents` are digests of the files that the settings
    name, `core` is the store of usage and notes."""

    settings: config.Config
    contents: dict[str, str]
    clock: clocks.Clock
    metrics: metering.Metrics
    seen: seeing.SeenRequests
    recorder: recording.Recorder
    mappings: loader.Mappings
    applications: applications.Applications
    store: Store
    core: CoreStore
    quota: reservations.Quota
    services: services.UpstreamServices
    lists: directory.Directory
    cache: lookup.QueryCache
    pipeline: pipeline.Pipeline
    access_tokens: access_tokens.AccessTokens

    @classmethod
    async def open(
        cls,
        settings: config.Config,
        clock: clocks.Clock,
        resources: AsyncExitStack,
        *,
        cache_location: tuple[config.StoreUrl, str] | None = None,
    ) -> "Gateway":
        """Build a gateway that serves one program, as `build` does."""
        return await build(settings, clock, resources, cache_location=cache_location)

    def activate(self) -> None:
        """Apply its settings to what it shares with the gateway that it replaces."""
        self.cache.activate()
        self.metrics.stored = self.stored_metrics

    def stored_metrics(self) -> Iterator[Metric]:
        """Yield the metrics of what every process reads from the store: usage, and access tokens."""
        yield from usage.gauges(self.quota.usages())
        ages = GaugeMetricFamily(
            "v3bridge_token_age_seconds", "Age of the access token in use", labels=("application",)
        )
        for name, age, _ in self.tokens():
            if age is not None:
                ages.add_metric((name,), age)
        yield ages

    def readiness(self) -> dict[str, FailureReason]:
        """Return the conditions of readiness by name, as functions that return why one is not met."""
        owners = [application.credentials for application in self.applications.applications.values()]
        writes = self.core.check_writable, lambda: self.store.put_value("writable", "", 1.0)
        return readiness.checks(owners, writes, self.services, self.clock)

    def breakers(self) -> dict[str, str]:
        """Return the state of the circuit breaker of each service of the upstream."""
        return {name: policies.STATES[breaker.state] for name, breaker in self.services.breakers.items()}

    def tokens(self) -> Iterator[tuple[str, float | None, errors.CredentialsRefused | None]]:
        """Yield each application with the age of its access token, None before the first, and why it is refused."""
        tokens = self.services.tokens
        for name, application in self.applications.applications.items():
            yield name, tokens.age(application.credentials), tokens.refusal(application.credentials)

    async def pass_on(self, body: bytes, authorization: str) -> http_post.HttpResponse:
        """Send a GraphQL request of a caller as it is, with the caller's own access token, unmetered; nothing of it is
        kept. Raises BridgeErrors."""
        upstream = self.settings.upstream
        assert upstream != "sandbox"  # noqa: S101 - it has addresses by now
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": authorization}
        request = http_post.HttpRequest(
            upstream.graphql_url, classify.SERVICE, body, headers, billed=False, max_bytes=upstream.response_bytes
        )
        return await http_post.post(self.services.http, request)

    @property
    def state(self) -> stored_state.StoredState:
        """What the store has."""
        return stored_state.StoredState(self.store, self.core, self.settings, self.clock)

    async def quote(
        self, request: queries.GatewayRequest, wanted: queries.QuerySet
    ) -> list[entries.RenderedResult | None]:
        """Return the results that cost nothing because they are stored, None for the other queries."""
        return await self.cache.peek(request, wanted)

    async def flush(self) -> None:
        """Wait until all results so far are stored for other processes."""
        if self.cache.shared is not None:
            await self.cache.shared.flush()

    async def listed(self, name: str, client: Client) -> listing.Listing:
        """Return the list of brands, sellers or categories. Raises BridgeErrors."""
        return await self.lists.listing(name, client.application.credentials, self.clock.monotonic())

    async def specs(self, client: Client) -> tables.Tables:
        """Return the tables with all specs of the upstream. Raises BridgeErrors."""
        return await self.lists.specs(client.application.credentials, self.clock.monotonic())


@dataclass(frozen=True, slots=True)
class _Base:
    """Common dependencies of the parts. `resources` closes parts in reverse order, so that a part is closed before
    those that it uses. `previous` is the gateway that a reload replaces."""

    settings: config.Config
    upstream: config.UpstreamSettings
    contents: dict[str, str]
    process: processes.ProcessState
    resources: AsyncExitStack
    previous: Gateway | None

    @property
    def clock(self) -> clocks.Clock:
        return self.process.clock

    @property
    def metrics(self) -> metering.Metrics:
        return self.process.metrics

    @property
    def connection(self) -> tuple[Hashable, ...]:
        """All that the upstream clients are made of. The key of what uses them begins with it."""
        files = tuple(digest for name, digest in self.contents.items() if name.startswith("upstream."))
        return self.upstream, files, self.settings.coalescing.stall_seconds

    @property
    def translation(self) -> tuple[Hashable, ...]:
        """All that the mappings are made of."""
        return self.upstream.site, self.contents[changes.MAPPINGS], self.contents.get("uids")

    async def obtain(self, key: tuple[Hashable, ...], open_: Callable[[AsyncExitStack], Awaitable[T]]) -> T:
        """Return a part that gateways share if all that it is made of, the `key`, is the same, with what it learned."""
        return await self.process.shared.obtain(key, self.resources, open_)


async def build(
    settings: config.Config,
    clock: clocks.Clock,
    resources: AsyncExitStack,
    *,
    cache_location: tuple[config.StoreUrl, str] | None = None,
    process: processes.ProcessState | None = None,
    previous: Gateway | None = None,
) -> Gateway:
    """Build a gateway and start its background work, in the event loop that will use it; `resources` closes it.

    `settings.upstream` must hold addresses. A reload passes the state of its process, and the gateway
    that it will replace. Raises MappingError and ConfigError.
    """
    if settings.upstream == "sandbox":
        raise errors.ConfigError("upstream: sandbox has no addresses until the sandbox runs")
    # In threads, here and below, whatever reads files or compiles mappings: the event loop may be serving requests.
    contents = await asyncio.to_thread(changes.contents, settings)
    base = _Base(settings, settings.upstream, contents, process or processes.ProcessState(clock), resources, previous)
    mappings, projections = await _load_mappings(base)
    served = applications.Applications(settings.applications)
    base.process.api_keys |= served.digests
    # Early: it is closed last, when everything that books has been closed.
    store, core = await _open_store(base), await _open_core_store(base)
    recorder = await _start_recording(base, store)
    await _start_plan_notes(base, core, served)
    for application in served.applications.values():  # compiled before the first requests need it
        projections.match(model.Projection(features=application.features), known=application.known_features)
    quota = await _start_quota(base, core, served)
    connected = await _connect(base, store)
    lists = await _open_lists(base, projections, connected)
    cache = await _open_cache(base, cache_location, core)
    requests = await _pipeline(base, projections, mappings, quota=quota, connected=connected, lists=lists, cache=cache)
    built = Gateway(
        settings=settings,
        contents=contents,
        clock=base.clock,
        metrics=base.metrics,
        seen=base.process.seen,
        recorder=recorder,
        mappings=mappings,
        applications=served,
        store=store,
        core=core,
        quota=quota,
        services=connected,
        lists=lists,
        cache=cache,
        pipeline=requests,
        access_tokens=access_tokens.AccessTokens(store, served, base.clock),
    )
    if previous is None:
        built.activate()
    return built


async def _pipeline(
    base: _Base,
    projections: projection_cache.ProjectionCache,
    mappings: loader.Mappings,
    *,
    quota: reservations.Quota,
    connected: services.UpstreamServices,
    lists: directory.Directory,
    cache: lookup.QueryCache,
) -> pipeline.Pipeline:
    batches = await _open_batches(base, connected)
    workers = base.settings.listen.workers
    limits = await base.obtain(("rate limits", workers), _make(rate_limit.RateLimits, workers, base.clock))
    requests = pipeline.Pipeline(
        projections=projections,
        cache=cache,
        quota=quota,
        rate_limits=limits,
        upstream=batches,
        directory=lists,
        tables=mappings.tables,
        single_query=base.settings.translation.single_query,
        metrics=base.metrics,
    )
    requests.start()
    # Resources close in reverse order: the pipeline, whose second attempts use the batcher, before the batcher.
    base.resources.push_async_callback(requests.close)
    return requests


async def _load_mappings(base: _Base) -> tuple[loader.Mappings, projection_cache.ProjectionCache]:
    key = "mappings", base.settings.cache.enabled, *base.translation
    return await base.obtain(key, lambda _: asyncio.to_thread(load_mappings, base.settings, base.upstream))


def load_mappings(
    settings: config.Config, upstream: config.UpstreamSettings
) -> tuple[loader.Mappings, projection_cache.ProjectionCache]:
    """Load the mappings, with the cache of their compiled projections. Raises MappingError."""
    mappings = loader.load(shipped.path("mappings"), upstream.site, Path(settings.uids) if settings.uids else None)
    projections = projection_cache.ProjectionCache(mappings, whole=settings.cache.enabled)
    projections.check(config.FEATURES)
    return mappings, projections


async def _open_store(base: _Base) -> Store:
    async def open_store(closing: AsyncExitStack) -> Store:
        store = await opening.open_store(
            base.settings.store,
            base.clock,
            worker=base.process.name,
            cache_bytes=base.settings.cache.shared_bytes,
        )
        closing.push_async_callback(store.aclose)
        for name in base.process.ended:
            await store.end_worker(name)
        sweeping = PeriodicTask("store", store.sweep, SWEEP_SECONDS, logged=errors.StoreUnavailable)
        closing.push_async_callback(sweeping.close)
        sweeping.start()
        return store

    return await base.obtain(("store", base.settings.store), open_store)


async def _open_core_store(base: _Base) -> CoreStore:
    async def open_store(closing: AsyncExitStack) -> CoreStore:
        store = await base.process.environment.open_store(base.settings.store, base.clock)
        closing.push_async_callback(store.aclose)
        return store

    return await base.obtain(("core store", base.settings.store), open_store)


async def _start_recording(base: _Base, store: Store) -> recording.Recorder:
    """Start to write who called. With `clients.days: 0` nothing is counted, and what was is deleted."""
    days = base.settings.clients.days

    async def start(closing: AsyncExitStack) -> recording.Recorder:
        recorder = recording.Recorder(base.process.seen, store, days, base.clock)
        closing.push_async_callback(recorder.close)
        recorder.start()
        return recorder

    return await base.obtain(("recording", base.settings.store, days), start)


async def _start_plan_notes(base: _Base, store: CoreStore, served: applications.Applications) -> None:
    """Start to share what plans have shown, where parts are fetched whole."""
    if base.settings.cache.enabled:
        plans = {each.cache_scope: each.plan for each in served.applications.values()}
        started = plan_knowledge.PlanNotes(store, plans)
        base.resources.push_async_callback(started.close)
        await started.start()


async def _start_quota(base: _Base, store: CoreStore, served: applications.Applications) -> reservations.Quota:
    charged = [each.accounts for each in served.all]

    async def start(closing: AsyncExitStack) -> reservations.Quota:
        owner = f"{base.process.environment.rng.getrandbits(64):016x}"
        started = reservations.Quota(store, charged, owner, base.clock, base.metrics)
        closing.push_async_callback(started.close)
        await started.start()
        return started

    # One for all configurations: limits are those of the accounts that a request is charged to, and bookings of
    # requests that began before a reload need the reservations of that time.
    quota = await base.obtain(("quota", base.settings.store), start)
    await quota.track(charged)
    base.resources.push_async_callback(quota.untrack, charged)
    return quota


async def _connect(
    base: _Base,
    store: Store,
) -> services.UpstreamServices:
    async def connect(closing: AsyncExitStack) -> services.UpstreamServices:
        return services.connect(
            base.upstream,
            base.settings.coalescing,
            http=base.process.environment.open_session(base.upstream),
            rng=base.process.environment.rng,
            store=store,
            clock=base.clock,
            metrics=base.metrics,
            resources=closing,
        )

    connected = await base.obtain(("upstream", *base.connection), connect)
    if base.previous is not None and base.previous.services is not connected:
        before = base.previous.settings.upstream
        if before != "sandbox" and (before.token_url, before.scope) == (base.upstream.token_url, base.upstream.scope):
            connected.tokens.adopt(base.previous.services.tokens)
    return connected


async def _open_lists(
    base: _Base, projections: projection_cache.ProjectionCache, connected: services.UpstreamServices
) -> directory.Directory:
    upstream = base.upstream

    async def open_lists(closing: AsyncExitStack) -> directory.Directory:
        definitions, wait = projections.list_definitions(), upstream.timeouts.total_seconds
        lists = directory.Directory(definitions, connected.client, listing.FRESH_SECONDS, wait, base.clock)
        closing.push_async_callback(lists.close)
        if (before := base.previous) is not None and before.settings.upstream != "sandbox":
            names = (changes.MAPPINGS, "uids")
            is_translated_equally = all(before.contents.get(name) == base.contents.get(name) for name in names)
            if is_translated_equally and before.settings.upstream.graphql_url == upstream.graphql_url:
                lists.adopt(before.lists)
        return lists

    return await base.obtain(("lists", *base.connection, *base.translation), open_lists)


async def _open_batches(base: _Base, connected: services.UpstreamServices) -> batching.Batcher:
    enabled = base.settings.coalescing.enabled

    async def open_batches(closing: AsyncExitStack) -> batching.Batcher:
        batches = batching.Batcher(connected.client, enabled, base.upstream.connections, base.metrics)
        closing.push_async_callback(batches.close)
        return batches

    return await base.obtain(("batches", *base.connection, enabled), open_batches)


async def _open_cache(base: _Base, location: tuple[config.StoreUrl, str] | None, store: CoreStore) -> lookup.QueryCache:
    """Open the caches and the coalescing of queries in flight; start to follow their clearing by other processes."""
    settings, upstream = base.settings, base.upstream
    if location is not None:
        upstream = msgspec.structs.replace(upstream, graphql_url=location[1])
    # A changed mapping, uid or upstream must not find entries that were made with the old one.
    files = base.contents[changes.MAPPINGS], base.contents.get("uids")
    scope = shared_keys.namespace(settings, upstream, *files)
    in_flight: coalescing.Coalescing[Hashable, lookup.Lookup, entries.RenderedResult] | None = None
    memory: entries.ResponseCache | None = None
    shared = await _open_shared_cache(base, settings.store if location is None else location[0], scope)
    if settings.coalescing.enabled:
        # Shared where the claims are: of two requests one must not wait for the other's work, and that for its claim.
        in_flight = await base.obtain(("in flight", scope, shared), _make(coalescing.Coalescing))
    if settings.cache.enabled:
        storage = await base.obtain(("cache", scope), _make(entries.create_storage, settings.cache, base.clock))
        memory = entries.ResponseCache(settings.cache, base.clock, storage)
    cache = lookup.QueryCache(memory, in_flight, base.metrics, shared)
    if memory is not None:
        started = clearing.CacheClearing(store, cache)
        base.resources.push_async_callback(started.close)
        await started.start()
    return cache


def _make(kind: Callable[..., T], *arguments: Any) -> Callable[[AsyncExitStack], Awaitable[T]]:
    async def open_(_: AsyncExitStack) -> T:
        return kind(*arguments)

    return open_


async def _open_shared_cache(base: _Base, address: config.StoreUrl, scope: bytes) -> shared_cache.SharedCache | None:
    """Open the shared cache; None if it is off, or if the store is in memory."""
    settings, claims = base.settings.cache, base.settings.coalescing.enabled
    if not (settings.enabled and settings.shared):
        return None

    async def open_shared(closing: AsyncExitStack) -> shared_cache.SharedCache | None:
        open_cache = base.process.environment.open_cache
        store = open_cache(address, settings.shared_bytes, shared_cache.CLAIM_SECONDS, base.clock)
        if store is None:
            return None
        opened = shared_cache.SharedCache(store, settings, scope, claims=claims, metrics=base.metrics)
        closing.push_async_callback(opened.close)
        opened.start()
        return opened

    return await base.obtain(("shared cache", address, scope, settings, claims), open_shared)
