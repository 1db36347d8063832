"""Each plan at both ends: `plan:` of an application, and the plan of the sandbox (contract graphql.md §6)."""

from collections.abc import Callable
from typing import Any

import pytest
from together.environment import ProxyEnvironment, ServeFile, target

import nexar_sandbox

QUERIES = ({"mpn": "SN74S74N"}, {"mpn": "NE555P"})
PARTS = 4  # that they cost
GATED = "&include[]=specs&include[]=datasheets"
TECH_SPECS, LEAD_TIME, DATASHEETS = "TECH_SPECS", "LEAD_TIME", "DATASHEETS"


def planned(plan: str, *add_ons: str) -> dict[str, Any]:
    """Return the setting of a sandbox whose application has a plan."""
    return {"applications": (nexar_sandbox.with_plan(nexar_sandbox.DEFAULT_APPLICATION, plan, add_ons),)}


def demo(plan: str, add_ons: tuple[str, ...] = ()) -> Callable[[dict[str, Any]], None]:
    """Return the change of a configuration that gives its application a plan."""
    settings = {"plan": plan} | ({"features": list(add_ons)} if add_ons else {})
    return lambda content: content["applications"]["demo"].update(settings)


async def features(service: ProxyEnvironment, more: str) -> tuple[set[str], dict[str, str]]:
    """The features whose data the parts of a match have, and the headers of the response."""
    response = await service.get(target(*QUERIES, more=more))
    assert response.status == 200, response.body
    results = response.json["results"]
    assert [(result["error"], result["hits"]) for result in results] == [(None, 4), (None, 1)]
    parts = [part for result in results for part in result["items"]]
    offers = [offer for part in parts for offer in part["offers"]]
    found = {
        TECH_SPECS: any(part.get("specs") for part in parts),
        DATASHEETS: any(part.get("datasheets") for part in parts),
        LEAD_TIME: any(offer["factory_lead_days"] is not None for offer in offers),
    }
    assert offers
    return {feature for feature, shown in found.items() if shown}, response.headers


@pytest.mark.parametrize(
    "plan, add_ons, expected, limit",
    [
        ("evaluation", (), {TECH_SPECS, DATASHEETS, LEAD_TIME}, "100"),
        ("standard", (), set(), "2000"),
        ("pro", (TECH_SPECS, LEAD_TIME), {TECH_SPECS, LEAD_TIME}, "15000"),
        ("enterprise", (), {TECH_SPECS, DATASHEETS, LEAD_TIME}, None),
    ],
)
async def test_plan_serves_its_features_and_pays_each_part_once(
    serve_file: ServeFile, plan: str, add_ons: tuple[str, ...], expected: set[str], limit: str | None
) -> None:
    async with serve_file(demo(plan, add_ons), **planned(plan, *add_ons)) as service:
        for more, shown, cost in (("", expected & {LEAD_TIME}, str(PARTS)), (GATED, expected, "0")):
            found, headers = await features(service, more)
            assert found == shown
            assert (headers["x-parts-cost"], headers["x-parts-used"]) == (cost, str(PARTS))
            assert headers.get("x-parts-limit") == limit
            assert ("x-parts-reset" in headers) is (plan != "evaluation")
        assert service.billed_parts == PARTS


@pytest.mark.parametrize("plan, upstream_plan", [("evaluation", "standard"), ("enterprise", "pro")])
async def test_plan_promising_too_much_is_safe(serve_file: ServeFile, plan: str, upstream_plan: str) -> None:
    async with serve_file(demo(plan), **planned(upstream_plan)) as service:
        # Two attempts, of which each named other features, are uncertain usage: two queries with a limit of 3.
        for more, named, cost in (("", "", 6 + 6 + PARTS), (GATED, "include[]=specs", 0)):
            found, headers = await features(service, more)
            assert (found, headers["x-parts-used"]) == (set(), str(6 + 6 + PARTS))
            assert headers["x-parts-cost"] == str(cost)
            assert headers.get("x-v3-unsupported", "").startswith(named)
        assert service.billed_parts == PARTS
