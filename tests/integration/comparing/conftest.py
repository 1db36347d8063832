"""The command `compare` between the proxy and the sandbox's old service, on generated calls."""

import dataclasses
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from integration.comparing.comparison import Compares, Makes
from integration.house import House, Starts
from support import commands, generated_calls

from proxy.compare.calls import Call
from proxy.sandbox import accounts
from proxy.sandbox.legacy_v3 import disturbances
from proxy.sandbox.legacy_v3 import settings as old_service

UPSTREAM = {
    "legacy": old_service.Settings(requests_per_second=None),
    "accounts": (dataclasses.replace(accounts.READY, part_limit=1_000_000),),
}
NOISE = """
noise: {share: %s, least_calls: 10}
"""
LATEST = 500.0  # seconds that a comparison may take on a slow machine


@pytest.fixture
async def house(start: Starts) -> AsyncIterator[House]:
    async with start(sandbox=UPSTREAM) as opened:
        yield opened


@pytest.fixture
def makes(house: House) -> Makes:
    """Makes so many calls of what the old service has; what `Maker` takes may be chosen."""

    async def making(number: int, seed: int = 0, **which: Any) -> list[Call]:
        stock = await generated_calls.Stock.of(house.sandbox.legacy_url)
        return generated_calls.Maker(stock, seed, **which).calls(number)

    return making


@pytest.fixture
def compares(house: House, tmp_path: Path) -> Compares:
    """Compares calls while the old service is disturbed; gives the result as JSON, its exit code as `code`."""

    async def comparing(calls: list[Call], *disturbed: disturbances.Disturbance) -> dict[str, Any]:
        lines = [f"/v3{call.target(generated_calls.KEY)}\n" for call in calls]
        (tmp_path / "calls.txt").write_text("".join(lines), encoding="utf-8")
        (tmp_path / "own.yaml").write_text(NOISE % (1 if disturbed else 0.1))
        house.sandbox.legacy.disturbances.replace(disturbed)
        sides = ("--old", house.sandbox.legacy_url + "/v3", "--new", house.proxy.url, "--old-rate", "0")
        options = ("--requests", "calls.txt", "--rules", "own.yaml", "--yes", "--json", "result.json")
        found = await commands.end(await commands.start(tmp_path, "compare", *sides, *options), LATEST)
        assert (tmp_path / "result.json").exists(), found
        return {**json.loads((tmp_path / "result.json").read_text("utf-8")), "code": found.code}

    return comparing
