"""What a scenario works with: a sandbox, services with configurations of its own, and a place for what it finds."""

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

from bench.soak.servers import Process, serving
from proxy.config import StoreUrl
from proxy.kit import clock
from proxy.stores import open as opening
from proxy.stores.protocols import EntryUsage, LedgerEntry

KEY, OTHER_KEY = "key-of-the-limited", "key-of-the-unlimited"
LIMITED, UNLIMITED = "limited", "unlimited"


@dataclass(slots=True)
class Report:
    """What a scenario found: promises that are broken, and figures."""

    broken: list[str] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)

    def check(self, holds: bool, what: str) -> None:
        """A promise that does not hold is broken by `what`."""
        if not holds:
            self.broken.append(what)


@dataclass(slots=True)
class Stage:
    """`seconds` is how long a scenario's load lasts; `told` is what the sandbox printed at its start."""

    folder: Path
    told: dict[str, str]
    seconds: float
    rng: random.Random
    report: Report = field(default_factory=Report)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(10**6))

    @contextmanager
    def service(self, changes: dict[str, Any] | None = None, limit: int = 10**8) -> Iterator[Process]:
        """The service before the sandbox, with a limited and an unlimited application; `changes` by dotted key."""
        own = self.folder / f"service-{next(self.numbers)}"
        own.mkdir()
        file = own / "config.yaml"
        file.write_text(yaml.safe_dump(self._configuration(own, changes or {}, limit)))
        file.chmod(0o600)
        with serving(file) as process:
            yield process

    def _configuration(self, own: Path, changes: dict[str, Any], limit: int) -> dict[str, Any]:
        account = {name: self.told[name] for name in ("client_id", "client_secret")}
        settings: dict[str, Any] = {
            "listen": {"port": 0},
            "store": f"sqlite:{own}/state.sqlite",
            "upstream": {name: self.told[name] for name in ("graphql_url", "token_url")},
            "applications": {
                LIMITED: account | {"apikeys": [KEY], "parts": limit, "period": "lifetime"},
                UNLIMITED: account | {"apikeys": [OTHER_KEY]},
            },
            "log": {"level": "warning", "format": "json"},
        }
        for key, value in changes.items():
            *blocks, name = key.split(".")
            inner = settings
            for block in blocks:
                inner = inner.setdefault(block, {})
            inner[name] = value
        return settings

    def target(self, key: str = OTHER_KEY, number: str | None = None) -> str:
        """A match for a part number, another one each time unless it is given."""
        queries = json.dumps([{"mpn": number or f"CHAOS-{next(self.numbers)}"}])
        return f"/v3/parts/match?apikey={key}&queries={quote(queries)}"

    def request(self, key: str = OTHER_KEY, number: str | None = None) -> bytes:
        """The same as bytes of HTTP."""
        return raw(self.target(key, number))


def raw(target: str) -> bytes:
    """A request for a target."""
    return f"GET {target} HTTP/1.1\r\nHost: chaos\r\n\r\n".encode()


def port(process: Process) -> int:
    """Where a service listens."""
    return int(process.url.rpartition(":")[2])


async def get(process: Process, target: str, seconds: float = 30.0) -> tuple[int, bytes]:
    """Status and body, over a connection of its own."""
    timeout = aiohttp.ClientTimeout(total=seconds)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(process.url + target) as response:
        return response.status, await response.read()


async def states(store: str) -> dict[str, EntryUsage]:
    """What the ledger has of each application."""
    opened = await opening.open_store(StoreUrl(store), clock.SystemClock())
    try:
        found = await opened.usage([LedgerEntry(name, "lifetime") for name in (LIMITED, UNLIMITED)])
        return dict(zip((LIMITED, UNLIMITED), found, strict=True))
    finally:
        await opened.aclose()


def workers(process: Process) -> list[int]:
    """Process ids of a service's workers (Linux)."""
    return list(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))


def kill(pid: int) -> None:
    """SIGKILL, as when memory runs out or the power does."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextmanager
def full_disk(process: Process) -> Iterator[None]:
    """No file of the process can grow, as on a full disk."""
    usual = resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, usual)
