"""Tests of reloads with real processes: what the log says, and that all workers follow."""

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
from support.running_commands import Start

import nexar_sandbox

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

    def reload(self) -> dict[str, Any]:
        """Write the content, and reload by SIGHUP; the line that is logged."""
        self.write()
        before = len(self._reloads())
        self.process.tell(signal.SIGHUP)
        until = time.monotonic() + SECONDS
        while len(reloads := self._reloads()) == before:
            assert time.monotonic() < until, "no reload is logged"
            time.sleep(0.02)
        return reloads[-1]

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


async def test_all_workers_change_or_none(start_service: StartService) -> None:
    service = await start_service(2)
    service.demo["apikeys"].append({"key": "new", "name": "new"})
    service.content["listen"]["workers"] = 3
    assert (await asyncio.to_thread(service.reload))["waiting_for_restart"] == ["listen.workers"]
    assert await statuses(service, "new") == {200}
    # A mistake in a file that the configuration names.
    service.demo["apikeys"].pop()
    service.content["upstream"]["tls"] = {"ca_file": "config.yaml"}
    (mistake,) = (await asyncio.to_thread(service.reload))["mistakes"]
    assert "upstream.tls.ca_file" in mistake
    assert await statuses(service, "new") == {200}
