"""`/status` on the operators' port: what it holds, and who may read it."""

import json
import os
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from support import running_admin, running_proxy, scripted_upstream
from support.running_admin import AdminClient
from support.scripted_upstream import ScriptedResponse, ScriptedUpstream
from together.environment import target

from proxy import config
from proxy.kit import clock
from proxy.model import Seen
from proxy.store.protocol import UNKNOWN_KEY, Account

TOKEN = config.Secret(running_admin.TOKEN)
BEARER = {"Authorization": f"Bearer {running_admin.TOKEN}"}
GOOD: dict[str, Any] = {"data": {"supMultiMatch": [{"hits": 0, "error": None, "parts": []}]}}

Start = Callable[..., AbstractAsyncContextManager[AdminClient]]


@pytest.fixture
async def upstream() -> AsyncIterator[ScriptedUpstream]:
    async with scripted_upstream.running() as started:
        started.respond_with(GOOD)
        yield started


@pytest.fixture
def serve(upstream: ScriptedUpstream, time: clock.ManualClock) -> Start:
    """Serve in front of the scripted upstream: `serve(admin, **settings)`."""

    def start(
        admin: config.AdminSettings = running_admin.SETTINGS, **changes: Any
    ) -> AbstractAsyncContextManager[AdminClient]:
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, **changes)
        return running_admin.running(settings, time, admin)

    return start


async def ask(admin: AdminClient, key: str = running_proxy.KEY, **headers: str) -> int:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return (await admin.proxy.get(target({"mpn": "X"}, key=key), headers=names)).status


async def test_status_has_usage_token_and_readiness(serve: Start, time: clock.ManualClock) -> None:
    async with serve(application={"parts": 1000}) as admin:
        assert await ask(admin) == 200
        time.advance(60)
        shown = await admin.status()
    assert (shown["ready"], shown["reasons"], shown["store_failure"]) == (True, [], None)
    rows = [(row["application"], row["key"], row["limit"]) for row in shown["usage"]]
    assert rows == [("demo", None, 1000), ("demo", "1", None)]
    assert shown["tokens"] == [{"application": "demo", "expires_at": "2023-11-15T22:13:20Z", "refusal": None}]
    assert shown["breakers"] == {"graphql": "closed"}
    assert (shown["uptime_seconds"], shown["failures"], shown["unknown_keys"]) == (60.0, [], [])


async def test_clients_and_unknown_keys_are_those_of_the_store(serve: Start) -> None:
    async with serve() as admin:
        await ask(admin, User_Agent="erp/1")
        assert await ask(admin, "A_KEY_OF_NOBODY", User_Agent="bom/2 A_KEY_OF_NOBODY") == 403
        await admin.seen.write()
        shown = await admin.status()
    clients = {(each["application"], each["key"], *each["endpoints"], each["user_agent"]) for each in shown["clients"]}
    assert ("demo", "1", "parts/match", "erp/1") in clients
    (unknown,) = shown["unknown_keys"]
    assert unknown["fingerprint"] == config.digest("A_KEY_OF_NOBODY").reveal()[:4]
    assert (unknown["requests"], unknown["last_seen"]) == (1, "2023-11-14T22:13:20Z")
    assert "A_KEY_OF_NOBODY" not in json.dumps(shown)
    assert shown["failures"] == []  # anybody can send any number of wrong keys


async def test_page_says_that_nothing_is_known_while_the_store_cannot_be_read(serve: Start, tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    async with serve(store=f"sqlite:{file}") as admin:
        await ask(admin)
        await admin.seen.write()
        os.truncate(file, 0)
        reply = await admin.send("GET", "/status", headers=BEARER | {"Accept": "text/html"})
        page = await reply.text()
    assert (reply.status, ">Not ready</h1>" in page) == (200, True)
    assert f"{file} or its write-ahead log was truncated" in page
    assert page.count("Unknown while the store cannot be read.") == 4
    assert "Nobody" not in page


async def test_key_that_an_application_has_by_now_is_not_unknown(serve: Start) -> None:
    row = Seen(UNKNOWN_KEY, 19_675, "", config.digest("A_NEW_KEY").reveal(), "::1", "", "", 1, 0.0)
    async with serve(application={"apikeys": (config.ApiKeySettings(config.digest("A_NEW_KEY")),)}) as admin:
        await admin.gateway.process.store.add_seen("1", [row, row._replace(key="other")])
        assert [each["fingerprint"] for each in (await admin.status())["unknown_keys"]] == ["othe"]


async def test_failure_is_explained_without_its_api_key(serve: Start) -> None:
    more = "&show[]=offers&password=hunter2&slice[offers]=x"
    async with serve() as admin:
        await admin.proxy.get(target({"mpn": "X", "limit": 2}, more=more), headers={"X-Request-Id": "the-one"})
        await admin.seen.write()
        [plain] = (await admin.status())["failures"]
        [explained] = (await admin.status("?explain=the-one"))["failures"]
    assert plain["message"] == "slice[offers] must be a range like [0:5], not 'x'"
    assert plain["target"].startswith("/v3/parts/match?queries=[{%22mpn%22:")
    assert not {running_proxy.KEY, "hunter2"} & set(re.split("[=&]", plain["target"]))
    assert "explanation" not in plain
    assert (explained["explanation"]["status"], explained["explanation"]["error"]) == (400, plain["message"])


async def test_upstream_failure_is_explained_by_what_it_was_asked(serve: Start, upstream: ScriptedUpstream) -> None:
    upstream.respond_with(ScriptedResponse(b"broken", 500))
    async with serve() as admin:
        await ask(admin, X_Request_Id="the-one")
        url = "/graphql?query=%7BsupManufacturers%7Bname%7D%7D"
        await admin.proxy.get(url, headers={"token": running_proxy.KEY, "X-Request-Id": "no-v3"})
        await admin.seen.write()
        [failure] = [each for each in (await admin.status("?explain=the-one"))["failures"] if "explanation" in each]
        [other] = [each for each in (await admin.status("?explain=no-v3"))["failures"] if "explanation" in each]
    found = failure["explanation"]
    assert (found["client"], found["parts_max"]) == ("demo/1", 3)
    expected = {"application": "demo", "key": "1", "status": 502, "route": "/v3/parts/match", "method": "GET"}
    assert failure.items() >= expected.items()
    assert [each["variables"]["queries"] for each in found["operations"]] == [[{"mpn": "X", "limit": 3, "start": 0}]]
    assert "HTTP 500" in other["message"]
    assert (other["target"], other["explanation"]) == ("", {})


@pytest.mark.parametrize(
    "limit, period, used, rate, ends_on",
    [
        # 14 November, 22:13: in the last seven days 6.93 have passed, in today 0.93.
        (1000, "month", {14: 100}, 100.0, "2023-11-23"),
        (1000, "month", {8: 100, 14: 100}, 28.9, None),  # 27 days: December begins before
        (1000, "lifetime", {8: 100, 14: 100}, 28.9, "2023-12-12"),
        (1000, "month", {7: 900}, 0.0, None),  # eight days ago
        (1000, "month", {14: 1000}, 1000.0, "2023-11-14"),
        (None, "month", {14: 100}, 100.0, None),
    ],
)
async def test_usage_has_its_days_and_the_day_on_which_the_rest_ends(
    serve: Start, limit: int | None, period: str, used: dict[int, int], rate: float, ends_on: str | None
) -> None:
    parts = "unlimited" if limit is None else limit
    async with serve(application={"parts": parts, "period": period}) as admin:
        [whole, _] = admin.gateway.applications.charged.values()
        for day, number in used.items():
            await admin.gateway.process.store.set_usage(Account(whole.id, f"2023-11-{day:02}"), number)
        present = "2023-11" if period == "month" else "lifetime"
        await admin.gateway.process.store.set_usage(Account(whole.id, present), sum(used.values()))
        [row, key] = (await admin.status())["usage"]
    assert row["days"] == {f"2023-11-{day:02}": number for day, number in used.items()}
    assert (row["parts_a_day"], row["ends_on"]) == (rate, ends_on)
    assert (key["days"], key["parts_a_day"], key["ends_on"]) == ({}, 0.0, None)


async def test_browsers_get_a_page_at_the_same_address(serve: Start) -> None:
    async with serve(config.AdminSettings()) as admin:
        for accept, kind in (
            (None, "application/json"),
            ("*/*", "application/json"),
            ("application/json, text/html;q=0.5", "application/json"),
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html"),
        ):
            response = await admin.send("GET", "/status", headers={} if accept is None else {"Accept": accept})
            assert (response.status, response.content_type, response.headers["Vary"]) == (200, kind, "Accept")


@pytest.mark.parametrize(
    "settings, allowed, refused",
    [
        # A page that a browser on this machine shows may have given its own name this address.
        (
            {},
            [{}, {"Host": "localhost:8088"}, {"Host": "[::1]"}],
            [({"Host": "attacker.example"}, "reached at 127.0.0.1 or localhost")],
        ),
        (
            {"host": "0.0.0.0"},
            [],
            [({}, "set admin.token: 0.0.0.0 is not a loopback address"), (BEARER, "set admin.token")],
        ),
        (
            {"token": TOKEN},
            [BEARER, {"Authorization": aiohttp.encode_basic_auth("ada", running_admin.TOKEN)}],
            [
                ({}, "Authorization: Bearer"),
                ({"Authorization": f"Bearer {running_admin.TOKEN}x"}, "Authorization: Bearer"),
                ({"Authorization": "Bearer \udcff"}, "Authorization: Bearer"),
                ({"Authorization": aiohttp.encode_basic_auth(running_admin.TOKEN, "x")}, "password"),
                ({"Authorization": f"Basic {running_admin.TOKEN}"}, "password"),
            ],
        ),
        ({"token": TOKEN, "host": "0.0.0.0"}, [{**BEARER, "Host": "v3.example"}], []),
    ],
)
async def test_token_is_needed_unless_the_port_is_on_loopback(
    serve: Start, settings: dict[str, Any], allowed: list[dict[str, str]], refused: list[tuple[dict[str, str], str]]
) -> None:
    async with serve(config.AdminSettings(**settings)) as admin:
        for headers in allowed:
            assert (await admin.send("GET", "/status", headers=headers)).status == 200
        for headers, message in refused:
            response = await admin.send("GET", "/status", headers=headers)
            assert (response.status, "Basic" in response.headers["WWW-Authenticate"]) == (401, True)
            assert message in (await response.json())["message"]
        for path in ("/healthz", "/metrics"):
            assert (await admin.send("GET", path)).status == 200


async def test_operators_port_serves_nothing_else(serve: Start) -> None:
    async with serve() as admin:
        paths = ("/", "/v3/parts/match", "/keys", "/" * 20_000)
        assert [(await admin.send("GET", path)).status for path in paths] == [404, 404, 404, 404]


async def test_browser_at_the_root_is_shown_what_this_is_and_where_to_go_on(serve: Start) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    async with serve() as admin:
        page = await admin.proxy.get("/", headers=browser)
        text = await page.text()
        assert (page.status, page.content_type, page.headers["Vary"]) == (200, "text/html", "Accept")
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        for word in ("REST API v3", "/v3/parts/match?apikey=YOUR_APIKEY", "/graphql", "/api/v4/endpoint", "admin.port"):
            assert word in text
        assert running_proxy.KEY not in text
        head = await admin.proxy.get("/", method="HEAD", headers=browser)
        assert (head.status, head.content_type, await head.text()) == (200, "text/html", "")
        for method, path, headers in (("GET", "/", {}), ("POST", "/", browser), ("GET", "/v3", browser)):
            refused = await admin.proxy.get(path, method=method, headers=headers)
            assert (refused.status, (await refused.json())["__class__"]) == (404, "ClientErrorResponse")
        led = await admin.send("GET", "/", headers={**browser, **BEARER})
        assert (led.status, str(led.url)) == (200, f"{admin.url}/status")
        assert (await admin.send("GET", "/", headers=BEARER)).status == 404
