"""Figures of a service with two workers, as any of them shows them: equal to what was sent, and to the ledger."""

import asyncio
import json
import re
from typing import Any
from urllib.parse import quote

import aiohttp
import yarl
from support.running_commands import Start

KEY, TOKEN = "THE_KEY", "the-admin-token-of-the-tests"
SECONDS = 60.0
SENT = 40
CONFIG = f"""
listen: {{port: 0, workers: 2}}
admin: {{port: 0, token: "{TOKEN}"}}
upstream: sandbox
applications: {{shop: {{apikeys: [{{key: "{KEY}", name: erp}}], parts: 1000}}}}
log: {{format: json}}
"""


async def fetched(url: str, headers: dict[str, str]) -> Any:
    """The JSON at a URL over a new connection, so that any worker responds."""
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
        session.get(yarl.URL(url, encoded=True), headers=headers) as response,
    ):
        return await response.json()


async def test_any_worker_shows_the_figures_of_both(start_command: Start, config_file: str) -> None:
    process = start_command("serve", "--config", config_file)
    lines = await asyncio.to_thread(process.until, "admin interface")
    service, admin = (
        found for line in lines for found in re.findall(r"http://127\.0\.0\.1:\d+", line)[:1] if "curl" not in line
    )
    bearer = {"Authorization": f"Bearer {TOKEN}"}

    def page(name: str) -> Any:
        return fetched(f"{admin}/{name}.json", bearer)

    for number in range(SENT):
        queries = quote(json.dumps([{"mpn": "SN74S74N", "limit": number % 3 + 1}]))
        await fetched(f"{service}/v3/parts/match?apikey={KEY if number % 8 else 'WRONG'}&queries={queries}", {})
    refused = SENT // 8

    async with asyncio.timeout(SECONDS):
        while (await page("overview"))["hour"]["requests"] < SENT:
            await asyncio.sleep(0.2)
    # Several times: the kernel chooses the worker.
    for _ in range(6):
        overview, requests, upstream = [await page(name) for name in ("overview", "requests", "upstream")]
        hour = overview["hour"]
        assert (hour["requests"], hour["refused"], hour["failed"]) == (SENT, refused, 0)
        assert sum(hour["results"].values()) == SENT - refused
        (machine,) = overview["machines"]
        assert [worker["number"] for worker in machine["workers"]] == [1, 2]
        assert len({worker["pid"] for worker in machine["workers"]}) == 2
        assert all(worker["memory"] > 10_000_000 and not worker["silent"] for worker in machine["workers"])
        (parts,) = overview["parts"]
        by_operation = sum(each["parts"] or 0 for each in upstream["recent"])
        assert parts["today"] == by_operation == sum(each["parts"] or 0 for each in requests["requests"]) > 0
        assert len(requests["requests"]) == SENT
        assert [each["at"] for each in requests["requests"]] == sorted(
            (each["at"] for each in requests["requests"]), reverse=True
        )
