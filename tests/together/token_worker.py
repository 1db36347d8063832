"""A worker process that only requests tokens: `python -m together.token_worker TOKEN_URL STORE CALLS`.

Prints "ready", waits for a line with a client id and secret, requests CALLS tokens concurrently with them, and prints
the number of different tokens and the digest of one.
"""

import asyncio
import hashlib
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import prometheus_client
import structlog

from proxy import config
from proxy.kit import clock
from proxy.stores import open as opening
from proxy.telemetry import metrics as metering
from proxy.upstream import policies
from proxy.upstream.auth import identity, token_cache, token_requests, token_store


@asynccontextmanager
async def worker(
    token_url: str, store: token_store.TokenStore, time: clock.Clock
) -> AsyncIterator[token_cache.TokenCache]:
    """The token cache of one worker, with its own connections and random source."""
    rng, metrics = random.SystemRandom(), metering.Metrics(prometheus_client.CollectorRegistry())
    breaker = policies.CircuitBreaker(
        "identity", identity.SERVICE, config.BreakerSettings(), clock=time, rng=rng, metrics=metrics
    )
    async with aiohttp.ClientSession() as session:
        source = token_requests.TokenRequester(
            session, token_url, "", store=store, breaker=breaker, clock=time, rng=rng, metrics=metrics
        )
        kept = token_cache.TokenCache(source, clock=time, rng=rng, metrics=metrics)
        yield kept
        await kept.close()


async def main(token_url: str, store_url: str, calls: int) -> None:
    time = clock.SystemClock()
    store = await opening.open_store(config.StoreUrl(store_url), time)
    print("ready", flush=True)  # noqa: T201 - the test reads it
    client_id, secret = (await asyncio.to_thread(sys.stdin.readline)).split()
    credentials = identity.Credentials("demo", client_id, config.Secret(secret))
    async with worker(token_url, store, time) as kept:
        found = set(await asyncio.gather(*(kept.get(credentials) for _ in range(calls))))
    await store.aclose()
    print(len(found), hashlib.sha256(found.pop().encode()).hexdigest(), flush=True)  # noqa: T201


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
