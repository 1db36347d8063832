"""Tests of the request log line: client, address, cost and outcome; never a query string or a path."""

import io
import json
from typing import Any

import pytest
from support import running_proxy
from together.environment import ProxyEnvironment, StartEnvironment, raw, single_application, target

from proxy import config, log

ONE = {"mpn_or_sku": "SN74S74N"}
ERP = config.ApiKeySettings(config.digest("k3y-of-erp"), "erp")
OTHER = config.ApiKeySettings(config.digest("k3y-of-others"), rate=1)


def requests(log_output: io.StringIO) -> list[dict[str, Any]]:
    """The lines of requests so far, without what no test can foresee."""
    passing = {"timestamp", "request", "ms", "event"}
    lines = [
        line for line in map(json.loads, log_output.getvalue().splitlines()) if line["event"] == "request completed"
    ]
    assert all(line["ms"] >= 0 and line["request"] for line in lines)
    return [{name: value for name, value in line.items() if name not in passing} for line in lines]


MATCH = {"level": "info", "method": "GET", "route": "/v3/parts/match", "address": "127.0.0.1"}


async def test_request_log_line_has_client_cost_and_cache_status(
    start: StartEnvironment, log_output: io.StringIO
) -> None:
    async with start(application={"apikeys": (ERP, OTHER)}) as environment:
        for _ in range(3):
            await environment.get(target(ONE, key="k3y-of-erp"))
        await environment.get(target({"mpn": "NO-SUCH-PART"}, key="k3y-of-others"))
        await environment.get("/v3/brands/search?apikey=k3y-of-erp&q=texas")
    erp = {**MATCH, "status": 200, "application": "demo", "key": "erp"}
    assert requests(log_output) == [
        {**erp, "parts": 3, "cache": "miss"},
        {**erp, "parts": 0, "cache": "hit"},
        {**erp, "parts": 0, "cache": "hit"},
        {**erp, "key": "2", "parts": 0, "cache": "miss"},
        {**erp, "route": "/v3/brands/search"},
    ]


async def test_request_log_line_has_the_kind_of_error(start: StartEnvironment, log_output: io.StringIO) -> None:
    plan = single_application(part_limit=3, client_id="client-1")
    own = {"apikeys": (ERP, OTHER), "client_id": "client-1", "client_secret": config.Secret("secret-1")}
    async with start(sandbox={"applications": plan}, application=own) as environment:
        await environment.get("/v3/parts/match")
        await environment.get(target(ONE, key="wr0ng"))
        await environment.get("/v3/parts/match?apikey=k3y-of-erp&queries=[")
        await environment.get("/v3/brands/ffffffffffffffff?apikey=k3y-of-others")
        await environment.get("/v3/brands/ffffffffffffffff?apikey=k3y-of-others")
        await environment.get("/v3/k3y-of-erp/nothing")
        await environment.get("/v3/parts/match", method="PUT")
        for query in (ONE, {"mpn": "1N4007"}):
            await environment.get(target(query, key="k3y-of-erp"))
    known = {**MATCH, "application": "demo", "key": "erp"}
    brand = {**known, "key": "2", "route": "/v3/brands/{uid}"}
    assert requests(log_output) == [
        {**MATCH, "status": 400, "error": "MissingKey"},
        {**MATCH, "status": 403, "error": "ForbiddenKey"},
        {**known, "status": 400, "error": "BadRequest"},
        {**brand, "status": 404, "error": "NotFound"},
        {**brand, "status": 429, "error": "TooManyRequests"},
        {**MATCH, "route": "unknown", "status": 404, "error": "NotFound"},
        {**MATCH, "method": "PUT", "status": 405, "error": "MethodNotAllowed"},
        {**known, "status": 200, "parts": 3, "cache": "miss"},
        {**known, "status": 429, "error": "QuotaExhausted", "parts": 0, "cache": "miss"},
    ]
    assert "k3y-of-" not in log_output.getvalue()


async def test_request_log_line_has_the_kind_of_upstream_failure(
    start: StartEnvironment, unreachable_url: str, log_output: io.StringIO
) -> None:
    async with start(urls={"graphql_url": f"{unreachable_url}/graphql"}) as environment:
        await environment.get(target(ONE))
    (line,) = requests(log_output)
    assert (line["status"], line["error"], line["key"]) == (503, "UpstreamUnreachable", "1")


@pytest.mark.parametrize("level, seen", [("info", ["/v3/brands/search"]), ("debug", None)])
async def test_health_checks_are_logged_at_debug(
    environment: ProxyEnvironment, log_output: io.StringIO, level: str, seen: list[str]
) -> None:
    checks = ["/healthz"]
    log.configure(level, "json", log_output)
    async with running_proxy.running(
        running_proxy.settings(environment.sandbox.graphql_url, environment.sandbox.token_url)
    ) as proxy:
        for path in checks:
            await proxy.get(path)
        await proxy.get("/v3/brands/search")
    lines = requests(log_output)
    assert [line["route"] for line in lines] == (seen or [*checks, "/v3/brands/search"])
    assert {line["level"] for line in lines if line["route"] in checks} <= {"debug"}


async def test_unknown_method_is_not_logged(environment: ProxyEnvironment, log_output: io.StringIO) -> None:
    await raw(environment.port, b"PROPFIND /v3/parts/match HTTP/1.1")
    assert [line["method"] for line in requests(log_output)] == ["other"]
