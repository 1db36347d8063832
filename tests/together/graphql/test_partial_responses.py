"""Partial responses: v3 shows their nulls, GraphQL their errors, whoever asked first and whoever only waits."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from aiohttp import web
from support import running_proxy, served

from proxy import config

QUERY = '{ supMultiMatch(queries: [{mpnOrSku: "SN74S74N"}]) { parts { id mpn manufacturerUrl } } }'
NULLED = "manufacturerUrl"
V3 = f"/v3/parts/match?apikey={running_proxy.KEY}&include[]=external_links&queries=" + quote(
    '[{"mpn_or_sku":"SN74S74N"}]'
)


class BreakingUpstream:
    """The sandbox, but for one field of all parts, which is null beside an error while `breaks`."""

    def __init__(self, target: str, session: aiohttp.ClientSession) -> None:
        self.target, self.session = target, session
        self.breaks = True
        self.received = asyncio.Event()
        self.goes_on = asyncio.Event()
        self.goes_on.set()
        self.names: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        sent = {name: request.headers[name] for name in ("Authorization", "Content-Type") if name in request.headers}
        body = await request.read()
        async with self.session.post(self.target + request.path, data=body, headers=sent) as response:
            answer, status = await response.json(), response.status
        data = answer.get("data")
        if data is not None and b"parts" in body.lower():
            self.names.append(*data)
            if self.breaks:
                answer["errors"] = [{"message": "It broke.", "path": [*data, 0]}]
                _break(data)
            self.received.set()
            await self.goes_on.wait()
        return web.json_response(answer, status=status)


def _break(value: Any) -> None:
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _break(each)
    if isinstance(value, dict) and NULLED in value:
        value[NULLED] = None


class Clients:
    """A proxy on a breaking upstream."""

    def __init__(self, upstream: BreakingUpstream, proxy: running_proxy.ProxyClient) -> None:
        self.upstream, self._proxy = upstream, proxy

    async def v3(self, more: str = "") -> tuple[Any, str]:
        """Return links, and the cost in parts."""
        async with self._proxy.session.get(self._proxy.url + V3 + more) as response:
            body = await response.json()
            assert response.status == 200, body
            items = body["results"][0]["items"]
            return [item["external_links"]["product_url"] for item in items], response.headers["X-Parts-Cost"]

    async def graphql(self, query: str = QUERY) -> Any:
        headers = {"token": running_proxy.KEY}
        async with self._proxy.session.post(
            f"{self._proxy.url}/graphql", json={"query": query}, headers=headers
        ) as response:
            return await response.json()


@pytest.fixture
async def clients(environment: Any) -> AsyncIterator[Clients]:
    sandbox = environment.sandbox
    async with aiohttp.ClientSession() as session, serve(BreakingUpstream(sandbox.url, session)) as (upstream, url):
        own = {
            "features": "all",
            "client_id": config.ClientId(sandbox.client_id),
            "client_secret": config.Secret(sandbox.client_secret),
        }
        settings = running_proxy.settings(
            f"{url}/graphql", f"{url}/connect/token", application=own, cache={"seconds": 80_000}
        )
        async with running_proxy.running(settings, environment.time) as proxy:
            yield Clients(upstream, proxy)


@asynccontextmanager
async def serve(upstream: BreakingUpstream) -> AsyncIterator[tuple[BreakingUpstream, str]]:
    app = web.Application()
    app.router.add_post("/{path:.*}", upstream.handle)
    async with served.on_loopback(app) as url:
        yield upstream, url


def _parts(reply: Any) -> list[Any]:
    return [part[NULLED] for part in reply["data"]["supMultiMatch"][0]["parts"]]


async def test_null_that_v3_shows_is_no_null_of_graphql(clients: Clients) -> None:
    for _ in range(2):  # a part with an error is not stored
        assert await clients.v3() == ([None] * 3, "3")
    reply = await clients.graphql()
    assert _parts(reply) == [None] * 3
    assert [error["message"] for error in reply["errors"]] == ["It broke."]
    clients.upstream.breaks = False
    reply = await clients.graphql()
    assert (any(_parts(reply)), "errors" in reply) == (True, False)
    assert await clients.v3("&another=target") == (_parts(reply), "0")
    part_id = reply["data"]["supMultiMatch"][0]["parts"][0]["id"]
    sent = len(clients.upstream.names)
    by_id = await clients.graphql(f'{{ supParts(ids: ["{part_id}"]) {{ {NULLED} }} }}')
    assert by_id["data"]["supParts"][0][NULLED] == _parts(reply)[0]
    assert len(clients.upstream.names) == sent


async def test_part_of_a_partial_response_is_not_found_by_its_id(clients: Clients) -> None:
    clients.upstream.breaks = False
    part_id = (await clients.graphql('{ supSearchMpn(q: "SN74S74N", limit: 1) { results { part { id } } } }'))["data"][
        "supSearchMpn"
    ]["results"][0]["part"]["id"]
    clients.upstream.breaks = True
    await clients.v3()
    reply = await clients.graphql(
        f'{{ supMultiMatch(queries: [{{mpnOrSku: "SN74S74N"}}]) {{ parts {{ {NULLED} }} }} }}'
    )
    assert "errors" in reply
    clients.upstream.breaks = False
    reply = await clients.graphql(f'{{ supParts(ids: ["{part_id}"]) {{ {NULLED} }} }}')
    assert reply["data"]["supParts"][0][NULLED] is not None


@pytest.mark.parametrize("first", ["graphql", "v3"])
async def test_request_that_waits_for_a_partial_response_gets_its_own(clients: Clients, first: str) -> None:
    clients.upstream.goes_on.clear()
    leader = asyncio.create_task(getattr(clients, first)())
    await clients.upstream.received.wait()
    follower = asyncio.create_task(clients.v3() if first == "graphql" else clients.graphql())
    asyncio.get_running_loop().call_later(0.2, clients.upstream.goes_on.set)
    results = await asyncio.gather(leader, follower)
    reply, (links, _) = results if first == "graphql" else reversed(results)
    assert links == _parts(reply) == [None] * 3
    assert [error["message"] for error in reply["errors"]] == ["It broke."]
    assert json.dumps(clients.upstream.names).count("supMultiMatch") >= 2
