"""Tests of reloads with real processes: no request fails, and workers change together."""

import asyncio
import json
import re
import signal
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
import yaml
import yarl
from support.running_commands import PROCESS, Start

import nexar_sandbox
from proxy.config import ReloadResult

SECONDS = 60.0  # that a condition may take before its test fails
STABLE = "a-key-that-stays"


@pytest.fixture
async def upstream() -> AsyncIterator[nexar_sandbox.Sandbox]:
    async with nexar_sandbox.serve(nexar_sandbox.SandboxSettings()) as sandbox:
        yield sandbox


class ReloadedService:
    """A service in processes of its own, and its configuration file."""

    def __init__(self, folder: Path, upstream: nexar_sandbox.Sandbox, workers: int) -> None:
        self.file = folder / "config.yaml"
        account = upstream.default_application
        self.content: dict[str, Any] = {
            "listen": {"port": 0, "workers": workers},
            "admin": False,
            "upstream": {
                "graphql_url": upstream.graphql_url,
                "token_url": upstream.token_url,
                # The upstream shares its process with the load.
                "timeouts": {"connect_seconds": SECONDS, "first_byte_seconds": SECONDS, "total_seconds": SECONDS},
            },
            "store": f"sqlite:{folder / 'state.sqlite'}",
            "applications": {
                "demo": {
                    "apikeys": [{"key": STABLE, "name": "stable"}],
                    "client_id": account.client_id,
                    "client_secret": account.client_secret,
                    "parts": 1_000_000,
                }
            },
            # A request that stalls on a busy machine is sent again; that is billed, too, and in no header.
            "coalescing": {"stall_seconds": SECONDS},
            "log": {"format": "json"},
        }
        self.url = ""
        self.process: Any = None
        self.write()

    @property
    def demo(self) -> dict[str, Any]:
        application: dict[str, Any] = self.content["applications"]["demo"]
        return application

    def write(self) -> None:
        """Write the content to the file, as a whole."""
        new = self.file.with_suffix(".new")
        new.write_text(yaml.safe_dump(self.content))
        new.replace(self.file)

    def reload(self) -> ReloadResult:
        """Write the content, and reload by SIGHUP; the result that is logged."""
        self.write()
        before = len(self._reloads())
        self.process.tell(signal.SIGHUP)
        until = time.monotonic() + SECONDS
        while len(reloads := self._reloads()) == before:
            assert time.monotonic() < until, "no reload is logged"
            time.sleep(0.02)
        line = reloads[-1]
        lists = (tuple(line.get(name, ())) for name in ("changed", "waiting_for_restart", "mistakes"))
        return ReloadResult("failed" if "mistakes" in line else "reloaded", 0.0, *lists)

    def _reloads(self) -> list[dict[str, Any]]:
        events = ("configuration reloaded", "configuration reload failed")
        return sorted((line for event in events for line in self.lines(event)), key=lambda line: line["timestamp"])

    def lines(self, event: str) -> list[dict[str, Any]]:
        """The log's lines of an event."""
        lines = [line for line in self.process.errors.splitlines(keepends=True) if line.endswith("\n")]
        return [line for line in map(json.loads, lines) if line["event"] == event]


StartService = Callable[[int], Any]


@pytest.fixture
def start_service(start_command: Start, tmp_path: Path, upstream: nexar_sandbox.Sandbox) -> StartService:
    async def start(workers: int) -> ReloadedService:
        service = ReloadedService(tmp_path, upstream, workers)
        service.process = start_command("serve", "--config", str(service.file))
        line = (await asyncio.to_thread(service.process.until, "curl"))[0]
        url = re.search(r"http://[^/]+", line)
        assert url is not None
        service.url = url[0]
        return service

    return start


def target(key: str, number: str, limit: int) -> str:
    return f"/v3/parts/match?apikey={key}&queries={quote(json.dumps([{'mpn': number, 'limit': limit}]))}"


async def statuses(service: ReloadedService, key: str) -> set[int]:
    """Statuses of requests over new connections, which the kernel distributes among the workers."""
    found = set()
    for _ in range(12):
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
            session.get(yarl.URL(service.url + target(key, "SN74S74N", 1), encoded=True)) as response,
        ):
            found.add(response.status)
    return found


async def logged(service: ReloadedService, event: str, times: int) -> None:
    """Wait until an event is in the log so often: a thread writes it."""
    async with asyncio.timeout(SECONDS):
        while len(service.lines(event)) < times:
            await asyncio.sleep(0.05)


async def test_all_workers_change_or_none(start_service: StartService) -> None:
    service = await start_service(2)
    service.demo["apikeys"].append({"key": "new", "name": "new"})
    assert (await asyncio.to_thread(service.reload)).changed == ("applications.demo.apikeys.new (added)",)
    assert await statuses(service, "new") == {200}
    # A mistake that only the workers find.
    service.demo["apikeys"].pop()
    service.content["upstream"]["tls"] = {"ca_file": "config.yaml"}
    result = await asyncio.to_thread(service.reload)
    assert (result.outcome, len(result.mistakes)) == ("failed", 1)
    assert "upstream.tls.ca_file" in result.mistakes[0]
    assert await statuses(service, "new") == {200}
    await logged(service, "configuration reload failed", 1)
    assert service.lines("configuration reload failed")[0]["mistakes"] == list(result.mistakes)


async def test_commands_use_the_store_of_the_running_service(
    start_service: StartService, run_command: Any, tmp_path: Path
) -> None:
    service = await start_service(1)
    await statuses(service, STABLE)
    service.content["store"] = f"sqlite:{tmp_path / 'next.sqlite'}"
    assert (await asyncio.to_thread(service.reload)).waiting_for_restart == ("store",)
    done = await asyncio.to_thread(run_command, "usage", "--json", "--config", str(service.file), python=PROCESS)
    assert json.loads(done.stdout)[0]["used"] == 1
    assert f"using the store of the running service, sqlite:{tmp_path}/state.sqlite" in done.stderr
    assert f"names sqlite:{tmp_path}/next.sqlite, which waits for a restart" in done.stderr
    assert not (tmp_path / "next.sqlite").exists()
