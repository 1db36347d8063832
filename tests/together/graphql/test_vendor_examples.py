"""The vendor's programs: its published example in JavaScript, and those led here by a line in a hosts file."""

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yarl
from support import running_proxy
from together import inspected_upstream
from together.environment import RawResponse
from together.graphql.conftest import Pair

PAGE = """query Search($search: String!, $start: Int) { supSearch(q: $search, limit: 100, start: $start) {
  hits results { part { mpn shortDescription manufacturer { name } specs { attribute { shortname } value } } } } }"""


def expiry(token: str) -> int:
    """Decode the middle of a token as the examples do."""
    return int(json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))["exp"])


async def post(both: Pair, path: str, body: str, *headers: str) -> RawResponse:
    """Send a request as Node's https does: no Accept, no User-Agent, and a body in chunks."""
    chunked = f"{len(body):x}\r\n{body}\r\n0\r\n\r\n"
    lines = [each.encode() for each in ("Transfer-Encoding: chunked", *headers)]
    lines[-1] += b"\r\n\r\n" + chunked.encode()
    return await both.environment.raw(f"POST {path} HTTP/1.1".encode(), *lines)


async def test_javascript_example_pages_through_a_search(pair: Any) -> None:
    """It wants status 200 and `application/json`."""
    async with pair(application={"features": "all"}) as both:
        form = urlencode(
            {
                "grant_type": "client_credentials",
                "client_id": "id",
                "client_secret": running_proxy.KEY,
                "scope": "supply.domain",
            }
        )
        reply = await post(both, "/connect/token", form, "Content-Type: application/x-www-form-urlencoded")
        assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (200, "application/json")
        token = reply.json["access_token"]
        assert expiry(token)
        found: list[str] = []
        while True:
            sent = json.dumps({"query": PAGE, "variables": {"search": "chip", "start": len(found)}})
            reply = await post(
                both, "/graphql", sent, f"Authorization: Bearer {token}", "Content-Type: application/json"
            )
            assert (reply.status, reply.headers["content-type"].partition(";")[0]) == (200, "application/json")
            result = reply.json["data"]["supSearch"]
            found += [each["part"]["mpn"] for each in result["results"]]
            if not (result["hits"] > len(found) and len(found) < 1_000):
                break
        assert len(found) == min(result["hits"], 1_000) > 100
        assert both.billed == len(found)


async def test_request_of_a_v3bridge_is_refused(pair: Any) -> None:
    async with pair() as inner:
        url = inner.environment.proxy.url
        loop = {"graphql_url": f"{url}/graphql", "token_url": f"{url}/connect/token"}
        async with pair(urls=loop) as outer:
            reply = await outer.environment.failure({"mpn": "SN74S74N"})
            assert reply.status == 502
            assert inner.billed == 0


async def test_doctor_finds_a_v3bridge_at_the_address_of_the_service(both: Pair, tmp_path: Path) -> None:
    examined = inspected_upstream.Examined(tmp_path, both.environment.sandbox)
    # A name: connections to addresses are led nowhere else.
    proxy = yarl.URL(both.url).with_host("localhost")
    sandbox = yarl.URL(both.environment.sandbox.url)
    upstream = {"graphql_url": f"{proxy}/graphql", "token_url": f"{proxy}/connect/token"}
    result = await examined.inspect(upstream=upstream)
    assert result.failed == ["tls"]
    assert "upstream.connect_to" in result["tls"].advice
    elsewhere = [f"{proxy.host}:{proxy.port}:{sandbox.host}:{sandbox.port}"]
    result = await examined.inspect(upstream={**upstream, "connect_to": elsewhere})
    assert "tls" not in result.failed
