"""A sandbox with faults as tests use it: declare them, ask it, see what was struck and billed."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from proxy.sandbox.injection import declarations
from support.sandbox_caller import Caller

PARTS = '{ supSearch(q: "", limit: 3) { results { part { mpn totalAvail } } } }'
FREE = '{ supSellers(ids: ["459"]) { name } }'
ANSWER = {"supSellers": [{"name": "Digi-Key"}]}


def declare(caller: Caller, *texts: str) -> None:
    """From now on these faults."""
    caller.sandbox.faults.replace([fault for text in texts for fault in declarations.parse(text)])


def billed(caller: Caller) -> int:
    return caller.sandbox.accounting.used(caller.sandbox.account.application_id)


def struck(caller: Caller) -> dict[str, int]:
    """Strikes by kind, as the journal counts them."""
    return dict(caller.sandbox.journal.totals.faults)


async def raw(caller: Caller, query: str = PARTS) -> tuple[int, bytes, Any]:
    """Status, body and headers, whatever the body is."""
    options = {"json": {"query": query}, "headers": {"token": caller.token}}
    async with caller.session.post(caller.sandbox.graphql_url, **options) as response:
        return response.status, await response.read(), response.headers


async def received(caller: Caller) -> bytes:
    """Everything that comes over a connection that asks for parts, until the sandbox closes it."""
    body = json.dumps({"query": PARTS})
    reader, writer = await asyncio.open_connection("127.0.0.1", caller.sandbox.port)
    head = (
        f"POST /graphql HTTP/1.1\r\nHost: x\r\ntoken: {caller.token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body.encode())
    try:
        return await reader.read()
    finally:
        writer.close()


async def statuses(caller: Caller, count: int) -> list[int]:
    return [(await raw(caller, FREE))[0] for _ in range(count)]


async def until(condition: Callable[[], object]) -> None:
    """Wait until something has become true; a test that waits in vain is ended by this."""
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)
