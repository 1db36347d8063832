"""The upstream as a gateway uses it: one connection pool, access tokens, and what sends operations."""

from collections.abc import Set
from contextlib import AsyncExitStack
from typing import NamedTuple

import aiohttp

from proxy import config
from proxy.next.process import ProcessState
from proxy.next.sending import Sender
from proxy.upstream import classify, http_post, policies, session
from proxy.upstream.auth import identity, token_cache, token_requests


class UpstreamServices(NamedTuple):
    """Connection pool, token cache, sender of operations, and the circuit breakers of both services by name."""

    settings: config.UpstreamSettings
    http: aiohttp.ClientSession
    tokens: token_cache.TokenCache
    sender: Sender
    breakers: dict[str, policies.CircuitBreaker]

    async def pass_on(self, body: bytes, authorization: str) -> http_post.HttpResponse:
        """Send a GraphQL request of a caller as it is, with the caller's own access token, unmetered; nothing of it is
        kept. Raises BridgeErrors."""
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Authorization": authorization}
        limit = self.settings.response_bytes
        request = http_post.HttpRequest(
            self.settings.graphql_url, classify.SERVICE, body, headers, billed=False, max_bytes=limit
        )
        return await http_post.post(self.http, request)


def connect(
    settings: config.UpstreamSettings,
    process: ProcessState,
    served: Set[identity.Credentials],
    resources: AsyncExitStack,
    previous: UpstreamServices | None,
) -> UpstreamServices:
    """Create the clients, which `resources` closes. Sends nothing. What is known of the same upstream stays known:
    tokens of `served` applications, and breakers."""
    http = session.open_session(settings)
    resources.push_async_callback(http.close)
    if previous is not None and previous.settings == settings:
        breakers = previous.breakers
    else:
        breakers = {
            name: policies.CircuitBreaker(
                name, service, settings.breaker, clock=process.clock, rng=process.rng, metrics=process.metrics
            )
            for name, service in (("graphql", classify.SERVICE), ("identity", identity.SERVICE))
        }
    requester = token_requests.TokenRequester(
        http,
        settings.token_url,
        settings.scope,
        store=process.store,
        breaker=breakers["identity"],
        clock=process.clock,
        rng=process.rng,
        metrics=process.metrics,
    )
    tokens = token_cache.TokenCache(requester, clock=process.clock, rng=process.rng)
    resources.push_async_callback(tokens.close)
    if previous is not None:
        before = previous.settings
        if (before.token_url, before.scope) == (settings.token_url, settings.scope):
            tokens.adopt(previous.tokens)
            tokens.retain(served)
    sender = Sender(
        http,
        settings.graphql_url,
        tokens,
        response_bytes=settings.response_bytes,
        breaker=breakers["graphql"],
        clock=process.clock,
        rng=process.rng,
        metrics=process.metrics,
    )
    return UpstreamServices(settings, http, tokens, sender, breakers)
