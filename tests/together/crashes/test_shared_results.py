"""Tests of paying once with real processes: workers, machines, and a SIGKILL of the process that others wait for."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yarl
from together.crashes.program import serving
from together.environment import target

import nexar_sandbox
from proxy.gateway.cache import shared

NAME = "unlimited"  # the application that is used
SECONDS = 60


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Fixture: value of the setting `store`."""
    if request.param == "redis":
        return str(request.getfixturevalue("redis_server").url)
    return f"sqlite:{tmp_path}/state.sqlite"


@pytest.fixture
def cached(configured: Path) -> Path:
    """The configuration with the shipped cache, but without second attempts at what a busy machine delays."""
    text = configured.read_text().replace("cache: {seconds: 0}", "coalescing: {stall_seconds: 0}")
    configured.write_text(text)
    return configured


class Buyer:
    """v3 client that opens a connection for each request, so that any worker may get it."""

    def __init__(self, session: aiohttp.ClientSession, *urls: str) -> None:
        self._session = session
        self._urls = urls
        self._number = 0

    async def match(self, *queries: dict[str, Any]) -> list[Any]:
        """The results of some queries by the next service in turn."""
        self._number += 1
        url = self._urls[self._number % len(self._urls)]
        async with self._session.get(yarl.URL(url + target(*queries, key=f"KEY-{NAME}"), encoded=True)) as response:
            assert response.status == 200, await response.text()
            return list((await response.json())["results"])


@asynccontextmanager
async def client(*urls: str) -> AsyncIterator[Buyer]:
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(SECONDS)) as session:
        yield Buyer(session, *urls)


async def test_killed_owner_is_replaced_by_one_of_those_that_wait(
    sandbox: nexar_sandbox.Sandbox, cached: Path, store: str
) -> None:
    """The parts of the killed process are billed, those of its replacement, and no more; nobody waits longer than
    the limit."""
    async with AsyncExitStack() as stack:
        (owner, first), *waiting = [stack.enter_context(serving(cached)) for _ in range(4)]
        clients = [await stack.enter_async_context(client(url)) for url in (first, *(url for _, url in waiting))]
        for each in clients:  # tokens and connections are there
            await each.match({"mpn": "1N4007", "limit": 1})
        before = sandbox.part_usage.used(NAME)
        sandbox.faults.replace(nexar_sandbox.parse_faults(f"latency ms={SECONDS * 1000} count=1"))
        lost = asyncio.create_task(clients[0].match({"mpn": "SN74S74N"}))
        async with asyncio.timeout(SECONDS):
            while sandbox.part_usage.used(NAME) == before:
                await asyncio.sleep(0.005)
        others = [asyncio.create_task(each.match({"mpn": "SN74S74N"})) for each in clients[1:]]
        await asyncio.sleep(0.2)
        assert not any(task.done() for task in others)
        os.kill(owner.pid, signal.SIGKILL)
        async with asyncio.timeout(shared.WAIT_SECONDS + SECONDS / 2):
            results = await asyncio.gather(*others)
        assert {len(result[0]["items"]) for result in results} == {3}
        assert sandbox.part_usage.used(NAME) - before == 6
        await asyncio.gather(lost, return_exceptions=True)


async def test_workers_in_front_of_the_embedded_sandbox_share_results(tmp_path: Path) -> None:
    """Nothing is stored for good there: the workers share a temporary file."""
    file = tmp_path / "config.yaml"
    file.write_text("listen: {workers: 4}\napplications: {demo: {apikeys: [EXAMPLE_KEY]}}\nlog: {level: error}\n")
    with serving(file) as (_, url):
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def cost(number: int) -> int:
                address = yarl.URL(url + target({"mpn": "SN74S74N"}, more=f"&n={number}"), encoded=True)
                async with session.get(address) as response:
                    assert response.status == 200
                    return int(response.headers["X-Parts-Cost"])

            assert sum(await asyncio.gather(*map(cost, range(20)))) == 3
            assert sum([await cost(number) for number in range(20, 40)]) == 0
    assert not list(tmp_path.glob("*.cache*"))
