"""The composition root: a configuration becomes an application. Here, and only here, all rooms are put together."""

import random
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web
from prometheus_client import CollectorRegistry

from proxy import config, errors, model
from proxy.gateway import answers, applications, directory, kept, pipeline, quota, rates, reconcile
from proxy.kit import clock as clocks
from proxy.kit import shipped
from proxy.mapping import loader
from proxy.planning import library
from proxy.stores import open as opening
from proxy.telemetry import metrics as metering
from proxy.upstream import batching, graphql, session, supply_counts, tokens
from proxy.web import middleware, ops
from proxy.web.v3 import repeats, routes
from proxy.web.v3.description import openapi


async def create_app(settings: config.Config, clock: clocks.Clock) -> web.Application:
    """The service as it is configured; `upstream` must name addresses. Runs in the loop it is to serve on.

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
    metrics = metering.Metrics(CollectorRegistry())
    shared = await opening.open_store(settings.store, clock)
    spending = quota.Quota(shared, [each.accounts for each in served.all], secrets.token_hex(8), clock, metrics)
    await spending.start()
    http = session.open_session(upstream)
    store = tokens.Tokens(
        http, upstream.token_url, upstream.scope, clock=clock, rng=random.SystemRandom(), metrics=metrics
    )
    memory = kept.KeptAnswers(settings.answers, clock) if settings.answers.kept else None
    client = graphql.GraphQLClient(http, upstream.graphql_url, store, clock=clock, metrics=metrics)
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
    app = web.Application(middlewares=[middleware.frame(metrics, clock)])
    routes.Surface(way, rulebook, repeats.Repeats(settings.answers.bytes // 4, clock), clock).add_to(app)
    openapi.add_to(app, rulebook)
    ops.add_to(app, metrics, _ready(served, store))
    app.on_cleanup.append(
        _closing(comparing.close, calls.close, lists.close, store.close, http.close, spending.close, shared.aclose)
    )
    return app


def _ready(served: applications.Applications, store: tokens.Tokens) -> Callable[[], Awaitable[str | None]]:
    """Ready is who has a token for every application; the reason names the first that has none."""

    async def ready() -> str | None:
        for application in served.applications.values():
            try:
                await store.get(application.credentials)
            except errors.ServerError as error:
                return f"application {application.name}: {error.message}"
        return None

    return ready


def _closing(*ends: Callable[[], Awaitable[None]]) -> Callable[[web.Application], Awaitable[None]]:
    """What is under way ends first, then the connections it uses."""

    async def close(_: web.Application) -> None:
        for end in ends:
            await end()

    return close
