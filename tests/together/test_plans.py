"""Each plan at both ends: `plan:` of an application, and the plan of the sandbox (contract graphql.md §6)."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import running_proxy
from together.environment import target

import nexar_sandbox
from proxy.config import loader
from proxy.kit import clock

QUERIES = ({"mpn": "SN74S74N"}, {"mpn": "NE555P"})
PARTS = 4  # that they cost
GATED = "&include[]=specs&include[]=datasheets"
TO_DECEMBER = 1_388_800  # seconds from 2023-11-14T22:13:20Z
TECH_SPECS, LEAD_TIME, DATASHEETS = "TECH_SPECS", "LEAD_TIME", "DATASHEETS"


@dataclass(frozen=True)
class PlannedService:
    """A proxy with a plan in its file, and its upstream."""

    proxy: running_proxy.ProxyClient
    sandbox: nexar_sandbox.Sandbox

    async def groups(self, more: str) -> tuple[set[str], dict[str, str]]:
        """The features whose data the parts of a match have, and the headers of the response."""
        response = await self.proxy.get(target(*QUERIES, more=more))
        assert response.status == 200, await response.text()
        results = (await response.json())["results"]
        assert [(result["error"], result["hits"]) for result in results] == [(None, 4), (None, 1)]
        parts = [part for result in results for part in result["items"]]
        offers = [offer for part in parts for offer in part["offers"]]
        found = {
            TECH_SPECS: any(part.get("specs") for part in parts),
            DATASHEETS: any(part.get("datasheets") for part in parts),
            LEAD_TIME: any(offer["factory_lead_days"] is not None for offer in offers),
        }
        assert offers
        return {feature for feature, shown in found.items() if shown}, dict(response.headers)


StartPlanned = Callable[..., AbstractAsyncContextManager[PlannedService]]


@pytest.fixture
def start_planned(
    tmp_path: Path, catalog: nexar_sandbox.Catalog, signing_key: nexar_sandbox.SigningKey, time: clock.ManualClock
) -> StartPlanned:
    @asynccontextmanager
    async def started(
        plan: str, upstream_plan: str, add_ons: tuple[str, ...] = (), **configured: Any
    ) -> AsyncIterator[PlannedService]:
        application = nexar_sandbox.with_plan(nexar_sandbox.DEFAULT_APPLICATION, upstream_plan, add_ons)
        chosen = nexar_sandbox.SandboxSettings(applications=(application,))
        async with nexar_sandbox.serve(chosen, clock=time, catalog=catalog, key=signing_key) as sandbox:
            own = {
                "apikeys": [running_proxy.KEY],
                "client_id": sandbox.client_id,
                "client_secret": sandbox.client_secret,
                "plan": plan,
                **configured,
            }
            content = {
                "applications": {"demo": own},
                "upstream": {"graphql_url": sandbox.graphql_url, "token_url": sandbox.token_url},
                "store": "memory:",
                "admin": False,
            }
            file = tmp_path / "config.yaml"
            file.write_text(yaml.safe_dump(content))
            async with running_proxy.running(loader.load(file, {}), time) as proxy:
                yield PlannedService(proxy, sandbox)

    return started


@pytest.mark.parametrize(
    "plan, add_ons, features, limit",
    [
        ("evaluation", (), {TECH_SPECS, DATASHEETS, LEAD_TIME}, "100"),
        ("standard", (), set(), "2000"),
        ("pro", (), set(), "15000"),
        ("pro", (TECH_SPECS, LEAD_TIME), {TECH_SPECS, LEAD_TIME}, "15000"),
        ("pro", (DATASHEETS,), {DATASHEETS}, "15000"),
        ("enterprise", (), {TECH_SPECS, DATASHEETS, LEAD_TIME}, None),
    ],
)
async def test_plan_serves_its_features_and_pays_each_part_once(
    start_planned: StartPlanned, plan: str, add_ons: tuple[str, ...], features: set[str], limit: str | None
) -> None:
    configured = {"features": list(add_ons)} if add_ons else {}
    async with start_planned(plan, plan, add_ons, **configured) as service:
        for more, expected, cost in (("", features & {LEAD_TIME}, str(PARTS)), (GATED, features, "0")):
            found, headers = await service.groups(more)
            assert found == expected
            assert (headers["X-Parts-Cost"], headers["X-Parts-Used"]) == (cost, str(PARTS))
            assert headers.get("X-Parts-Limit") == limit
            assert ("X-Parts-Reset" in headers) is (plan != "evaluation")
        assert service.sandbox.billed_parts == PARTS


async def test_parts_of_an_evaluation_are_used_up_at_both_ends_for_good(
    start_planned: StartPlanned, time: clock.ManualClock
) -> None:
    async with start_planned("evaluation", "evaluation") as service:
        await service.groups("")
        service.sandbox.part_usage.record(service.sandbox.default_application.application_id, 100 - PARTS)
        for _ in range(2):
            time.advance(TO_DECEMBER)
            response = await service.proxy.get(target({"mpn": "LM358"}))
            assert response.status == 429
            assert "X-Parts-Reset" not in response.headers


@pytest.mark.parametrize("upstream_plan", ["standard", "pro"])
@pytest.mark.parametrize("plan", ["evaluation", "enterprise"])
async def test_plan_that_promises_too_much_breaks_no_request(
    start_planned: StartPlanned, plan: str, upstream_plan: str
) -> None:
    async with start_planned(plan, upstream_plan) as service:
        # Two attempts, of which each named other features, are uncertain usage: two queries with a limit of 3.
        for more, named, cost in (("", None, 6 + 6 + PARTS), (GATED, "include[]=specs", 0)):
            found, headers = await service.groups(more)
            assert (found, headers["X-Parts-Used"]) == (set(), str(6 + 6 + PARTS))
            assert headers["X-Parts-Cost"] == str(cost)
            assert headers.get("X-V3-Unsupported", "").startswith(named or "")
        assert service.sandbox.billed_parts == PARTS


@pytest.mark.parametrize("upstream_plan", ["evaluation", "enterprise"])
@pytest.mark.parametrize("plan", ["standard", "pro"])
async def test_plan_that_promises_too_little_serves_what_it_names(
    start_planned: StartPlanned, plan: str, upstream_plan: str
) -> None:
    async with start_planned(plan, upstream_plan) as service:
        assert (await service.groups(GATED))[0] == set()
        assert service.sandbox.billed_parts == PARTS
