"""Tests of quotas, API key limits, rate limits and the ledger, from a client's request to the billed usage."""

from pathlib import Path
from typing import Any

from support import running_proxy
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, single_application, target

from proxy import config

ONE = {"mpn": "SN74S74N"}
NONE = {"sku": "none such"}
TO_DECEMBER = 1_388_800  # seconds from 2023-11-14T22:13:20Z
ERP, SHOP = "key-of-erp", "key-of-shop"
KEYS = (
    config.ApiKeySettings(config.digest(ERP), name="erp", parts=12),
    config.ApiKeySettings(config.digest(SHOP), name="shop"),
)


async def refusal(environment: ProxyEnvironment, key: str, *queries: Any) -> RawResponse:
    failure = await environment.failure(*queries, key=key)
    assert (failure.status, failure.json["__class__"]) == (429, "ClientErrorResponse")
    return failure


async def test_request_beyond_the_plan_is_not_sent(start: StartEnvironment) -> None:
    async with start(application={"parts": 8}) as environment:
        await environment.results(ONE, NONE)
        asked = environment.sandbox.request_counts.graphql
        reply = await refusal(environment, running_proxy.KEY, {"mpn": "NE555P", "limit": 6})
        assert (environment.billed_parts, environment.sandbox.request_counts.graphql) == (3, asked)
        assert int(reply.headers["retry-after"]) == TO_DECEMBER
        told = {name: reply.headers[f"x-parts-{name}"] for name in ("cost", "used", "limit", "reset")}
        assert told == {"cost": "0", "used": "3", "limit": "8", "reset": str(TO_DECEMBER)}
        assert reply.json["message"].startswith("demo has 5 of 8 parts left (2023-11), and this request may cost ")
        environment.time.advance(TO_DECEMBER)
        await environment.results(ONE, NONE)


async def test_exhausted_quota_survives_a_restart(start: StartEnvironment, tmp_path: Path) -> None:
    ledger = {"store": f"sqlite:{tmp_path}/state.sqlite", "sandbox": {"applications": single_application(part_limit=3)}}
    async with start(**ledger) as environment:
        await environment.results(ONE, NONE)
        await refusal(environment, running_proxy.KEY, {"mpn": "1N4007"})
    async with start(**ledger) as environment:
        await refusal(environment, running_proxy.KEY, {"mpn": "1N4007"})
        assert environment.sandbox.request_counts.graphql == 0
        environment.time.advance(TO_DECEMBER)
        await environment.results(ONE, NONE)


async def test_response_headers_have_cost_and_remaining_quota(start: StartEnvironment) -> None:
    async with start(application={"apikeys": KEYS}) as environment:
        first, again, other = [await environment.get(target(ONE, NONE, key=key)) for key in (ERP, ERP, SHOP)]
        listed = await environment.get(f"/v3/brands/search?q=texas&apikey={ERP}")
    told = [
        {name.removeprefix("x-parts-"): value for name, value in reply.headers.items() if "x-parts-" in name}
        for reply in (first, again, other)
    ]
    assert told == [
        {"cost": "3", "used": "3", "limit": "12", "reset": str(TO_DECEMBER)},
        {"cost": "0", "used": "3", "limit": "12", "reset": str(TO_DECEMBER)},
        {"cost": "0", "used": "3", "reset": str(TO_DECEMBER)},
    ]
    assert listed.status == 200
    assert not any(name.startswith("x-parts-") for name in listed.headers)
