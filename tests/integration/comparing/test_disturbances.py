"""The old service otherwise than the new one: each thing that differs is found with its cause, and nothing else is."""

from typing import Any

import pytest
from integration.comparing.comparison import Compares, Makes, told

from proxy.sandbox.legacy_v3 import disturbances

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
    makes: Makes, compares: Compares, disturbance: disturbances.Disturbance, fields: set[str], cause: str
) -> None:
    """What happens to be the same when asked again has not moved for certain; the old side's own noise excuses it."""
    result = await compares(await makes(200, seed=1, whole=True), disturbance)
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
    makes: Makes,
    compares: Compares,
    disturbance: disturbances.Disturbance,
    fields: set[str],
    cause: str,
    beside: set[str],
) -> None:
    result = await compares(await makes(120, seed=1, whole=True), disturbance)
    assert {field for field, _, _ in told(result)} <= fields
    assert cause in {cause for _, cause, _ in told(result)} <= {cause, *beside}
    assert all(group["counts"] for group in result["groups"])
    assert (result["verdict"], result["code"]) == ("not ready", 1)


async def test_a_slow_service_shows_in_the_times_and_nowhere_else(makes: Makes, compares: Compares) -> None:
    result = await compares(await makes(60, seed=1, whole=True), disturbances.Slowness(ms=300))
    assert (told(result), result["code"]) == (set(), 0)
    times = {(each["endpoint"], each["side"]): each for each in result["times"]}
    for endpoint, side in times:
        assert times[endpoint, "old"]["p50"] >= 0.25, (endpoint, side)


@pytest.mark.parametrize("body, reason", [("html", "HTML"), ("json", "503")])
async def test_a_service_that_fails_now_and_then_is_trouble_and_no_difference(
    makes: Makes, compares: Compares, body: Any, reason: str
) -> None:
    result = await compares(await makes(120, seed=1, whole=True), disturbances.Errors(share=0.05, body=body))
    assert told(result) == set()
    assert result["troubles"]
    for trouble in result["troubles"]:
        assert reason in trouble["reason"]
        assert trouble["reason"].startswith("the old side ")
    compared = sum(row["calls"] for row in result["rows"])
    assert compared + sum(trouble["calls"] for trouble in result["troubles"]) == 120
    assert {row["share"] for row in result["rows"] if row["calls"]} == {1.0}
