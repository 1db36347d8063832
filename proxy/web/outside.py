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
from proxy.upstream import (
    acquisition,
    classify,
    exchange,
    graphql,
    identity,
    policies,
    session,
    stalls,
    token_store,
    tokens,
    traced,
)

ClientKind = Callable[..., graphql.GraphQLClient]  # made with the arguments of the plain one


class Outside(NamedTuple):
    """The connections to both services, the tokens of one, a client of the other, and that one's breaker."""

    http: aiohttp.ClientSession
    tokens: tokens.Tokens
    client: graphql.GraphQLClient
    breaker: policies.Breaker


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
    kept = tokens.Tokens(source, clock=clock, rng=rng, metrics=metrics)
    opened.push_async_callback(kept.close)
    queries = breaker("graphql", classify.SERVICE)
    retry = policies.Retry(upstream.retries, upstream.timeouts.total_seconds, policies.Budget(), rng)
    watching = stalls.Stalls(sharing.stall_seconds, retry.budget, metrics)
    if kind is None:
        kind = graphql.GraphQLClient if spans is None else partial(traced.TracedGraphQLClient, tracing=spans)
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
        watching=watching,
    )
    return Outside(http, kept, client, queries)
