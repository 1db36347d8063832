"""The same list of parts by programs of v3, GraphQL and v4, in any order, within a day: each part is paid for once."""

import asyncio
import itertools
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support import kicost_runs, running_proxy
from together.graphql.conftest import Pair

import nexar_sandbox

LINES, FEW = 300, int(os.environ.get("TEST_LINES", "24"))  # of the list, and for every order: all in bench/documents.py
PAUSES = (360, 82_800)  # seconds between the programs: 6 minutes, then 23 hours
V4 = """query ($queries: [PartMatchQuery!]!) { multi_match(queries: $queries) { hits parts { mpn v3uid
  sellers { company { name } offers { sku inventory_level prices { quantity price currency } } } } } }"""

Program = Callable[[Pair, list[str], Path], Awaitable[None]]


@pytest.fixture
def numbers(catalog: nexar_sandbox.Catalog) -> list[str]:
    """Numbers of one part each, without the commas at which KiCost splits a cell."""
    parts = [part for part in catalog.parts() if "," not in part.mpn]
    spellings = Counter(re.sub(r"\W", "", mpn).upper() for part in parts for mpn in (part.mpn, *part.aka_mpns))
    return [part.mpn for part in parts if spellings[re.sub(r"\W", "", part.mpn).upper()] == 1][:LINES]


async def by_v3(both: Pair, numbers: list[str], folder: Path) -> None:
    """KiCost 1.1.12."""
    url = f"{both.environment.proxy.url}/api/v3/parts/match"
    own = {"KICOST_OCTOPART_URL": url, "KICOST_OCTOPART_EXTENDED": "1", "KICOST_OCTOPART_KEY_V3": running_proxy.KEY}
    await run("1.1.12", numbers, folder, **own)


async def by_graphql(both: Pair, numbers: list[str], folder: Path) -> None:
    """KiCost 1.1.21, whose token URL is compiled in: the key is in the URL."""
    url = f"{both.environment.proxy.url}/graphql?apikey={running_proxy.KEY}"
    own = {"KICOST_NEXAR_URL": url, "KICOST_NEXAR_NO_TOKEN": "1", "NEXAR_STORAGE_PATH": str(folder)}
    await run("1.1.21", numbers, folder, **own, NEXAR_CLIENT_ID="none", NEXAR_CLIENT_SECRET="none")


async def by_v4(both: Pair, numbers: list[str], _: Path) -> None:
    """A document of v4, in calls of 20 queries."""
    url = f"{both.environment.proxy.url}/api/v4/endpoint?token={running_proxy.KEY}"
    for start in range(0, len(numbers), 20):
        queries = [{"mpn": number, "limit": 1} for number in numbers[start : start + 20]]
        reply = await both.post(url, {"query": V4, "variables": {"queries": queries}})
        assert [match["parts"][0]["mpn"] for match in reply.data["multi_match"]] == numbers[start : start + 20]


async def run(version: str, numbers: list[str], folder: Path, **environment: str) -> None:
    lines = [("", number) for number in numbers]
    sheet = await asyncio.to_thread(kicost_runs.run, version, folder, lines, **environment)
    assert set(sheet) == set(numbers)
    assert any(line.prices for sellers in sheet.values() for line in sellers.values())


ORDERS = [(each, FEW) for each in itertools.permutations((by_v3, by_graphql, by_v4))]


@pytest.mark.parametrize("programs, lines", [*ORDERS, ((by_graphql, by_v4, by_v3), LINES)])
async def test_each_part_is_paid_for_once(
    pair: Any,
    programs: tuple[Program, ...],
    lines: int,
    numbers: list[str],
    tmp_path: Path,
    record_property: Callable[[str, int], None],
) -> None:
    async with pair(application={"features": "all"}) as both:
        for program, pause in zip(programs, (*PAUSES, 0), strict=True):
            folder = tmp_path / program.__name__
            folder.mkdir()
            await program(both, numbers[:lines], folder)
            record_property("parts", both.billed)
            assert both.billed == lines
            both.environment.time.advance(pause)
