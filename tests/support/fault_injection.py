"""Helpers for tests of faults: declare faults, send requests, read how many were injected and billed."""

import asyncio
from collections.abc import Callable
from typing import Any

import nexar_sandbox
from support.sandbox_client import SandboxClient

PARTS = '{ supSearch(q: "", limit: 3) { results { part { mpn totalAvail } } } }'
FREE = '{ supSellers(ids: ["459"]) { name } }'
ANSWER = {"supSellers": [{"name": "Digi-Key"}]}


def declare(caller: SandboxClient, *texts: str) -> None:
    """Replace the declared faults."""
    caller.sandbox.faults.replace([fault for text in texts for fault in nexar_sandbox.parse_faults(text)])


def billed(caller: SandboxClient) -> int:
    return caller.sandbox.part_usage.used(caller.sandbox.default_application.application_id)


def struck(caller: SandboxClient) -> dict[str, int]:
    """Injected faults by kind, as the journal counts them."""
    return dict(caller.sandbox.journal.totals.faults)


async def raw(caller: SandboxClient, query: str = PARTS) -> tuple[int, bytes, Any]:
    """Status, body and headers, whatever the body is."""
    options: dict[str, Any] = {"json": {"query": query}, "headers": {"token": caller.token}}
    async with caller.session.post(caller.sandbox.graphql_url, **options) as response:
        return response.status, await response.read(), response.headers


async def statuses(caller: SandboxClient, count: int) -> list[int]:
    return [(await raw(caller, FREE))[0] for _ in range(count)]


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition is true, 30 seconds at most."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)
