"""Overview, Requests and Upstream: figures equal what was sent, and no page has an API key."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
from support import running_admin, running_proxy, scripted_upstream
from together.environment import ProxyEnvironment, StartEnvironment

from proxy import config
from proxy.kit import clock
from proxy.telemetry import activity
from proxy.web.admin import listener, pages
from proxy.web.admin.page import AdminPage

A, B, NONE = {"mpn": "SN74S74N"}, {"mpn": "1N4007", "limit": 3}, {"mpn": "no such part"}
PLANTED = "k3yPLANTED"
CACHED = {"seconds": 300}


async def sampled(environment: ProxyEnvironment, *admins: running_admin.AdminClient) -> None:
    """Let every machine publish its figures twice, five seconds apart, so that each has read those of the others."""
    for _ in range(2):
        environment.time.advance(5)
        for admin in admins or (environment.admin,):
            await admin.service.cluster.publish()


@pytest.fixture
async def cached(start: StartEnvironment) -> AsyncIterator[ProxyEnvironment]:
    """An environment with an admin interface and a response cache, at a moment before any request."""
    async with start(admin=True, cache=CACHED) as environment:
        await environment.admin.service.cluster.publish()
        yield environment


async def test_overview_counts_what_was_sent(cached: ProxyEnvironment) -> None:
    for _ in range(3):
        await cached.reply(A)
    await cached.reply(B, NONE)
    await cached.get("/v3/parts/match?apikey=WRONG")
    await cached.get("/healthz")
    await sampled(cached)
    overview = await cached.admin.json("/overview.json")
    for window in (overview["minute"], overview["hour"]):
        assert (window["requests"], window["failed"], window["refused"]) == (5, 0, 1)
        assert window["results"] == {"hit": 2, "shared": 0, "miss": 3, "stale": 0}
        assert window["hit_ratio"] == 0.4
        assert window["p50"] <= window["p95"] <= window["p99"]
    assert overview["minute"]["requests_per_second"] == 5 / 10
    assert sum(filter(None, overview["series"]["parts"])) == cached.billed_parts
    (parts,) = overview["parts"]
    assert (parts["today"], parts["month"]) == (cached.billed_parts, cached.billed_parts)
    assert {check["failure"] for check in overview["checks"]} == {None}
    assert overview["breakers"] == {"graphql": "closed", "identity": "closed"}
    assert [(token["application"], token["seconds"]) for token in overview["tokens"]] == [("demo", 10.0)]
    html = await cached.admin.page("/")
    assert "Parts today</dt><dd>" + str(cached.billed_parts) in html


async def test_month_is_expected_at_the_pace_of_the_last_days(start: StartEnvironment) -> None:
    async with start(admin=True, application={"parts": 11}) as environment:
        environment.time.advance(86_400 - environment.time.now() % 86_400)  # the 15th of November begins
        await environment.reply(B)
        used = environment.billed_parts
        assert 0 < used < 11
        environment.time.advance(86_400)
        (parts,) = (await environment.admin.json("/overview.json"))["parts"]
        # All of it in one day; 15 days are left.
        assert (parts["today"], parts["month"], parts["month_expected"]) == (0, used, used + 15 * used)
        days_left = (11 - used) / used
        assert parts["usage"]["runs_out_at"] == f"2023-11-{16 + int(days_left)}T{int(days_left % 1 * 24):02}:00:00Z"
        assert f"2023-11-{16 + int(days_left)}</span>" in await environment.admin.page("/")


async def test_parts_of_requests_operations_and_ledger_are_the_same(managed: ProxyEnvironment) -> None:
    await managed.reply(A)
    await managed.reply(A, B, NONE)
    await managed.get(f"/v3/parts/search?apikey={running_proxy.KEY}&q=resistor&limit=4")
    await managed.get(f"/v3/brands/search?apikey={running_proxy.KEY}&q=texas")
    requests = (await managed.admin.json("/requests.json"))["requests"]
    upstream = await managed.admin.json("/upstream.json")
    (parts,) = (await managed.admin.json("/overview.json"))["parts"]
    by_operation = sum(each["parts"] or 0 for each in upstream["recent"])
    by_request = sum(each["parts"] or 0 for each in requests)
    assert by_request == by_operation == parts["today"] == managed.billed_parts > 0
    assert max(each["queries"] for each in upstream["recent"] if each["name"] == "supMultiMatch") == 3
    names = {each["name"] for each in upstream["recent"]}
    assert {activity.TOKEN_REQUEST, "supManufacturers"} <= names
    totals = {each["name"]: each["requests"] for each in upstream["operations"]}
    counted = [each["name"] for each in upstream["recent"] if each["name"] != activity.TOKEN_REQUEST]
    assert totals == {name: counted.count(name) for name in counted}


async def test_batch_is_one_operation_with_the_parts_of_all(managed: ProxyEnvironment) -> None:
    await managed.reply(NONE)
    await asyncio.gather(*(managed.reply({"mpn": "SN74S74N", "limit": n}) for n in range(1, 7)))
    recent = (await managed.admin.json("/upstream.json"))["recent"]
    operations = [each for each in recent if each["name"] != activity.TOKEN_REQUEST]
    assert max(each["queries"] for each in operations) > 1
    assert sum(each["parts"] for each in operations) == managed.billed_parts


async def test_failed_attempts_are_shown_with_their_error(time: clock.ManualClock) -> None:
    good: dict[str, Any] = {"data": {"supMultiMatch": [{"hits": 0, "error": None, "parts": []}] * 2}}
    async with scripted_upstream.running() as upstream:
        upstream.respond_with(scripted_upstream.ScriptedResponse(b"", 503, headers={"Retry-After": "0"}), good)
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, upstream={"retries": 1})
        async with running_admin.running(settings, time) as admin:
            await admin.proxy.match(json.dumps([A, NONE]))
            page = await admin.json("/upstream.json")
            attempts = [(each["outcome"], each["queries"], each["parts"]) for each in page["recent"]]
            assert attempts == [("ok", 2, 0), ("UpstreamFault", 2, None), ("ok", 0, None)]
            (summary,) = page["operations"]
            assert summary == {"name": "supMultiMatch", "requests": 2, "failed": {"UpstreamFault": 1}, "retries": 1}
            assert (page["in_flight"], page["waiting"]) == (0, 0)
            assert '<span class="bad">UpstreamFault</span>' in await admin.page("/upstream")


async def test_requests_are_filtered(cached: ProxyEnvironment) -> None:
    await cached.reply(A)
    await cached.reply(A)
    await cached.get("/v3/parts/match?apikey=WRONG")
    await cached.get(f"/v3/nothing?apikey={running_proxy.KEY}")

    async def statuses(query: str) -> list[int]:
        return [each["status"] for each in (await cached.admin.json(f"/requests.json{query}"))["requests"]]

    assert await statuses("") == [404, 403, 200, 200]
    assert await statuses("?status=4xx") == [404, 403]
    assert await statuses("?status=404") == [404]
    assert await statuses("?key=none") == [404, 403]
    assert await statuses("?key=1") == [200, 200]
    assert await statuses("?cache=hit") == [200]
    assert await statuses("?route=/v3/parts/match") == [403, 200, 200]
    assert await statuses("?route=/v3/parts/match&cache=miss&status=2xx&key=1") == [200]
    assert await statuses("?key=nobody") == []
    assert "No request passes the filter." in await cached.admin.page("/requests?key=nobody")
    for wrong in ("abc", "20", "9xx", "2000"):
        response = await cached.admin.send("GET", f"/requests.json?status={wrong}", headers=running_admin.BEARER)
        assert response.status == 400
    page = await cached.admin.json("/requests.json?status=404")
    assert (page["held"], page["choices"]["status"]) == (4, ["2xx", "200", "4xx", "403", "404"])


async def test_request_links_to_its_explanation(managed: ProxyEnvironment) -> None:
    await managed.reply(A)
    (request,) = (await managed.admin.json("/requests.json"))["requests"]
    assert request["explain"] == f"/explain?request={quote(request['target'], safe='')}&application=demo%2F1"
    (explanation,) = (await managed.admin.json(request["explain"].replace("?", ".json?", 1)))["explanations"]
    assert (explanation["client"]["chosen_by"], explanation["error"]) == ("chosen by name", None)
    assert running_proxy.KEY not in request["target"]
    assert quote(json.dumps([A])) in request["target"]


async def test_hostile_text_of_clients_is_shown_as_text(managed: ProxyEnvironment) -> None:
    agent = "<script>alert(1)</script>"
    await managed.proxy.get(
        f"/v3/parts/match?apikey={running_proxy.KEY}&x=<b>&y=%1b%5b31m", headers={"User-Agent": agent}
    )
    html = await managed.admin.page("/requests")
    assert "<b>" not in html
    assert agent not in html
    assert "&lt;script&gt;alert(1)" in html
    assert "\x1b" not in html
    assert "\\x1b[31m" in html


SPELLINGS = (
    "apikey={}", "APIKEY={}", "apikey%5B%5D={}", "apikey[]={}", "apikey[0]={}", "%61pikey={}", "api%6bey={}",
    "x=1&apikey={}&apikey=other", "apikey={0}&copy={0}", "copy={0}&apikey={0}", "+apikey={}",
)  # fmt: skip


async def test_no_page_holds_an_api_key(start: StartEnvironment) -> None:
    keys = (config.ApiKeySettings(config.digest(PLANTED)),)
    async with start(admin=True, application={"apikeys": keys}, cache=CACHED) as environment:
        wrong = "wr0ngPLANTED"
        for spelling in SPELLINGS:
            for key in (PLANTED, wrong):
                for _ in range(3):  # the last is an encoded response
                    await environment.get(f"/v3/parts/match?{spelling.format(key)}&queries={quote(json.dumps([A]))}")
        await environment.get(f"/v3/{PLANTED}?apikey={PLANTED}")
        # Under another name: those that are configured are known.
        await environment.get(f"/v3/parts/match?key={PLANTED}&token=%6b3yPLANTED")
        await environment.get(f"/v3/parts/{PLANTED}")
        await environment.raw(f"GET http://{PLANTED}@octopart.com/v3/parts/match?apikey={PLANTED} HTTP/1.1".encode())
        for path in ("/", "/requests", "/upstream"):
            assert "PLANTED" not in await environment.admin.page(path)
        for path in ("/overview.json", "/requests.json", "/upstream.json"):
            assert "PLANTED" not in json.dumps(await environment.admin.json(path))
        assert (await environment.admin.json("/requests.json"))["held"] > 2 * len(SPELLINGS)


async def changes(admin: running_admin.AdminClient, path: str, shown: str) -> tuple[list[str], int]:
    """Return the ids of the pieces that a page which shows this HTML gets at its next update, and how many bytes."""
    digests = re.findall(r'data-live="([^"]+)"', shown)
    headers = running_admin.BEARER | {listener.HELD: " ".join(digests)}
    response = await admin.send("GET", path, headers=headers)
    assert digests
    body = await response.text()
    assert response.status == (200 if body else 204)
    return [name for name, _, _ in json.loads(body or "[]")], len(body)


async def test_open_page_gets_only_what_has_changed(cached: ProxyEnvironment) -> None:
    admin = cached.admin
    for number in range(150):
        await cached.reply({"mpn": f"PART-{number}", "reference": "x" * 300})
    shown = await admin.page("/requests")
    assert await changes(admin, "/requests", shown) == ([], 0)
    await cached.reply(A)
    names, size = await changes(admin, "/requests", shown)
    (request, *_) = (await admin.json("/requests.json"))["requests"]
    assert names == ["requests", f"request-{request['id']}", "held"]
    assert size < len(shown) / 10


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: str(page.name))
async def test_idle_page_gets_nothing(managed: ProxyEnvironment, page: AdminPage) -> None:
    await managed.reply(A, B)
    shown = await managed.admin.page(page.url)
    if "data-live=" in shown:
        names, _ = await changes(managed.admin, page.url, shown)
        assert [name for name in names if not name.startswith("worker-")] == []  # its memory changes
