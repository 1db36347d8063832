"""The composition root: a configuration becomes an application. Here, and only here, all rooms are put together."""

import random
import secrets
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import aiohttp
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
from proxy.upstream import (
    acquisition,
    batching,
    classify,
    graphql,
    identity,
    policies,
    session,
    supply_counts,
    token_store,
    tokens,
)
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
    outside = _outside(upstream, http, shared, clock, metrics)
    client = outside.client
    memory = kept.KeptAnswers(settings.answers, clock) if settings.answers.kept else None
    calls = batching.Batching(client, settings.sharing.enabled, settings.sharing.wait_seconds, metrics)
    counts = supply_counts.SupplyCounts(http, upstream.graphql_url, clock)
    comparing = reconcile.Reconciler(shared, reconcile.watched(settings.applications), counts, clock)
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
    ops.add_to(app, metrics, _ready(served, outside))
    app.on_cleanup.append(
        _closing(
            comparing.close, calls.close, lists.close, outside.tokens.close, http.close, spending.close, shared.aclose
        )
    )
    return app


class _Outside(NamedTuple):
    """The two services outside: the tokens of one, a client of the other, and that one's breaker."""

    tokens: tokens.Tokens
    client: graphql.GraphQLClient
    breaker: policies.Breaker


def _outside(
    upstream: config.Upstream,
    http: aiohttp.ClientSession,
    store: token_store.TokenStore,
    clock: clocks.Clock,
    metrics: metering.Metrics,
) -> _Outside:
    rng = random.SystemRandom()

    def breaker(name: str, service: str) -> policies.Breaker:
        return policies.Breaker(name, service, upstream.breaker, clock=clock, rng=rng, metrics=metrics)

    source = acquisition.Acquisition(
        http,
        upstream.token_url,
        upstream.scope,
        store=store,
        breaker=breaker("identity", identity.SERVICE),
        clock=clock,
        rng=rng,
        metrics=metrics,
    )
    kept = tokens.Tokens(source, clock=clock, rng=rng)
    queries = breaker("graphql", classify.SERVICE)
    retry = policies.Retry(upstream.retries, upstream.timeouts.total_seconds, policies.Budget(), rng)
    client = graphql.GraphQLClient(
        http, upstream.graphql_url, kept, retry=retry, breaker=queries, metrics=metrics, clock=clock
    )
    return _Outside(kept, client, queries)


def _ready(served: applications.Applications, outside: _Outside) -> Callable[[], Awaitable[str | None]]:
    """Ready is who has a token for every application and a service to ask; the reason names the first that fails."""

    async def ready() -> str | None:
        if refusal := outside.breaker.refusal():
            return refusal.message
        for application in served.applications.values():
            try:
                await outside.tokens.get(application.credentials)
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
