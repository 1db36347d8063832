"""kill -9 in the middle of load: no booked part is lost, none is booked twice, and claims of the dead are given back.

A real process on a file, before a sandbox that keeps its own bill.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time as machine
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest
import yarl
from integration.house import account, target

from proxy.kit import clock
from proxy.sandbox import app, settings
from proxy.sandbox.catalog import store as catalogs
from proxy.stores.base import Line
from proxy.stores.sqlite import SqliteStore

ROOT = Path(__file__).parents[2]
SECONDS = 60
CLIENTS = 8
NUMBERS = ("SN74S74N", "1N4007", "LM358", "NE555P", "BC547")


class Load:
    """Clients that ask until there is nobody left to ask. Each asks for a number of parts of its own, so that no two
    share an answer. `parts` are those in replies that arrived whole."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.parts = self.replies = 0
        self.tasks: list[asyncio.Task[None]] = []

    def start(self, requests: int | None = None) -> None:
        self.tasks = [asyncio.create_task(self._ask(limit + 1, requests)) for limit in range(CLIENTS)]

    async def until(self, replies: int) -> None:
        """Wait for so many; a slow machine is given a minute."""
        end = machine.monotonic() + SECONDS
        while self.replies < replies:
            assert machine.monotonic() < end, f"only {self.replies} replies"
            for task in self.tasks:
                assert not task.done() or task.exception() is None
            await asyncio.sleep(0.01)

    async def _ask(self, limit: int, requests: int | None) -> None:
        async with aiohttp.ClientSession() as session:
            number = 0
            while requests is None or number < requests:
                query = {"mpn": NUMBERS[number % len(NUMBERS)], "limit": limit}
                try:
                    async with session.get(yarl.URL(self._url + target(query), encoded=True)) as response:
                        body = await response.json()
                        assert response.status == 200, body
                except aiohttp.ClientError:
                    return
                self.parts += sum(len(result["items"]) for result in body["results"])
                self.replies += 1
                number += 1


@pytest.fixture
async def sandbox(catalog: catalogs.Catalog) -> AsyncIterator[app.Sandbox]:
    chosen = settings.Settings(accounts=account(part_limit=10**6))
    async with app.running(chosen, clock=clock.SystemClock(), catalog=catalog) as running:
        yield running


@contextmanager
def serving(file: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """`v3bridge serve` in a process of its own, and its address."""
    command = [sys.executable, "-m", "proxy", "serve", "--config", str(file), "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            yield process, next(word for word in first.split() if word.startswith("http")).partition("/v3")[0]
        finally:
            process.kill()


@pytest.fixture
def configured(sandbox: app.Sandbox, tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(f"""
upstream: {{graphql_url: "{sandbox.graphql_url}", token_url: "{sandbox.token_url}"}}
store: sqlite:state.sqlite
applications:
  demo: {{client_id: client-1, client_secret: secret-1, apikeys: [EXAMPLE_KEY], parts: 1000000}}
answers: {{seconds: 0}}
log: {{level: error}}
""")
    return file


async def ledger(tmp_path: Path) -> tuple[int, int, int]:
    """Parts used, in doubt, and held by calls under way, as any reader of the file sees them."""
    store = await SqliteStore.open(tmp_path / "state.sqlite", clock.SystemClock())
    try:
        (whole,) = await store.states([Line("demo", "lifetime")])
        return whole.used, whole.doubtful, sum(state.reserved for state in await store.usage())
    finally:
        await store.aclose()


async def test_a_killed_worker_loses_no_part_and_books_none_twice(
    sandbox: app.Sandbox, configured: Path, tmp_path: Path
) -> None:
    def billed() -> int:
        return sandbox.accounting.used(sandbox.account.application_id)

    with serving(configured) as (process, url):
        load = Load(url)
        load.start()
        await load.until(replies=60)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(SECONDS)
        await asyncio.gather(*load.tasks)
    used, doubtful, _ = await ledger(tmp_path)
    assert 60 <= load.parts <= used <= billed()
    assert doubtful == 0
    missing = billed() - used  # answered by the sandbox, and the worker died with it
    assert missing <= CLIENTS * 20

    with serving(configured) as (process, url):
        again = Load(url)
        again.start(requests=10)
        await asyncio.gather(*again.tasks)
        assert again.replies == 10 * CLIENTS
        end = machine.monotonic() + SECONDS
        while (await ledger(tmp_path))[2]:  # its lease is ten seconds
            assert machine.monotonic() < end, "the dead worker's claims were never given back"
            await asyncio.sleep(0.2)
        process.terminate()
        assert process.wait(SECONDS) == 0
    after, doubtful, reserved = await ledger(tmp_path)
    assert (doubtful, reserved) == (0, 0)
    assert after == billed() - missing
    assert after - used >= again.parts
