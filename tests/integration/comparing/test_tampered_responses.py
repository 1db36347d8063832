"""Tests of defects in the candidate's responses that rules for unlike values must not hide."""

import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from integration.comparing.comparison import CompareRequests
from integration.environment import ProxyEnvironment
from support.comparison_server import request_from_target, serve

pytestmark = pytest.mark.asyncio(loop_scope="module")  # of the environment, which is that of the file

SEARCH = "/v3/parts/search?q=resistor&limit=5&include[]=category_uids"
Tamper = Callable[[list[Any]], None]


def _first_link(results: list[Any]) -> None:
    """Give every offer the link of the first one."""
    for result in results:
        for offer in result["item"]["offers"]:
            offer["product_url"] = results[0]["item"]["offers"][0]["product_url"]


def _swap_snippets(results: list[Any]) -> None:
    results[0]["snippet"], results[1]["snippet"] = results[1]["snippet"], results[0]["snippet"]


@pytest.mark.parametrize(
    "tamper, field",
    [
        (_first_link, "results[*].item.offers[*].product_url"),
        (_swap_snippets, "results[*].snippet"),
    ],
)
async def test_tampered_response_is_found_at_its_field(
    environment: ProxyEnvironment, compare: CompareRequests, tamper: Tamper, field: str
) -> None:
    async def handle(request: web.Request) -> web.Response:
        async with (
            aiohttp.ClientSession() as session,
            session.get(environment.proxy.url + str(request.rel_url)) as response,
        ):
            body = await response.json()
            if request.path == "/v3/parts/search":
                tamper(body["results"])
            headers = {"X-Parts-Cost": response.headers.get("X-Parts-Cost", "0")}
            return web.Response(body=json.dumps(body), status=response.status, headers=headers)

    async with serve(handle) as candidate:
        result = await compare([request_from_target(SEARCH)], proxy=candidate)
    assert {group["path"] for group in result["groups"] if group["counts"]} == {field}
    assert (result["code"], result["failures"]) == (1, [])
