"""Each plan at both ends: `plan:` of an application, and the plan of the sandbox (contract graphql.md §6)."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import running_proxy
from together.environment import ProxyEnvironment, target

import nexar_sandbox
from proxy.config import loader
from proxy.kit import clock

QUERIES = ({"mpn": "SN74S74N"}, {"mpn": "NE555P"})
PARTS = 4  # that they cost
GATED = "&include[]=specs&include[]=datasheets"
TECH_SPECS, LEAD_TIME, DATASHEETS = "TECH_SPECS", "LEAD_TIME", "DATASHEETS"

StartPlanned = Callable[..., AbstractAsyncContextManager[ProxyEnvironment]]


@pytest.fixture
def start_planned(
    tmp_path: Path, catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey, time: clock.ManualClock
) -> StartPlanned:
    """Starts a proxy with a plan in its file, in front of a sandbox with one."""

    @asynccontextmanager
    async def started(
        plan: str, upstream_plan: str, add_ons: tuple[str, ...] = (), **configured: Any
    ) -> AsyncIterator[ProxyEnvironment]:
        application = nexar_sandbox.with_plan(nexar_sandbox.DEFAULT_APPLICATION, upstream_plan, add_ons)
        chosen = nexar_sandbox.SandboxSettings(applications=(application,))
        async with nexar_sandbox.serve(chosen, clock=time, catalog=catalog, key=signing_key) as sandbox:
            credentials = {"client_id": sandbox.client_id, "client_secret": sandbox.client_secret}
            content = {
                "applications": {"demo": {"apikeys": [running_proxy.KEY], **credentials, "plan": plan, **configured}},
                "upstream": {"graphql_url": sandbox.graphql_url, "token_url": sandbox.token_url},
                "store": "memory:",
                "admin": False,
            }
            file = tmp_path / "config.yaml"
            file.write_text(yaml.safe_dump(content))
            async with running_proxy.running(loader.load(file, {}), time) as proxy:
                yield ProxyEnvironment(proxy, sandbox, time)

    return started


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
    start_planned: StartPlanned, plan: str, add_ons: tuple[str, ...], expected: set[str], limit: str | None
) -> None:
    configured = {"features": list(add_ons)} if add_ons else {}
    async with start_planned(plan, plan, add_ons, **configured) as service:
        for more, shown, cost in (("", expected & {LEAD_TIME}, str(PARTS)), (GATED, expected, "0")):
            found, headers = await features(service, more)
            assert found == shown
            assert (headers["x-parts-cost"], headers["x-parts-used"]) == (cost, str(PARTS))
            assert headers.get("x-parts-limit") == limit
            assert ("x-parts-reset" in headers) is (plan != "evaluation")
        assert service.billed_parts == PARTS


@pytest.mark.parametrize("plan, upstream_plan", [("evaluation", "standard"), ("enterprise", "pro")])
async def test_plan_promising_too_much_is_safe(start_planned: StartPlanned, plan: str, upstream_plan: str) -> None:
    async with start_planned(plan, upstream_plan) as service:
        # Two attempts, of which each named other features, are uncertain usage: two queries with a limit of 3.
        for more, named, cost in (("", "", 6 + 6 + PARTS), (GATED, "include[]=specs", 0)):
            found, headers = await features(service, more)
            assert (found, headers["x-parts-used"]) == (set(), str(6 + 6 + PARTS))
            assert headers["x-parts-cost"] == str(cost)
            assert headers.get("x-v3-unsupported", "").startswith(named)
        assert service.billed_parts == PARTS
