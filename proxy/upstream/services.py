"""Clients of the upstream services: access tokens from the identity service, queries to the GraphQL API.

Each service has a circuit breaker of its own; both share one connection pool.
"""

import random
from contextlib import AsyncExitStack
from typing import NamedTuple

import aiohttp

from proxy import config
from proxy.kit import clock as clocks
from proxy.store.store import Store
from proxy.telemetry import metrics as metering
from proxy.upstream import classify, graphql, policies, stalls
from proxy.upstream.auth import identity, token_cache, token_requests


class UpstreamServices(NamedTuple):
    """Connection pool, token cache, GraphQL client, and the circuit breakers of both services by name."""

    http: aiohttp.ClientSession
    tokens: token_cache.TokenCache
    client: graphql.GraphQLClient
    breakers: dict[str, policies.CircuitBreaker]


def connect(
    upstream: config.UpstreamSettings,
    coalescing: config.CoalescingSettings,
    *,
    http: aiohttp.ClientSession,
    rng: random.Random,
    store: Store,
    clock: clocks.Clock,
    metrics: metering.Metrics,
    resources: AsyncExitStack,
) -> UpstreamServices:
    """Create the clients on the session, which `resources` closes. Sends nothing."""
    resources.push_async_callback(http.close)

    breakers = {
        name: policies.CircuitBreaker(name, service, upstream.breaker, clock=clock, rng=rng, metrics=metrics)
        for name, service in (("graphql", classify.SERVICE), ("identity", identity.SERVICE))
    }
    source = token_requests.TokenRequester(
        http,
        upstream.token_url,
        upstream.scope,
        store=store,
        breaker=breakers["identity"],
        clock=clock,
        rng=rng,
        metrics=metrics,
    )
    tokens = token_cache.TokenCache(source, clock=clock, rng=rng)
    resources.push_async_callback(tokens.close)
    retry = policies.RetryPolicy(upstream.retries, upstream.timeouts.total_seconds, policies.RetryBudget(), rng)
    client = graphql.GraphQLClient(
        http,
        upstream.graphql_url,
        tokens,
        retry=retry,
        breaker=breakers["graphql"],
        metrics=metrics,
        clock=clock,
        response_bytes=upstream.response_bytes,
        stall_detector=stalls.StallDetector(coalescing.stall_seconds, retry.budget, metrics),
    )
    return UpstreamServices(http, tokens, client, breakers)
