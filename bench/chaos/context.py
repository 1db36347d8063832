"""Context of a chaos scenario: sandbox, services with their own configuration, and the report."""

import itertools
import json
import os
import random
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import yaml

from bench import processes
from bench.soak.servers import ServiceProcess, serving
from proxy.config import StoreUrl
from proxy.kit import clock
from proxy.stores import open as opening
from proxy.stores.protocols import EntryUsage, LedgerEntry

KEY, OTHER_KEY = "key-of-the-limited", "key-of-the-unlimited"
LIMITED, UNLIMITED = "limited", "unlimited"


@dataclass(slots=True)
class ScenarioReport:
    """Result of a scenario: reasons why its promise is broken, and figures."""

    broken: list[str] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)

    def check(self, holds: bool, reason: str) -> None:
        """Record why the promise is broken, unless the condition holds."""
        if not holds:
            self.broken.append(reason)


@dataclass(slots=True)
class ScenarioContext:
    """Environment of one scenario.

    `sandbox_output`: addresses and credentials that the sandbox printed at its start. `seconds`: duration of the load.
    """

    folder: Path
    sandbox_output: dict[str, str]
    seconds: float
    rng: random.Random
    report: ScenarioReport = field(default_factory=ScenarioReport)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(10**6))

    @contextmanager
    def service(self, changes: dict[str, Any] | None = None, limit: int = 10**8) -> Iterator[ServiceProcess]:
        """Start the service in front of the sandbox, with a limited and an unlimited application.

        `changes`: settings by dotted key. `limit`: parts of the limited application.
        """
        folder = self.folder / f"service-{next(self.numbers)}"
        folder.mkdir()
        file = folder / "config.yaml"
        file.write_text(yaml.safe_dump(self._configuration(folder, changes or {}, limit)))
        file.chmod(0o600)
        with serving(file) as process:
            yield process

    def _configuration(self, folder: Path, changes: dict[str, Any], limit: int) -> dict[str, Any]:
        credentials = {name: self.sandbox_output[name] for name in ("client_id", "client_secret")}
        settings: dict[str, Any] = {
            "listen": {"port": 0, "metrics": True},
            "admin": False,
            "store": f"sqlite:{folder}/state.sqlite",
            "upstream": {name: self.sandbox_output[name] for name in ("graphql_url", "token_url")},
            "applications": {
                LIMITED: credentials | {"apikeys": [KEY], "parts": limit, "period": "lifetime"},
                UNLIMITED: credentials | {"apikeys": [OTHER_KEY]},
            },
            "log": {"level": "warning", "format": "json"},
        }
        return processes.changed(settings, changes)

    def target(self, key: str = OTHER_KEY, number: str | None = None) -> str:
        """Return the target of a match by MPN; without `number`, by a new MPN each time."""
        queries = json.dumps([{"mpn": number or f"CHAOS-{next(self.numbers)}"}])
        return f"/v3/parts/match?apikey={key}&queries={quote(queries)}"

    def request(self, key: str = OTHER_KEY, number: str | None = None) -> bytes:
        """Return the same request as bytes of HTTP."""
        return raw(self.target(key, number))


def raw(target: str) -> bytes:
    """Return a request for a target as bytes of HTTP."""
    return f"GET {target} HTTP/1.1\r\nHost: chaos\r\n\r\n".encode()


def port(process: ServiceProcess) -> int:
    """Return the port of a service."""
    return int(process.url.rpartition(":")[2])


async def get(process: ServiceProcess, target: str, seconds: float = 30.0) -> tuple[int, bytes]:
    """Send a request over a new connection; returns status and body."""
    timeout = aiohttp.ClientTimeout(total=seconds)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(process.url + target) as response:
        return response.status, await response.read()


async def usage_by_application(store: str) -> dict[str, EntryUsage]:
    """Read the lifetime usage of each application from a store."""
    opened_store = await opening.open_store(StoreUrl(store), clock.SystemClock())
    try:
        usages = await opened_store.usage([LedgerEntry(name, "lifetime") for name in (LIMITED, UNLIMITED)])
        return dict(zip((LIMITED, UNLIMITED), usages, strict=True))
    finally:
        await opened_store.aclose()


def workers(process: ServiceProcess) -> list[int]:
    """List the process ids of a service's workers (Linux)."""
    return list(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))


def kill(pid: int) -> None:
    """Send SIGKILL, as the kernel does when memory runs out."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextmanager
def full_disk(process: ServiceProcess) -> Iterator[None]:
    """Prevent files of the process from growing, as on a full disk."""
    previous = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, previous)
