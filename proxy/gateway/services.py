"""The upstream as a gateway uses it: one connection pool, access tokens, and what sends operations."""

from contextlib import AsyncExitStack
from typing import NamedTuple

import aiohttp

from proxy import config
from proxy.gateway.process import ProcessState
from proxy.upstream import classify, http_post, policies, session
from proxy.upstream.sending import Sender
from proxy.upstream.tokens import Tokens


class UpstreamServices(NamedTuple):
    """Connection pool, access tokens, sender of operations, and circuit breaker of the GraphQL service."""

    settings: config.UpstreamSettings
    http: aiohttp.ClientSession
    tokens: Tokens
    sender: Sender
    breaker: policies.CircuitBreaker

    async def pass_on(self, body: bytes, authorization: str) -> http_post.HttpResponse:
        """Send a GraphQL request of a caller as it is, with the caller's own access token, unmetered; nothing of it is
        kept. Raises BridgeErrors."""
        headers = http_post.JSON | {"Authorization": authorization}
        request = http_post.HttpRequest(
            self.settings.graphql_url, classify.SERVICE, body, headers, billed=False, max_bytes=http_post.LONGEST
        )
        return await http_post.post(self.http, request)


def connect(
    settings: config.UpstreamSettings,
    process: ProcessState,
    resources: AsyncExitStack,
    previous: UpstreamServices | None,
) -> UpstreamServices:
    """Create the clients, which `resources` closes. Sends nothing. The circuit breaker of the same upstream stays."""
    http = session.open_session(settings)
    resources.push_async_callback(http.close)
    if previous is not None and previous.settings == settings:
        breaker = previous.breaker
    else:
        breaker = policies.CircuitBreaker(
            "graphql",
            classify.SERVICE,
            clock=process.clock,
            rng=process.rng,
            metrics=process.metrics,
        )
    tokens = Tokens(
        http,
        settings.token_url,
        settings.scope,
        store=process.store,
        clock=process.clock,
        rng=process.rng,
        metrics=process.metrics,
    )
    resources.push_async_callback(tokens.close)
    sender = Sender(
        http,
        settings.graphql_url,
        tokens,
        breaker=breaker,
        clock=process.clock,
        rng=process.rng,
        metrics=process.metrics,
    )
    return UpstreamServices(settings, http, tokens, sender, breaker)
