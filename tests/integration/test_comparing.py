"""The command `compare` between the proxy and the sandbox's old service: nothing where nothing is, and each thing that
is, with its cause."""

import dataclasses
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from integration.house import House, Starts
from support import commands, generated_calls

from proxy import endpoints
from proxy.sandbox import accounts
from proxy.sandbox.legacy_v3 import disturbances
from proxy.sandbox.legacy_v3 import settings as old_service

Compares = Callable[..., Awaitable[dict[str, Any]]]

UPSTREAM = {
    "legacy": old_service.Settings(requests_per_second=None),
    "accounts": (dataclasses.replace(accounts.READY, part_limit=1_000_000),),
}
RULES = """
noise: {share: 1, least_calls: 10}
"""
LATEST = 500.0  # seconds that the longest comparison may take on a slow machine


@pytest.fixture
async def house(start: Starts) -> AsyncIterator[House]:
    async with start(sandbox=UPSTREAM) as opened:
        yield opened


@pytest.fixture
def compares(house: House, tmp_path: Path) -> Compares:
    """Compares so many generated calls while the old service is disturbed; gives the result as JSON, its exit code as
    `code`."""

    async def comparing(number: int, *disturbed: disturbances.Disturbance, **which: Any) -> dict[str, Any]:
        stock = await generated_calls.Stock.of(house.sandbox.legacy_url)
        made = generated_calls.Maker(stock, seed=len(disturbed), **which).calls(number)
        lines = [f"/v3{call.target(generated_calls.KEY)}\n" for call in made]
        (tmp_path / "calls.txt").write_text("".join(lines), encoding="utf-8")
        (tmp_path / "own.yaml").write_text(RULES)
        house.sandbox.legacy.disturbances.replace(disturbed)
        sides = ("--old", house.sandbox.legacy_url + "/v3", "--new", house.proxy.url, "--old-rate", "0")
        options = ("--requests", "calls.txt", "--rules", "own.yaml", "--yes", "--json", "result.json")
        found = await commands.end(await commands.start(tmp_path, "compare", *sides, *options), LATEST)
        assert (tmp_path / "result.json").exists(), found
        return {**json.loads((tmp_path / "result.json").read_text("utf-8")), "code": found.code}

    return comparing


def told(result: dict[str, Any]) -> set[tuple[str, str, bool]]:
    """The last field, the cause, and whether it counts, of all that differs."""
    return {(last(group["path"]), group["cause"], group["counts"]) for group in result["groups"]}


def last(path: str) -> str:
    """`prices` of `…offers[*].prices.USD[*]`, `offers[*]` of a whole offer."""
    return "prices" if ".prices." in path else path.rpartition(".")[2]


async def test_what_nobody_disturbs_is_equivalent_on_every_endpoint(compares: Compares) -> None:
    result = await compares(2_000)
    assert told(result) == set()
    assert (result["verdict"], result["code"], result["troubles"]) == ("ready", 0, [])
    assert sum(row["calls"] for row in result["rows"]) == 2_000
    assert {row["share"] for row in result["rows"]} == {1.0}
    known = {endpoint.path for endpoint in endpoints.ENDPOINTS if endpoint.alias_of is None}
    assert {row["endpoint"] for row in result["rows"]} == known


WHOLE_PARTS = {"hits", "count", "results[*]", "items[*]", "[*]", "(status)"}


@pytest.mark.parametrize(
    "disturbance, fields, cause",
    [
        (disturbances.PriceDrift(seconds=0), {"prices"}, "moved"),
        (disturbances.StockDrift(seconds=0), {"in_stock_quantity"}, "moved"),
        (disturbances.Flapping(), {"packaging"}, "moved"),
    ],
)
async def test_data_that_moves_is_told_and_does_not_count(
    compares: Compares, disturbance: disturbances.Disturbance, fields: set[str], cause: str
) -> None:
    """What happens to be the same when asked again has not moved for certain; the old side's own noise excuses it."""
    result = await compares(200, disturbance, whole=True)
    assert {field for field, _, _ in told(result)} == fields
    assert cause in {cause for _, cause, _ in told(result)} <= {cause, "unexplained"}
    assert not any(group["counts"] for group in result["groups"])
    assert (result["code"], result["troubles"]) == (0, [])


@pytest.mark.parametrize(
    "disturbance, fields, cause, beside",
    [
        (disturbances.ReorderedOffers(share=0.5), {"offers"}, "order", set()),
        # A page has room for one more where there is one part fewer, and the other way round.
        (disturbances.FewerParts(), {*WHOLE_PARTS, "facets"}, "extra part", {"missing part", "order"}),
        (disturbances.MoreParts(), WHOLE_PARTS, "missing part", {"extra part"}),
    ],
)
async def test_what_differs_for_good_is_found_with_its_cause_and_counts(
    compares: Compares, disturbance: disturbances.Disturbance, fields: set[str], cause: str, beside: set[str]
) -> None:
    result = await compares(200, disturbance, whole=True)
    assert {field for field, _, _ in told(result)} <= fields
    assert cause in {cause for _, cause, _ in told(result)} <= {cause, *beside}
    assert all(group["counts"] for group in result["groups"])
    assert (result["verdict"], result["code"]) == ("not ready", 1)


async def test_a_slow_service_shows_in_the_times_and_nowhere_else(compares: Compares) -> None:
    result = await compares(100, disturbances.Slowness(ms=300), whole=True)
    assert (told(result), result["code"]) == (set(), 0)
    times = {(each["endpoint"], each["side"]): each for each in result["times"]}
    for endpoint, side in times:
        assert times[endpoint, "old"]["p50"] >= 0.25, (endpoint, side)


@pytest.mark.parametrize("body, reason", [("html", "HTML"), ("json", "503")])
async def test_a_service_that_fails_now_and_then_is_trouble_and_no_difference(
    compares: Compares, body: Any, reason: str
) -> None:
    result = await compares(200, disturbances.Errors(share=0.05, body=body), whole=True)
    assert told(result) == set()
    assert result["troubles"]
    for trouble in result["troubles"]:
        assert reason in trouble["reason"]
        assert trouble["reason"].startswith("the old side ")
    compared = sum(row["calls"] for row in result["rows"])
    assert compared + sum(trouble["calls"] for trouble in result["troubles"]) == 200
    assert {row["share"] for row in result["rows"] if row["calls"]} == {1.0}
