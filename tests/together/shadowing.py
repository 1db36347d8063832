"""Environments whose requests are shadowed: fixtures of tests/together/conftest.py."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from support import scripted_v3
from together.environment import ProxyEnvironment, StartEnvironment

from proxy import config
from proxy.kit import clock
from proxy.stores.sqlite import SqliteStore
from proxy.tools.compare.judging.tally import Tally
from proxy.tools.compare.shadow import report

ALONE = {"coalescing": {"enabled": False}}  # so that a response says the same of its cost each time
WITHOUT_LIMIT = {"rate": 0, "queue": 1000, "breaker": config.BreakerSettings(failures=0)}


@pytest.fixture
async def baseline() -> AsyncIterator[scripted_v3.ScriptedV3Service]:
    async with scripted_v3.running() as service:
        yield service


class Shadowed:
    """An environment whose requests are shadowed, and the store that it notes what it finds in."""

    def __init__(self, environment: ProxyEnvironment, store: SqliteStore, file: Path) -> None:
        self.environment = environment
        self.store = store
        self.file = file

    async def count(self, name: str, **labels: str) -> float:
        """A counter of /metrics."""
        text = (await self.environment.get("/metrics")).body.decode()
        wanted = ",".join(f'{key}="{value}"' for key, value in sorted({"application": "demo", **labels}.items()))
        found = re.search(rf"^v3bridge_shadow_{name}_total{{{re.escape(wanted)}}} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    async def counted(self, least: float, name: str, **labels: str) -> None:
        """Wait until so many are counted."""
        async with asyncio.timeout(60):
            while await self.count(name, **labels) < least:
                await asyncio.sleep(0.02)

    async def noted(self, requests: int) -> Tally:
        """Wait until the store has so many requests."""
        async with asyncio.timeout(60):
            while True:
                tally = await report.read_tally(self.store)
                if tally is not None and seen(tally) >= requests:
                    return tally
                self.environment.time.advance(5)  # between two notes
                await asyncio.sleep(0.02)


def seen(tally: Tally) -> int:
    return sum(row.compared + row.not_compared for row in tally.rows.values())


@pytest.fixture
def shadowed(start: StartEnvironment, baseline: scripted_v3.ScriptedV3Service, tmp_path: Path) -> Callable[..., Any]:
    """An environment with a shadow. `answer` and `share` are the application's, the rest `shadow`'s."""

    @asynccontextmanager
    async def started(
        answer: Literal["candidate", "baseline"] = "candidate", share: float = 1.0, **changes: Any
    ) -> AsyncIterator[Shadowed]:
        file = tmp_path / "state.sqlite"
        application = {
            "shadow": config.ApplicationShadowSettings(share=share, response=answer),
            **changes.pop("application", {}),
        }
        house_changes = {
            name: changes.pop(name) for name in ("cache", "urls", "upstream", "sandbox") if name in changes
        } | ALONE
        shadow = {"baseline_url": baseline.url, **WITHOUT_LIMIT, **changes}
        async with start(
            application=application, shadow=shadow, store=f"sqlite:{file}", **house_changes
        ) as environment:
            store = await SqliteStore.open(file, clock.SystemClock())
            try:
                yield Shadowed(environment, store, file)
            finally:
                await store.aclose()

    return started
