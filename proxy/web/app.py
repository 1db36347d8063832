"""The composition root: a configuration becomes an application. Here, and only here, all rooms are put together."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry

from proxy import config, errors, model
from proxy.gateway import applications, directory, load_shedding, pipeline, rate_limit
from proxy.gateway.cache import entries, lookup
from proxy.gateway.quota import reconciliation, reservations
from proxy.kit import clock as clocks
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning import projection_cache
from proxy.stores import open as opening
from proxy.stores.protocols import Store
from proxy.telemetry import merging, tracing
from proxy.telemetry import metrics as metering
from proxy.upstream import batching, supply_counts, token_encryption
from proxy.web import client_address, direct, middleware, ops, outside, quick_refusal, readiness, shadowing, wrong_keys
from proxy.web.v3 import repeats, routes
from proxy.web.v3.description import openapi


async def create_app(
    settings: config.Config,
    clock: clocks.Clock,
    place: merging.WorkerSlot | None = None,
    client: outside.ClientKind | None = None,
) -> web.Application:
    """The service as it is configured; `upstream` must name addresses. Runs in the loop it is to serve on.

    `place` is that of a worker among others; None: this process is the whole service. `client` is what
    asks the GraphQL service, where it is not the usual one.
    Raises MappingError and ConfigError: a service that starts can answer.
    """
    async with AsyncExitStack() as opened:
        app = await _compose(settings, clock, place, client, opened)
        app.on_cleanup.append(_closing(opened.pop_all()))
        return app


async def _compose(
    settings: config.Config,
    clock: clocks.Clock,
    place: merging.WorkerSlot | None,
    client: outside.ClientKind | None,
    opened: AsyncExitStack,
) -> web.Application:
    """What is `opened` is closed in the opposite order: who asks before what is asked with."""
    upstream = settings.upstream
    if upstream == "sandbox":
        raise errors.ConfigError("upstream: sandbox has no addresses until the sandbox runs")
    mappings = _mappings(settings, upstream.site)
    served = applications.Applications(settings.applications)
    projections = _projections(mappings, served)
    spans = _tracing(settings.tracing, opened)
    metrics = metering.Metrics(CollectorRegistry(), clock)
    load = _shedding(settings.overload, metrics, opened)
    store = await opening.open_store(settings.store, clock)
    opened.push_async_callback(store.aclose)
    spending = await _spending(store, served, clock, metrics, opened)
    sharing = settings.sharing
    tokens = token_encryption.EncryptedTokens(store, settings.store_key)
    services = outside.connect(
        upstream, sharing, store=tokens, spans=spans, clock=clock, metrics=metrics, opened=opened, kind=client
    )
    limit = upstream.timeouts.total_seconds
    lists = directory.Directory(projections.list_definitions(), services.client, settings.lists.seconds, limit, clock)
    opened.push_async_callback(lists.close)
    calls = batching.Batching(services.client, sharing.enabled, sharing.wait_seconds, metrics)
    opened.push_async_callback(calls.close)
    counts = supply_counts.SupplyCounts(services.http, upstream.graphql_url, clock)
    _reconcile(reconciliation.Reconciler(store, reconciliation.watched(settings.applications), counts, clock), opened)
    way = pipeline.Pipeline(
        projections=projections,
        answers=_answers(settings, load, clock, metrics, opened),
        quota=spending,
        rates=rate_limit.RateLimits(store),
        upstream=calls,
        directory=lists,
        tables=mappings.tables,
        single_query=settings.translation.single_query,
        metrics=metrics,
    )
    addresses = client_address.ClientAddresses(settings.listen.trusted_proxies)
    keys = wrong_keys.WrongKeys(served, settings.listen.wrong_keys, addresses, metrics)
    around = await shadowing.connect(settings, keys, served, store=store, clock=clock, metrics=metrics, opened=opened)
    frame = middleware.Frame(metrics, clock, addresses)
    outermost = (*([middleware.traced(spans)] if spans else []), *around.outside)
    app = web.Application(middlewares=[*outermost, frame.middleware(), *around.inside])
    whole = repeats.Repeats(settings.answers.bytes // 4, clock, settings.answers.stale_seconds)
    fixed = routes.Surface(way, keys, mappings, whole, metrics).add_to(app)
    app[direct.REFUSED] = frame.of(direct.refuse, "unknown")
    if not (outermost or around.inside):
        app[direct.QUICK] = quick_refusal.QuickRefusal(load, whole, metrics)
        app[direct.DIRECT] = {path: frame.of(handler, path) for path, handler in fixed.items()}
    openapi.add_to(app, mappings)
    ops.add_to(app, _metrics_text(app, metrics, place), readiness.checks(served, store, services, clock))
    return app


def _mappings(settings: config.Config, site: str) -> loader.Mappings:
    """The shipped mappings, with a site's own uids."""
    return loader.load(shipped.path("mappings"), site, Path(settings.uids) if settings.uids else None)


async def _spending(
    store: Store,
    served: applications.Applications,
    clock: clocks.Clock,
    metrics: metering.Metrics,
    opened: AsyncExitStack,
) -> reservations.Quota:
    spending = reservations.Quota(store, [each.accounts for each in served.all], secrets.token_hex(8), clock, metrics)
    opened.push_async_callback(spending.close)
    await spending.start()
    return spending


def _projections(mappings: loader.Mappings, served: applications.Applications) -> projection_cache.ProjectionCache:
    """What is asked for most is compiled before anybody asks, and a mistake is found in whatever can be."""
    projections = projection_cache.ProjectionCache(mappings)
    projections.check(config.FEATURES)
    for application in served.applications.values():
        projections.match(model.Projection(features=application.features))
    return projections


def _answers(
    settings: config.Config,
    load: load_shedding.LoadShedding,
    clock: clocks.Clock,
    metrics: metering.Metrics,
    opened: AsyncExitStack,
) -> lookup.Answers:
    """Answers that are kept and shared as the configuration says."""
    memory = entries.ResponseCache(settings.answers, clock) if settings.answers.kept else None
    made = lookup.Answers(memory, settings.sharing.enabled, load, metrics)
    opened.push_async_callback(made.close)
    return made


def _tracing(settings: config.Tracing, opened: AsyncExitStack) -> tracing.Tracing | None:
    """Spans, where the configuration says where to."""
    if not settings.otlp_url:
        return None
    spans = tracing.open_tracing(settings.otlp_url, settings.share)
    opened.push_async_callback(spans.close)
    return spans


def _reconcile(comparing: reconciliation.Reconciler, opened: AsyncExitStack) -> None:
    opened.push_async_callback(comparing.close)
    comparing.start()


def _shedding(
    settings: config.Overload, metrics: metering.Metrics, opened: AsyncExitStack
) -> load_shedding.LoadShedding:
    load = load_shedding.LoadShedding(settings, metrics)
    opened.push_async_callback(load.close)
    load.start()
    return load


def _metrics_text(
    app: web.Application, metrics: metering.Metrics, place: merging.WorkerSlot | None
) -> Callable[[], bytes]:
    """What `/metrics` shows: this process's numbers, or with fellow workers everybody's."""
    if place is None:

        def alone() -> bytes:
            metrics.sample()
            return metrics.text()

        return alone
    merged = merging.MergedMetrics(metrics, place)

    async def keeping(_: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(merged.write_regularly(), name="metrics of this worker")
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    app.cleanup_ctx.append(keeping)
    return merged.text


def _closing(opened: AsyncExitStack) -> Callable[[web.Application], Awaitable[None]]:
    async def close(_: web.Application) -> None:
        await opened.aclose()

    return close
