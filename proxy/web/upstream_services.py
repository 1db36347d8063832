"""Clients of the upstream services: access tokens from the identity service, queries to the GraphQL API.

Each service has a circuit breaker of its own; both share one connection pool.
"""

import random
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import NamedTuple

import aiohttp

from proxy import config
from proxy.kit import clock as clocks
from proxy.kit.aiohttp_internals import client as pool_client
from proxy.telemetry import metrics as metering
from proxy.telemetry import tracing
from proxy.upstream import (
    acquisition,
    classify,
    graphql,
    identity,
    policies,
    session,
    stalls,
    token_store,
    tokens,
    traced,
)

ClientFactory = Callable[..., graphql.GraphQLClient]  # takes the arguments of GraphQLClient


class UpstreamServices(NamedTuple):
    """Connection pool, token cache, GraphQL client, and the circuit breaker of that client."""

    http: aiohttp.ClientSession
    tokens: tokens.Tokens
    client: graphql.GraphQLClient
    breaker: policies.Breaker


def connect(
    upstream: config.UpstreamSettings,
    sharing: config.CoalescingSettings,
    *,
    store: token_store.TokenStore,
    spans: tracing.Tracing | None,
    clock: clocks.Clock,
    metrics: metering.Metrics,
    resources: AsyncExitStack,
    client_factory: ClientFactory | None = None,
) -> UpstreamServices:
    """Create the clients, which `resources` closes. Sends nothing. `client_factory` replaces the GraphQL client."""
    http = session.open_session(upstream)
    resources.push_async_callback(http.close)
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
    token_cache = tokens.Tokens(source, clock=clock, rng=rng, metrics=metrics)
    resources.push_async_callback(token_cache.close)
    graphql_breaker = breaker("graphql", classify.SERVICE)
    retry = policies.Retry(upstream.retries, upstream.timeouts.total_seconds, policies.Budget(), rng)
    if client_factory is None:
        client_factory = graphql.GraphQLClient if spans is None else partial(traced.TracedGraphQLClient, tracing=spans)
    client = client_factory(
        http if upstream.proxy else pool_client.PoolClient(http, upstream.graphql_url),
        upstream.graphql_url,
        token_cache,
        retry=retry,
        breaker=graphql_breaker,
        metrics=metrics,
        clock=clock,
        response_bytes=upstream.response_bytes,
        watching=stalls.Stalls(sharing.stall_seconds, retry.budget, metrics),
    )
    return UpstreamServices(http, token_cache, client, graphql_breaker)
