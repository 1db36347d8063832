"""Tests of defects in the candidate's responses that rules for unlike values must not hide."""

import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from support.comparison_server import request_from_target, serve
from together.environment import ProxyEnvironment
from together.tools.compare.comparison import CompareRequests

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the environment, which is that of the file

FACET = "brand.uid"
FACETED = f"facet[fields][{FACET}][include]=1&facet[fields][{FACET}][limit]=20"
SEARCH = f"/v3/parts/search?limit=40&include[]=category_uids&{FACETED}"
Tamper = Callable[[list[Any], list[Any]], None]


def _first_link(results: list[Any], _facets: list[Any]) -> None:
    """Give every offer the link of the first one."""
    for result in results:
        for offer in result["item"]["offers"]:
            offer["product_url"] = results[0]["item"]["offers"][0]["product_url"]


def _swap_snippets(results: list[Any], _facets: list[Any]) -> None:
    results[0]["snippet"], results[1]["snippet"] = results[1]["snippet"], results[0]["snippet"]


def _computed_uid_of_another(field: str, prefix: str) -> Tamper:
    """Give a part the computed uid of the brand or manufacturer of another part."""

    def tamper(results: list[Any], _facets: list[Any]) -> None:
        companies = [result["item"][field] for result in results if result["item"][field]["uid"].startswith(prefix)]
        other = next(company for company in companies if company["uid"] != companies[0]["uid"])
        companies[0]["uid"] = other["uid"]

    return tamper


def _computed_categories_of_another(results: list[Any], _facets: list[Any]) -> None:
    lists = [result["item"]["category_uids"] for result in results]
    lists[0][-1] = next(uids[-1] for uids in lists if uids[-1].startswith("ca7e60") and uids[-1] != lists[0][-1])


def _swap_facets(_results: list[Any], facets: list[Any]) -> None:
    one = next(facet for facet in facets if facet["value"].startswith("b4a2d0"))
    other = next(facet for facet in facets if facet["value"].startswith("b4a2d0") and facet["count"] != one["count"])
    one["value"], other["value"] = other["value"], one["value"]


TAMPERED: dict[str, Tamper] = {
    "results[*].item.offers[*].product_url": _first_link,
    "results[*].snippet": _swap_snippets,
    "results[*].item.brand.uid": _computed_uid_of_another("brand", "b4a2d0"),
    "results[*].item.manufacturer.uid": _computed_uid_of_another("manufacturer", "3a2fac"),
    "results[*].item.category_uids[*]": _computed_categories_of_another,
    f'facet_results.fields["{FACET}"].facets[*]': _swap_facets,
}


def _swap_links(body: Any) -> None:
    """Swap the links of two offers of one part."""
    items = [item for result in body["results"] for item in result.get("items", [result.get("item")])]
    offers = next(item["offers"] for item in items if len(item["offers"]) > 1)
    offers[0]["product_url"], offers[1]["product_url"] = offers[1]["product_url"], offers[0]["product_url"]


def _shift_links(body: Any) -> None:
    """Give each offer of the response the link of the next one, one to one."""
    items = [item for result in body["results"] for item in result.get("items", [result.get("item")])]
    offers = [offer for item in items for offer in item["offers"]]
    links = [offer["product_url"] for offer in offers]
    for offer, link in zip(offers, links[1:] + links[:1], strict=True):
        offer["product_url"] = link


@pytest.fixture
def tampered(environment: ProxyEnvironment) -> Callable[[Callable[[str, Any], None]], Any]:
    """Serves the proxy with v3 responses changed by a function of path and body."""

    def serving(change: Callable[[str, Any], None]) -> Any:
        async def handle(request: web.Request) -> web.Response:
            address = environment.proxy.url + str(request.rel_url)
            async with aiohttp.ClientSession() as session, session.get(address) as response:
                body = await response.json()
                change(request.path, body)
                headers = {"X-Parts-Cost": response.headers.get("X-Parts-Cost", "0")}
                return web.Response(body=json.dumps(body), status=response.status, headers=headers)

        return serve(handle)

    return serving


async def test_tampered_response_is_found_at_its_fields(tampered: Any, compare: CompareRequests) -> None:
    def change(path: str, body: Any) -> None:
        for tamper in TAMPERED.values() if path == "/v3/parts/search" else ():
            tamper(body["results"], body["facet_results"]["fields"][FACET]["facets"])

    async with tampered(change) as candidate:
        result = await compare([request_from_target(SEARCH)], proxy=candidate)
    assert {group["path"] for group in result["groups"] if group["counts"]} == set(TAMPERED)
    assert (result["code"], result["failures"]) == (1, [])


MATCH = "/v3/parts/match?queries=[{%22mpn%22:%22SN74S74N%22,%22brand%22:%22Texas Instruments%22}]"


@pytest.mark.parametrize("swap", [None, _swap_links, _shift_links])
@pytest.mark.parametrize("target", ["/v3/parts/search?q=LM324&limit=5", MATCH])
async def test_swapped_links_of_offers_are_found(
    tampered: Any, compare: CompareRequests, target: str, swap: Callable[[Any], None] | None
) -> None:
    """No two offers of the response have one link then, and the same swap is in each response of the run."""

    def change(path: str, body: Any) -> None:
        if swap and path.startswith("/v3/parts/"):
            swap(body)

    requests = [request_from_target(target), request_from_target(target.replace("LM324", "LM358"))]
    async with tampered(change) as candidate:
        result = await compare([*requests, request_from_target("/v3/parts/search?q=NE555&limit=3")], proxy=candidate)
    paths = {group["path"].rpartition(".")[2] for group in result["groups"] if group["counts"]}
    assert (paths, result["code"]) == (({"product_url"}, 1) if swap else (set(), 0))
    assert result["failures"] == []
    assert result["spent"] <= 5 + 5 + 3 + 10 + 10
