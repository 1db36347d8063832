"""The services outside, as the configuration has them: tokens of one, queries to the other, a breaker before each."""

import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

import aiohttp

from proxy import config
from proxy.kit import clock as clocks
from proxy.telemetry import metrics as metering
from proxy.telemetry import tracing
from proxy.upstream import classify, exchange, graphql, policies, session, stalls
from proxy.upstream.auth import identity, token_cache, token_requests, token_store

ClientKind = Callable[..., graphql.GraphQLClient]  # made with the arguments of the plain one


class Outside(NamedTuple):
    """The connections to both services, the tokens of one, a client of the other, and that one's breaker."""

    http: aiohttp.ClientSession
    tokens: token_cache.TokenCache
    client: graphql.GraphQLClient
    breaker: policies.CircuitBreaker


def connect(
    upstream: config.Upstream,
    sharing: config.Sharing,
    *,
    store: token_store.TokenStore,
    spans: tracing.Tracing | None,
    clock: clocks.Clock,
    metrics: metering.Metrics,
    opened: AsyncExitStack,
    kind: ClientKind | None = None,
) -> Outside:
    """Made, not yet used; what is to be closed is `opened`. `kind` stands in for the client that is made else."""
    http = session.open_session(upstream)
    opened.push_async_callback(http.close)
    rng = random.SystemRandom()

    def breaker(name: str, service: str) -> policies.CircuitBreaker:
        return policies.CircuitBreaker(name, service, upstream.breaker, clock=clock, rng=rng, metrics=metrics)

    source = token_requests.TokenRequester(
        http,
        upstream.token_url,
        upstream.scope,
        store=store,
        breaker=breaker("identity", identity.SERVICE),
        clock=clock,
        rng=rng,
        metrics=metrics,
    )
    kept = token_cache.TokenCache(source, clock=clock, rng=rng, metrics=metrics)
    opened.push_async_callback(kept.close)
    queries = breaker("graphql", classify.SERVICE)
    retry = policies.RetryPolicy(upstream.retries, upstream.timeouts.total_seconds, policies.RetryBudget(), rng)
    watching = stalls.StallDetector(sharing.stall_seconds, retry.budget, metrics)
    if kind is None:
        kind = graphql.GraphQLClient if spans is None else partial(graphql.TracedGraphQLClient, tracing=spans)
    poster = exchange.Exchanges(http, upstream.graphql_url) if upstream.proxy is None else http
    client = kind(
        poster,
        upstream.graphql_url,
        kept,
        retry=retry,
        breaker=queries,
        metrics=metrics,
        clock=clock,
        response_bytes=upstream.response_bytes,
        stall_detector=watching,
    )
    return Outside(http, kept, client, queries)
