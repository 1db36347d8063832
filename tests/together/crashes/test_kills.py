"""Tests of 20 SIGKILLs under load: billed usage is used or uncertain in the ledger, and no limit is exceeded.

A real process with SQLite and with Redis, in front of a sandbox that counts usage itself. One application has a limit,
the other has none.
"""

import asyncio
import os
import signal
import time as machine
from pathlib import Path

import aiohttp
import pytest
import yarl
from together.crashes.program import APPLICATIONS, LIMIT, ledger, serving
from together.environment import target

import nexar_sandbox
from proxy.stores.protocols import EntryUsage

SECONDS = 60
KILLS = 20
REPLIES = 12  # that a process gives before it is killed
CLIENTS = 4  # of each application
NUMBERS = ("SN74S74N", "1N4007", "LM358", "NE555P", "BC547")


class Load:
    """Clients of some applications that send requests until nobody responds, or until there is no quota left.

    Each asks for a number of parts of its own, so that no two share a response. `parts` are those in responses.
    """

    def __init__(self, url: str, applications: tuple[str, ...] = APPLICATIONS) -> None:
        self._url = url
        self.parts = dict.fromkeys(APPLICATIONS, 0)
        self.replies = self.refused = 0
        self.tasks = [
            asyncio.create_task(self._ask(application, limit + 1))
            for application in applications
            for limit in range(CLIENTS)
        ]

    async def until(self, replies: int) -> None:
        """Wait for so many; a slow machine is given a minute."""
        end = machine.monotonic() + SECONDS
        while self.replies < replies:
            assert machine.monotonic() < end, f"only {self.replies} replies"
            for task in self.tasks:
                assert not task.done() or task.exception() is None
            await asyncio.sleep(0.01)

    async def _ask(self, application: str, limit: int) -> None:
        async with aiohttp.ClientSession() as session:
            for number in range(1_000_000):
                query = {"mpn": NUMBERS[number % len(NUMBERS)], "limit": limit}
                url = yarl.URL(self._url + target(query, key=f"KEY-{application}"), encoded=True)
                try:
                    async with session.get(url) as response:
                        body = await response.json()
                except (aiohttp.ClientError, ValueError):
                    return
                if response.status == 429:
                    self.refused += 1
                    return
                assert response.status == 200, body
                self.parts[application] += sum(len(result["items"]) for result in body["results"])
                self.replies += 1


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Fixture: value of the setting `store`."""
    return (
        f"sqlite:{tmp_path}/state.sqlite" if request.param == "sqlite" else request.getfixturevalue("redis_server").url
    )


async def test_usage_is_accounted_for_and_within_limits_after_kills(
    sandbox: nexar_sandbox.Sandbox, configured: Path, store: str
) -> None:
    delivered = dict.fromkeys(APPLICATIONS, 0)

    async def check() -> dict[str, EntryUsage]:
        found = await ledger(store)
        for name, state in found.items():
            assert delivered[name] <= state.used <= sandbox.part_usage.used(name)
        assert sandbox.part_usage.used("limited") <= LIMIT
        return found

    for _ in range(KILLS):
        with serving(configured) as (process, url):
            load = Load(url)
            await load.until(REPLIES)
            os.kill(process.pid, signal.SIGKILL)
            process.wait(SECONDS)
            await asyncio.gather(*load.tasks)
        for name, parts in load.parts.items():
            delivered[name] += parts
        await check()

    with serving(configured) as (process, url):
        load = Load(url, ("limited",))
        await asyncio.gather(*load.tasks)
        assert load.refused == CLIENTS
        end = machine.monotonic() + SECONDS
        while (await ledger(store))["limited"].reserved:  # the lease of the dead is 10 s
            assert machine.monotonic() < end, "claims of dead workers are still held"
            await asyncio.sleep(0.2)
        process.terminate()
        assert await asyncio.to_thread(process.wait, SECONDS) == 0
    for name, state in (await check()).items():
        assert state.reserved == 0
        assert state.used < sandbox.part_usage.used(name) <= state.used + state.uncertain
