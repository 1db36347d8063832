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


async def test_tampered_response_is_found_at_its_fields(
    environment: ProxyEnvironment, compare: CompareRequests
) -> None:
    async def handle(request: web.Request) -> web.Response:
        async with (
            aiohttp.ClientSession() as session,
            session.get(environment.proxy.url + str(request.rel_url)) as response,
        ):
            body = await response.json()
            if request.path == "/v3/parts/search":
                for tamper in TAMPERED.values():
                    tamper(body["results"], body["facet_results"]["fields"][FACET]["facets"])
            headers = {"X-Parts-Cost": response.headers.get("X-Parts-Cost", "0")}
            return web.Response(body=json.dumps(body), status=response.status, headers=headers)

    async with serve(handle) as candidate:
        result = await compare([request_from_target(SEARCH)], proxy=candidate)
    assert {group["path"] for group in result["groups"] if group["counts"]} == set(TAMPERED)
    assert (result["code"], result["failures"]) == (1, [])
