"""What is recorded of requests: their log line and id without a secret, and who calls, counted in the store."""

import hashlib
import html
import io
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from acceptance.test_secrets import spellings
from support import running_proxy, scripted_upstream
from together.environment import ProxyEnvironment, StartEnvironment, raw, single_application, target

from proxy import config, log
from proxy.gateway.recording import OTHERS
from proxy.kit import clock
from proxy.model import Seen
from proxy.store import open as opening
from proxy.store.protocol import CLIENT, DAY_SECONDS, UNKNOWN_KEY
from proxy.upstream import classify

ONE = {"mpn_or_sku": "SN74S74N"}
KEY, SECRET, CLIENT_ID = "k3yPLANTED", "s3cretPLANTED", "cl1entPLANTED"
OTHER_KEY = 'oth3r"é+PLANTED'  # with characters that every encoding writes in its own way
ERP, OTHER = config.ApiKeySettings(config.digest(KEY), "erp"), config.ApiKeySettings(config.digest(OTHER_KEY), rate=1)
OWN = {"apikeys": (ERP, OTHER), "client_id": config.ClientId(CLIENT_ID), "client_secret": config.Secret(SECRET)}
PLAN = single_application(part_limit=3, client_id=CLIENT_ID, client_secret=SECRET)
MATCH = {"level": "info", "method": "GET", "route": "/v3/parts/match", "address": "127.0.0.1"}


def lines(log_output: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_output.getvalue().splitlines()]


def requests(log_output: io.StringIO) -> list[dict[str, Any]]:
    """The lines of requests so far, without what no test can foresee."""
    found = [line for line in lines(log_output) if line["event"] == "request completed"]
    assert all(line["ms"] >= 0 and line["request"] for line in found)
    passing = {"timestamp", "request", "ms", "event"}
    return [{name: value for name, value in line.items() if name not in passing} for line in found]


async def test_line_has_client_cost_source_and_kind_of_error(start: StartEnvironment, log_output: io.StringIO) -> None:
    async with start(sandbox={"applications": PLAN}, application=OWN) as environment:
        await environment.get("/v3/parts/match")
        await environment.get(target(ONE, key="wr0ng"))
        await environment.get(f"/v3/parts/match?apikey={KEY}&queries=[")
        for _ in range(2):
            await environment.get(f"/v3/brands/ffffffffffffffff?apikey={quote(OTHER_KEY)}")
        await environment.get(f"/v3/brands/search?apikey={KEY}&q=texas")
        await environment.get(f"/v3/{KEY}/nothing")
        await environment.get("/v3/parts/match", method="PUT")
        await raw(environment.port, b"PROPFIND /v3/parts/match HTTP/1.1")
        await environment.get(target(ONE, key=KEY), "HEAD")
        for query in (ONE, ONE, {"mpn": "1N4007"}):
            await environment.get(target(query, key=KEY))
    known = {**MATCH, "application": "demo", "key": "erp"}
    brand = {**known, "key": "2", "route": "/v3/brands/{uid}"}
    assert requests(log_output) == [
        {**MATCH, "status": 400, "error": "MissingKey"},
        {**MATCH, "status": 403, "error": "ForbiddenKey"},
        {**known, "status": 400, "error": "BadRequest"},
        {**brand, "status": 404, "error": "NotFound"},
        {**brand, "status": 429, "error": "TooManyRequests"},
        {**known, "status": 200, "route": "/v3/brands/search"},
        {**MATCH, "route": "unknown", "status": 404, "error": "NotFound"},
        {**MATCH, "method": "PUT", "status": 405, "error": "MethodNotAllowed"},
        {**MATCH, "method": "other", "status": 405, "error": "MethodNotAllowed"},
        {**known, "method": "HEAD", "status": 200, "parts": 0, "cache": "miss"},
        {**known, "status": 200, "parts": 3, "cache": "miss"},
        {**known, "status": 200, "parts": 0, "cache": "hit"},
        {**known, "status": 429, "error": "QuotaExhausted", "parts": 0, "cache": "miss"},
    ]
    assert "PLANTED" not in log_output.getvalue()


@pytest.mark.parametrize("level, seen", [("info", ["/v3/brands/search"]), ("debug", ["/healthz", "/v3/brands/search"])])
async def test_health_checks_are_logged_at_debug(
    start: StartEnvironment, log_output: io.StringIO, level: str, seen: list[str]
) -> None:
    log.configure(level, "json", log_output)
    async with start() as environment:
        for path in ("/healthz", "/v3/brands/search"):
            await environment.get(path)
    assert [line["route"] for line in requests(log_output)] == seen


async def test_id_of_a_client_is_replaced_where_it_is_none(environment: ProxyEnvironment) -> None:
    for given in ("", "x" * 65, "a b", "a/b", 'a"b', "ü", "a:b", "{}", running_proxy.KEY):
        response = await environment.proxy.get(target(ONE), headers={"X-Request-Id": given})
        assert re.fullmatch(r"[0-9a-f]{16}", response.headers["X-Request-Id"]), given


async def test_every_line_of_a_request_has_its_id_and_no_other_line(
    start: StartEnvironment, unreachable_url: str, log_output: io.StringIO
) -> None:
    async with start(urls={"token_url": f"{unreachable_url}/connect/token"}) as environment:
        await environment.proxy.get(target(ONE), headers={"X-Request-Id": "the-one"})
        good = "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: the-one\r\n\r\n"
        await raw(environment.port, f"{good}GET /{{ and blanks HTTP/1.1".encode())
    events = {line["event"] for line in lines(log_output) if line.get("request") == "the-one"}
    assert events >= {"token request failed", "request failed", "request completed"}
    assert {line["event"] for line in lines(log_output) if "request" not in line} == {"malformed request refused"}
    assert {line["error"] for line in requests(log_output)} == {"UpstreamUnreachable"}


async def test_internal_error_has_the_id_that_is_logged_and_no_secret(
    start: StartEnvironment, log_output: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_(*arguments: object) -> None:
        raise RuntimeError(f"{KEY} {SECRET} {arguments}")

    async with start(sandbox={"applications": PLAN}, application=OWN) as environment:
        monkeypatch.setattr("proxy.v3.actions.V3Actions.match_response", break_)
        reply = await environment.get(target(ONE, key=KEY))
    request = reply.headers["x-request-id"]
    assert (reply.status, reply.json["message"]) == (500, f"Internal error (request {request})")
    assert request in {line["request"] for line in lines(log_output) if line["event"] == "internal error caught"}
    assert "RuntimeError" in log_output.getvalue()
    assert "PLANTED" not in log_output.getvalue() + repr(reply)


async def test_upstream_gets_the_id_and_its_messages_are_logged_without_api_keys(log_output: io.StringIO) -> None:
    """Also not the beginning of one in a message that is cut."""
    quoted, plain = (html.escape(OTHER_KEY, quote=is_quoted) for is_quoted in (True, False))
    planted = sorted((spellings(KEY) | spellings(OTHER_KEY) | {plain}) - {quoted})
    messages = [*(f"Unknown: '{key}'." for key in planted), f"Unknown: {'x ' * 93}{KEY}"]
    empty = {"supMultiMatch": [{"hits": 0, "parts": []}]}
    async with scripted_upstream.running() as upstream:
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, application=OWN)
        async with running_proxy.running(settings) as proxy:
            for number, message in enumerate([*messages, f"{classify.FAILURE_MESSAGE}: {' '.join(planted)}"]):
                data = empty if number < len(messages) else None
                upstream.respond_with({"errors": [{"message": message}], "data": data})
                await proxy.get(target({"mpn": f"A{number}"}, key=KEY), headers={"X-Request-Id": "the-one"})
    assert {headers["x-request-id"] for headers in upstream.headers} == {"the-one"}
    assert "partial data received" in log_output.getvalue()
    assert f"UpstreamFault: the GraphQL service failed: {classify.FAILURE_MESSAGE}: …" in log_output.getvalue()
    assert [text for text in (*planted, "k3yP", "oth3r") if text in log_output.getvalue()] == []


QUERY = {"mpn": "SN74S74N"}
SEARCH = "/v3/brands/search?apikey=EXAMPLE_KEY&q=texas"
OLD, STRANGE = "an-old-key-of-erp", "4b1d"
START = clock.ManualClock().now()
DAY = int(START // DAY_SECONDS)


async def stored(url: str, kind: str = CLIENT) -> list[Seen]:
    """Return the rows of a store; after the service has ended, all is in it."""
    store = await opening.open_store(config.StoreUrl(url), clock.ManualClock(), worker="test", cache_bytes=2**20)
    try:
        return await store.seen(kind, 0)
    finally:
        await store.aclose()


async def send(environment: ProxyEnvironment, key: str, *headers: str) -> int:
    line = f"GET {target(QUERY, key=key)} HTTP/1.1"
    return (await environment.raw(line.encode(), *(each.encode() for each in headers))).status


async def graphql(environment: ProxyEnvironment, key: str) -> int:
    """Send a GraphQL document with a key as its access token; return the status."""
    headers = {"Authorization": f"Bearer {key}", "User-Agent": "gql/3"}
    sent = {"query": "{ __typename }"}
    return (await environment.proxy.get("/graphql", method="POST", json=sent, headers=headers)).status


async def test_requests_of_all_dialects_are_counted_with_their_losses(start: StartEnvironment, tmp_path: Path) -> None:
    url, match = f"sqlite:{tmp_path}/state.sqlite", target(QUERY)
    async with start(store=url) as environment:
        for path in (match, match, f"/api{match}", "/v3/parts/search?apikey=wrong&q=texas", "/healthz", "/"):
            await environment.get(path)
        await environment.get("/v3/sellers/2c3be9310496fffc?apikey=EXAMPLE_KEY&show[]=has_ecommerce")
        assert await graphql(environment, "EXAMPLE_KEY") == 200
    counts = {(each.key, each.endpoint, bool(each.detail)): each.requests for each in await stored(url)}
    assert counts == {
        ("1", "parts/match", False): 3,
        ("", "parts/search", False): 1,
        ("1", "sellers/{uid}", True): 1,
        ("1", "graphql", False): 1,
    }


async def test_hostile_user_agents_are_bounded_text_without_the_key(start: StartEnvironment, tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    agents = [b"x" * 5_000, "bidi \u202e \u00e9 ".encode() + b"\xff\xfe", b"<b>", b"erp (key EXAMPLE_KEY)"]
    agents += [b"agent/%d" % number for number in range(120)]
    async with start(store=f"sqlite:{file}") as environment:
        for agent in agents:
            reply = await environment.raw(f"GET {SEARCH} HTTP/1.1".encode(), b"User-Agent: " + agent)
            assert reply.status == 200
    names = {count.user_agent: count.requests for count in await stored(f"sqlite:{file}")}
    assert {"<b>", "erp (key …)"} < names.keys()
    assert max(map(len, names)) == 200
    assert all(name.isprintable() for name in names)
    assert (len(names), names[OTHERS]) == (101, 24)
    assert b"EXAMPLE_KEY" not in file.read_bytes()


async def test_no_request_is_lost_or_counted_twice_over_restarts_and_services_and_without_the_store(
    start: StartEnvironment, tmp_path: Path, redis_server: Any
) -> None:
    file = tmp_path / "state.sqlite"
    for _ in range(2):
        async with start(store=f"sqlite:{file}") as environment:
            assert (await environment.get(SEARCH)).status == 200
            away = file.rename(tmp_path / "away")
            assert (await environment.get(SEARCH)).status == 200
            away.rename(file)
    assert [count.requests for count in await stored(f"sqlite:{file}")] == [4]
    async with start(store=redis_server.url) as one, start(store=redis_server.url) as other:
        for environment in (one, other, one):
            await environment.get(SEARCH)
    assert [count.requests for count in await stored(redis_server.url)] == [3]


async def test_unknown_keys_are_recorded(start: StartEnvironment, tmp_path: Path, time: clock.ManualClock) -> None:
    file = tmp_path / "state.sqlite"
    listen = {"trusted_proxies": (config.secret.Network("127.0.0.0/8"),), "failed_auth_per_minute": 2}
    async with start(store=f"sqlite:{file}", listen=listen) as environment:
        assert await send(environment, OLD, f"User-Agent: erp/1 {OLD}", "X-Forwarded-For: 192.0.2.1") == 403
        time.advance(60)
        assert await send(environment, OLD, "X-Forwarded-For: 192.0.2.2") == 403
        time.advance(1)
        assert [await graphql(environment, STRANGE) for _ in range(4)] == [
            401,
            401,
            429,
            429,
        ]  # the last are not looked up
        # Known keys, and requests without one, are not among them.
        assert await send(environment, "EXAMPLE_KEY", "X-Forwarded-For: 192.0.2.3") == 200
        assert await send(environment, "") == 400
    digests = [hashlib.sha256(key.encode()).hexdigest() for key in (STRANGE, OLD)]
    assert await stored(f"sqlite:{file}", UNKNOWN_KEY) == [
        Seen(UNKNOWN_KEY, DAY, "", digests[0], "127.0.0.1", "gql/3", "", 2, START + 61),
        Seen(UNKNOWN_KEY, DAY, "", digests[1], "192.0.2.2", "", "", 1, START + 60),
        Seen(UNKNOWN_KEY, DAY, "", digests[1], "192.0.2.1", "erp/1 …", "", 1, START),
    ]
    assert OLD.encode() not in file.read_bytes()
