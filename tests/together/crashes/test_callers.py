"""Who still calls, with real processes: several workers and machines add up, a stop loses nothing, a kill little."""

import asyncio
import os
import signal
import time as machine
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import pytest
from together.crashes.program import serving
from together.crashes.test_store_trouble import stop

from proxy.config import StoreUrl
from proxy.kit import clock
from proxy.stores import open as opening
from proxy.workers import control

SECONDS = 60
PATH = "/v3/brands/search?apikey=KEY-unlimited&q=texas"
# A service that writes its counts fifty times as often, so that the test need not wait for ten seconds.
EAGER = (
    "-c",
    "from proxy.cli.main import main\n"
    "from proxy.gateway.callers import CallerRecorder\n"
    "CallerRecorder.__init__.__kwdefaults__['interval'] = 0.2\n"
    "main()",
)


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Fixture: value of the setting `store`."""
    if request.param == "redis":
        return str(request.getfixturevalue("redis_server").url)
    return f"sqlite:{tmp_path}/state.sqlite"


async def call(url: str, user_agent: str, number: int) -> None:
    """Send requests, each over a connection of its own, so that any worker may get it."""
    for _ in range(number):
        async with (
            aiohttp.ClientSession(headers={"User-Agent": user_agent}) as session,
            session.get(url + PATH) as response,
        ):
            assert response.status == 200, await response.text()


async def counted(store: str) -> Counter[str]:
    """Requests by user agent, as any reader of the store sees them."""
    opened = await opening.open_store(StoreUrl(store), clock.SystemClock())
    try:
        requests: Counter[str] = Counter()
        for count in (await opened.caller_usage(0, 99_999))[1]:
            assert count.caller[:3] == ("unlimited", "1", "brands/search")
            requests[count.caller.user_agent] += count.requests
        return requests
    finally:
        await opened.aclose()


async def test_workers_and_machines_add_up(configured: Path, store: str) -> None:
    configured.write_text(configured.read_text().replace("metrics: true", "workers: 2"))
    with ExitStack() as services:
        running = [services.enter_context(serving(configured)) for _ in range(2)]
        await asyncio.gather(*(call(url, agent, 10) for _, url in running for agent in ("BOM/1", "BOM/2")))
        for process, _ in running:
            await stop(process)
    assert await counted(store) == {"BOM/1": 20, "BOM/2": 20}


async def test_reload_loses_no_count(configured: Path, store: str) -> None:
    text = configured.read_text().replace("metrics: true", "workers: 2")
    configured.write_text(text)
    with serving(configured) as (process, url):
        for days in (300, 200, 100):
            calls = asyncio.create_task(call(url, "BOM/1", 10))
            configured.write_text(f"{text}clients: {{days: {days}}}\n")
            results = await asyncio.to_thread(control.reload_services, configured)
            assert [result.changed for result in results.values()] == [("clients.days",)]
            await calls
        await stop(process)
    assert await counted(store) == {"BOM/1": 30}


async def test_kill_loses_at_most_what_was_not_written(configured: Path, store: str) -> None:
    with serving(configured, EAGER) as (process, url):
        await call(url, "BOM/1", 5)
        end = machine.monotonic() + SECONDS
        while (await counted(store))["BOM/1"] < 5:
            assert machine.monotonic() < end, "the counts are not written"
            await asyncio.sleep(0.1)
        await call(url, "BOM/1", 3)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(SECONDS)
    kept = (await counted(store))["BOM/1"]
    assert 5 <= kept <= 8
    with serving(configured) as (process, url):
        await call(url, "BOM/1", 2)
        await stop(process)
    assert (await counted(store))["BOM/1"] == kept + 2
