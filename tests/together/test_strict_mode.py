"""Strict mode: what the client names and the Nexar API has not is a 400 that names it, before anything is sent."""

import json
from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest
import yarl
from support import running_proxy
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, lowercase_names, target

from proxy import config

RFQ = "the service only says whether a quote can be requested"
STRICT = {"X-Strict": "1"}
PART = {"mpn": "SN74S74N"}


async def get(environment: ProxyEnvironment, path: str, headers: dict[str, str] | None = None) -> RawResponse:
    url = yarl.URL(f"{environment.proxy.url}{path}", encoded=True)
    async with environment.proxy.session.get(url, headers=STRICT if headers is None else headers) as response:
        return RawResponse(response.status, lowercase_names(response.headers.items()), await response.read())


def search(more: str) -> str:
    return f"/v3/parts/search?apikey={running_proxy.KEY}&q=resistor&limit=1{more}"


@pytest.fixture
async def environment(start: StartEnvironment) -> AsyncIterator[ProxyEnvironment]:
    """An environment whose plan lacks a feature."""
    async with start(application={"features": ("DATASHEETS", "TECH_SPECS")}) as ready:
        yield ready


@pytest.mark.parametrize(
    "path, named",
    [
        (
            target(PART, more="&show[]=mpn&show[]=offers.on_order_eta"),
            ["show[]=offers.on_order_eta (the service has no"],
        ),
        (target(PART, more="&show[]=offers.octopart_rfq_url"), [f"show[]=offers.octopart_rfq_url ({RFQ})"]),
        (target(PART, more="&slice[offers.on_order_eta]=[:1]"), ["slice[offers.on_order_eta] (the service has no"]),
        (
            target(PART, more="&include[]=cad_models&include[]=specs"),
            ["include[]=cad_models (the plan lacks CAD_MODELS)"],
        ),
        (
            target(PART, more="&show[]=flavor&include[]=incude&show[]=mpn.flavor"),
            [
                "include[]=incude (v3 has no such field)",
                "show[]=flavor (v3 has no such",
                "show[]=mpn.flavor (v3 has no",
            ],
        ),
        (f"/v3/sellers/search?apikey={running_proxy.KEY}&show[]=has_ecommerce", ["show[]=has_ecommerce (the service"]),
        (target({**PART, "flavor": "red", "size": 1}), ["queries[0].flavor, queries[0].size"]),
        (search("&facet[fields][mpn][include]=1&sortby=uid+asc"), ["facet[fields][mpn], sortby=uid"]),
        (
            target({**PART, "flavor": "red"}, more="&show[]=flavor"),
            ["show[]=flavor (v3 has no such field), queries[0].flavor"],
        ),
        (search("&show[]=flavor&sortby=uid+asc"), ["show[]=flavor (v3 has no such field), sortby=uid"]),
        (
            f"/v3/parts/get_multi?apikey={running_proxy.KEY}&uid[]=bd4d768f82c5628a&show[]=flavor",
            ["show[]=flavor (v3 has no such field)"],
        ),
        (search("&stats[avg_price][include]=1"), ["stats[avg_price]"]),
        (
            search("&filter[value]=5&filter[fields][mpn][x]=y&sortby=uid+asc"),
            ["filter[value], filter[fields][mpn][x], sor"],
        ),
        (
            f"/v3/categories/search?apikey={running_proxy.KEY}&filter[fields][ancestor_uids][]=ffffffffffffffff",
            ["filter[fields][ancestor_uids]=ffffffffffffffff"],
        ),
    ],
)
async def test_every_unsupported_use_is_named_and_costs_nothing(
    environment: ProxyEnvironment, path: str, named: list[str]
) -> None:
    lenient = await get(environment, path, {})
    billed = environment.billed_parts
    strict = await get(environment, path)
    assert (lenient.status, strict.status, environment.billed_parts) == (200, 400, billed)
    assert strict.json["message"].startswith("strict mode: not supported: ")
    assert [text for text in named if text not in strict.json["message"]] == []
    assert "x-v3-unsupported" not in strict.headers


@pytest.mark.parametrize(
    "path",
    [
        target(PART),
        target(
            PART, more="&include[]=specs&include[]=datasheets&show[]=specs.resistance.value&show[]=offers.seller.name"
        ),
        target(PART, more="&show[]=offers&slice[offers]=[:1]&hide[]=offers.on_order_eta&hide[]=flavor&show[]="),
        search("&facet[fields][brand.name][include]=1&sortby=avg_price+asc"),
        f"/v3/brands/search?apikey={running_proxy.KEY}&q=texas",
    ],
)
async def test_supported_requests_are_served_as_usual(environment: ProxyEnvironment, path: str) -> None:
    lenient, strict = await get(environment, path, {}), await get(environment, path)
    assert (lenient.status, strict.status) == (200, 200)
    assert lenient.json | {"msec": 0} == strict.json | {"msec": 0}


async def test_cached_response_of_another_request_is_not_used(start: StartEnvironment, unparsed: list[bytes]) -> None:
    path = target(PART, more="&show[]=offers.on_order_eta")
    async with start(cache={"seconds": 300}) as environment:
        for _ in range(5):
            assert (await get(environment, path, {})).status == 200
        assert len(unparsed) == 2
        assert [(await get(environment, path)).status for _ in range(3)] == [400] * 3
        assert (await get(environment, path, {"X-Strict": "0"})).status == 200


async def test_strict_responses_are_cached_for_strict_requests(start: StartEnvironment, unparsed: list[bytes]) -> None:
    async with start(cache={"seconds": 300}) as environment:
        replies = [await get(environment, target(PART)) for _ in range(5)]
    assert [each.headers["x-cache"] for each in replies] == ["miss", *["hit"] * 4]
    assert len(unparsed) == 2


async def test_key_may_be_strict(start: StartEnvironment) -> None:
    keys = (config.ApiKeySettings(config.digest("ci"), strict=True), config.ApiKeySettings(config.digest("erp")))
    async with start(application={"apikeys": keys}, cache={"seconds": 300}) as environment:
        for name, status in (("erp", 200), ("ci", 400)):
            path = target(PART, more="&show[]=offers.on_order_eta", key=name)
            assert [(await get(environment, path, headers)).status for headers in ({}, {"X-Strict": "0"})] == [
                status
            ] * 2
        assert (await get(environment, target(PART, key="ci"), {})).status == 200


@pytest.mark.parametrize("value", ["true", "yes", "", "<2>" * 99])
async def test_value_that_is_neither_1_nor_0_is_refused(environment: ProxyEnvironment, value: str) -> None:
    for _ in range(3):  # also when the response is cached
        response = await get(environment, target(PART), {"X-Strict": value})
        assert response.status == 400
        assert response.json["message"] == f"X-Strict: {value[:40]!r} is unknown; send 1"
        assert (await get(environment, target(PART), {})).status == 200


async def test_message_is_bounded(environment: ProxyEnvironment) -> None:
    query = {**PART, **{f"key_{number:03}": 1 for number in range(100)}, "x" * 1_000: 1}
    strict = await get(environment, f"/v3/parts/match?apikey=EXAMPLE_KEY&queries={quote(json.dumps([query]))}")
    assert strict.status == 400
    assert strict.json["message"].endswith("queries[0].key_049, 51 more")
