"""Several workers ask the sandbox's identity service through what they share: once."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import prometheus_client
from integration.house import House, Starts

from proxy import config
from proxy.kit import clock
from proxy.stores import memory
from proxy.telemetry import metrics as metering
from proxy.upstream import acquisition, identity, policies, token_store, tokens

CALLS = 1_000


@asynccontextmanager
async def worker(token_url: str, store: token_store.TokenStore, time: clock.Clock) -> AsyncIterator[tokens.Tokens]:
    """The tokens of one worker, with connections and randomness of its own."""
    rng, metrics = random.SystemRandom(), metering.Metrics(prometheus_client.CollectorRegistry())
    breaker = policies.Breaker("identity", identity.SERVICE, config.Breaker(), clock=time, rng=rng, metrics=metrics)
    async with aiohttp.ClientSession() as session:
        source = acquisition.Acquisition(
            session, token_url, "", store=store, breaker=breaker, clock=time, rng=rng, metrics=metrics
        )
        kept = tokens.Tokens(source, clock=time, rng=rng)
        yield kept
        await kept.close()


def credentials(house: House) -> tokens.Credentials:
    account = house.sandbox.account
    return tokens.Credentials("demo", account.client_id, config.Secret(account.client_secret))


async def test_a_thousand_cold_calls_on_two_workers_are_one_request(start: Starts, time: clock.ManualClock) -> None:
    store = memory.MemoryStore(time)
    async with start() as house, AsyncExitStack() as stack:
        url = house.sandbox.token_url
        workers = [await stack.enter_async_context(worker(url, store, time)) for _ in range(2)]
        calls = [each.get(credentials(house)) for each in workers for _ in range(CALLS // 2)]
        assert len(set(await asyncio.gather(*calls))) == 1
        assert house.sandbox.requests.tokens == 1


async def test_a_restart_asks_for_nothing(start: Starts, time: clock.ManualClock) -> None:
    store = memory.MemoryStore(time)
    async with start() as house:
        found = set()
        for _ in range(3):
            async with worker(house.sandbox.token_url, store, time) as each:
                found.add(await each.get(credentials(house)))
        assert len(found) == 1
        assert house.sandbox.requests.tokens == 1
