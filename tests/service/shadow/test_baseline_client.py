"""Tests of the client of the old service: its addresses, and conversion of its responses."""

from typing import Any

import aiohttp
import pytest
from support import scripted_v3

from proxy import config
from proxy.shadow import baseline_client


@pytest.mark.parametrize(
    "target, there",
    [
        ("/v3/parts/match?queries=[{%22a%22:1}]", "/api/v3/parts/match?queries=[{%22a%22:1}]"),
        ("/api/v3/parts/match/?a=%2f&&b", "/api/v3/parts/match/?a=%2f&&b"),
        ("http://octopart.com/api/v3/brands/abc?x", "/api/v3/brands/abc?x"),
        ("/v3/parts/search?q=µ é#\udcff", "/api/v3/parts/search?q=%C2%B5%20%C3%A9%23%FF"),
    ],
)
def test_target_is_forwarded_unchanged(target: str, there: str) -> None:
    assert str(baseline_client.address("http://old.example/api/v3", target)) == f"http://old.example{there}"


@pytest.mark.parametrize(
    "target", ["/v4/parts/match", "/", "*", "v3/parts/match", "http://octopart.com", "/%763/parts"]
)
def test_non_v3_path_is_not_forwarded(target: str) -> None:
    with pytest.raises(ValueError, match="does not begin"):
        baseline_client.address("http://old.example/v3", target)


@pytest.fixture
async def baseline() -> Any:
    async with scripted_v3.running() as service:
        yield service


@pytest.fixture
async def fetch(baseline: Any, clock: Any) -> Any:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)) as http:

        async def send(target: str = "/v3/parts/match?apikey=CLIENTS", apikey: Any = None) -> Any:
            return await baseline_client.BaselineClient(http, baseline.url, 60.0, clock).fetch(target, apikey)

        yield send


async def test_baseline_response_is_returned(baseline: Any, fetch: Any) -> None:
    baseline.behavior = scripted_v3.responding(b"{}", 404, **{"Content-Type": "application/json"})
    response = await fetch()
    assert (response.status, response.body, response.content_type, response.failure) == (
        404,
        b"{}",
        "application/json",
        None,
    )


async def test_configured_key_replaces_the_key_of_the_client(baseline: Any, fetch: Any) -> None:
    await fetch("/api/v3/parts/match?apikey=CLIENTS&queries=[]&q=%26", config.Secret("OTHER"))
    assert baseline.requests == ["/v3/parts/match?queries=[]&q=%26&apikey=OTHER"]


@pytest.mark.parametrize(
    "does, words",
    [
        (scripted_v3.abort_connection, "closed the connection"),
        (scripted_v3.truncate_response, "sent a truncated response"),
        (scripted_v3.responding(b"<html>", **{"Content-Type": "text/html"}), "sent HTML"),
        (scripted_v3.responding({}, 429), "limits the request rate"),
        (scripted_v3.responding({}, 503), "is unavailable"),
    ],
)
async def test_invalid_response_is_a_failure(baseline: Any, fetch: Any, does: Any, words: str) -> None:
    baseline.behavior = does
    response = await fetch()
    assert words in response.failure
    assert baseline.url not in response.failure


async def test_redirect_is_not_followed(baseline: Any, fetch: Any) -> None:
    baseline.behavior = scripted_v3.responding({}, 302, Location="/v3/parts/match")
    assert (await fetch()).status == 302
    assert len(baseline.requests) == 1


async def test_endless_response_is_cancelled(baseline: Any, fetch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baseline_client, "BODY_MAX", 20)
    baseline.behavior = scripted_v3.drip_bytes
    assert (await fetch()).failure == "sent a response of more than 20 bytes"
