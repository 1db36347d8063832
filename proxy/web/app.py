"""The composition root: a configuration becomes an application. Here, and only here, all rooms are put together."""

import asyncio
import contextlib
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
from aiohttp import web
from prometheus_client import CollectorRegistry

from proxy import config, errors, model
from proxy.gateway import answers, applications, directory, kept, pipeline, quota, rates, reconcile
from proxy.kit import clock as clocks
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning import library
from proxy.stores import base as stores
from proxy.stores import open as opening
from proxy.telemetry import merging, tracing
from proxy.telemetry import metrics as metering
from proxy.upstream import batching, graphql, session, supply_counts, tokens, traced
from proxy.web import middleware, ops
from proxy.web.v3 import repeats, routes
from proxy.web.v3.description import openapi


async def create_app(
    settings: config.Config, clock: clocks.Clock, place: merging.Place | None = None
) -> web.Application:
    """The service as it is configured; `upstream` must name addresses. Runs in the loop it is to serve on.

    `place` is that of a worker among others; None: this process is the whole service.
    Raises MappingError and ConfigError: a service that starts can answer.
    """
    upstream = settings.upstream
    if upstream == "sandbox":
        raise errors.ConfigError("upstream: sandbox has no addresses until the sandbox runs")
    rulebook = loader.load(shipped.path("mappings"), upstream.site)
    served = applications.Applications(settings.applications)
    views = library.Library(rulebook)
    views.check(config.FEATURES)
    catalogues = views.catalogues()
    for application in served.applications.values():  # what is asked for most is compiled before anybody asks
        views.match(model.View(features=application.features))
    spans = _tracing(settings.tracing)
    metrics = metering.Metrics(CollectorRegistry(), clock)
    shared = await opening.open_store(settings.store, clock)
    spending = quota.Quota(shared, [each.accounts for each in served.all], secrets.token_hex(8), clock, metrics)
    await spending.start()
    http = session.open_session(upstream)
    store = tokens.Tokens(
        http, upstream.token_url, upstream.scope, clock=clock, rng=random.SystemRandom(), metrics=metrics
    )
    memory = kept.KeptAnswers(settings.answers, clock) if settings.answers.kept else None
    client = _client(http, upstream.graphql_url, store, metrics, spans)
    calls = batching.Batching(client, settings.sharing.enabled, settings.sharing.wait_seconds, metrics)
    comparing = reconcile.Reconciler(
        shared,
        reconcile.watched(
            {each.application.name: each.accounts.application for each in served.all}, settings.applications
        ),
        supply_counts.SupplyCounts(http, upstream.graphql_url, clock),
        clock,
    )
    comparing.start()
    lists = directory.Directory(catalogues, client, settings.lists.seconds, clock)
    way = pipeline.Pipeline(
        applications=served,
        views=views,
        answers=answers.Answers(memory, settings.sharing.enabled, metrics),
        quota=spending,
        rates=rates.Rates(shared),
        upstream=calls,
        directory=lists,
        book=rulebook.tables,
        single_query=settings.translation.single_query,
        metrics=metrics,
    )
    around = [] if spans is None else [middleware.traced(spans)]
    app = web.Application(middlewares=[*around, middleware.frame(metrics, clock)])
    routes.Surface(way, rulebook, repeats.Repeats(settings.answers.bytes // 4, clock), clock).add_to(app)
    openapi.add_to(app, rulebook)
    ops.add_to(app, _metrics_text(app, metrics, place), _checks(served, store, shared))
    app.on_cleanup.append(
        _closing(comparing.close, calls.close, lists.close, store.close, http.close, spending.close, shared.aclose)
    )
    if spans is not None:
        app.on_cleanup.append(_closing(spans.close))
    return app


def _tracing(settings: config.Tracing) -> tracing.Tracing | None:
    """Spans, where the configuration says where to."""
    return tracing.open_tracing(settings.otlp_url, settings.share) if settings.otlp_url else None


def _client(
    http: aiohttp.ClientSession,
    url: str,
    store: tokens.Tokens,
    metrics: metering.Metrics,
    spans: tracing.Tracing | None,
) -> graphql.GraphQLClient:
    """What asks the service, with a span for each operation where there are spans."""
    if spans is None:
        return graphql.GraphQLClient(http, url, store, clock=metrics.clock, metrics=metrics)
    return traced.TracedGraphQLClient(http, url, store, clock=metrics.clock, metrics=metrics, tracing=spans)


def _metrics_text(app: web.Application, metrics: metering.Metrics, place: merging.Place | None) -> Callable[[], bytes]:
    """What `/metrics` shows: this process's numbers, or with fellow workers everybody's."""
    if place is None:
        return metrics.text
    merged = merging.Merged(metrics, place)

    async def keeping(_: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(merged.keep_writing(), name="metrics of this worker")
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    app.cleanup_ctx.append(keeping)
    return merged.text


def _checks(served: applications.Applications, store: tokens.Tokens, shared: stores.Store) -> list[ops.Check]:
    """Ready is who reaches the store, and has a token for every application."""
    applied = served.applications.values()
    return [
        ops.Check("store", _trouble(shared.closures)),
        *(ops.Check(f"token {each.name}", _token_trouble(store, each.credentials)) for each in applied),
    ]


def _token_trouble(store: tokens.Tokens, credentials: tokens.Credentials) -> Callable[[], Awaitable[str | None]]:
    return _trouble(lambda: store.get(credentials))


def _trouble(attempt: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[str | None]]:
    """What stands in the way of an attempt, in its error's own words."""

    async def trouble() -> str | None:
        try:
            await attempt()
        except errors.ServerError as error:
            return error.message
        return None

    return trouble


def _closing(*ends: Callable[[], Awaitable[None]]) -> Callable[[web.Application], Awaitable[None]]:
    """What is under way ends first, then the connections it uses."""

    async def close(_: web.Application) -> None:
        for end in ends:
            await end()

    return close
