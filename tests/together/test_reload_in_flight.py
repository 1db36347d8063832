"""Equal queries in flight before and after a reload: the claims of the shared cache are those of two owners then."""

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from support import running_proxy
from together.environment import ProxyEnvironment

from proxy import config
from proxy.gateway import assembly
from proxy.gateway.process import Environment, ProcessState
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.kit import clock
from proxy.stores import open as opening
from proxy.v3.actions import AuthenticatedRequest, V3Actions
from proxy.v3.endpoints import ENDPOINTS
from proxy.v3.parsing.request_parameters import RequestParameters

(MATCH,) = [each for each in ENDPOINTS if each.path == "/parts/match"]


class SlowCache:
    """Shared cache whose first look-up arrives when `released`; `look_ups` counts them."""

    def __init__(self, cache: Any, released: asyncio.Event) -> None:
        self._cache = cache
        self._released = released
        self.look_ups = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def look_up_now(self, *_: Any) -> None:
        return None

    async def look_up(self, *values: Any) -> Any:
        found = await self._cache.look_up(*values)
        self.look_ups += 1
        if self.look_ups == 1:
            await self._released.wait()
        return found


async def test_requests_before_and_after_a_reload_do_not_wait_for_each_other(
    environment: ProxyEnvironment, tmp_path: Path
) -> None:
    """The first has claimed its query in the shared cache, the second among the queries in flight."""
    released, at_once = asyncio.Event(), asyncio.Event()
    caches: list[SlowCache] = []
    at_once.set()

    def open_cache(*values: Any) -> Any:
        caches.append(SlowCache(opening.open_cache(*values), at_once if caches else released))
        return caches[-1]

    state = ProcessState(clock.SystemClock(), Environment(open_cache=open_cache))
    sandbox, account = environment.sandbox, environment.sandbox.default_application
    own = {"client_id": config.ClientId(account.client_id), "client_secret": config.Secret(account.client_secret)}

    def settings(seconds: int) -> config.Config:
        return running_proxy.settings(
            sandbox.graphql_url,
            sandbox.token_url,
            application=own,
            store=f"sqlite:{tmp_path}/state.sqlite",
            cache={"seconds": seconds},
        )

    async def match(gateway: assembly.Gateway) -> Any:
        query = json.dumps([{"mpn": "SN74S74N", "limit": 2}])
        client, now = gateway.applications.client(running_proxy.KEY), gateway.clock.monotonic()
        parameters = RequestParameters(f"/v3/parts/match?queries={quote(query)}")
        received = AuthenticatedRequest(MATCH, parameters, client, ResponseMetadata(now), now)
        encoded = await V3Actions(gateway.pipeline, gateway.mappings, gateway.clock).execute(received)
        return json.loads(encoded.body)

    async with AsyncExitStack() as resources, asyncio.timeout(8):  # less than a wait in vain for another worker
        old = await assembly.build(settings(300), state.clock, resources, process=state)
        new = await assembly.build(settings(400), state.clock, resources, process=state, previous=old)
        before, after = caches
        first = asyncio.create_task(match(old))
        while not before.look_ups:
            await asyncio.sleep(0)
        second = asyncio.create_task(match(new))
        while after.look_ups < 2:  # it looks again while it waits for another owner
            await asyncio.sleep(0)
        released.set()
        results = [each["results"] for each in await asyncio.gather(first, second)]
    assert results[0] == results[1]
    assert len(results[0][0]["items"]) == 2
    assert sandbox.part_usage.used(account.application_id) == 2
