"""`X-Explain: trace` with the admin token: a request is executed as usual, and its trace is the response."""

import io
import json
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import running_admin, running_proxy, scripted_v3
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, target

from proxy import config
from proxy.explain.trace import TracedRequest
from proxy.web import authentication

QUERY = {"mpn": "SN74S74N"}
ASKED = target(QUERY)
TRACED = b"X-Explain: trace"
BEARER = f"Authorization: Bearer {running_admin.TOKEN}".encode()
LIMIT = 3  # wrong keys and tokens a minute


@pytest.fixture
async def environment(start: StartEnvironment) -> AsyncIterator[ProxyEnvironment]:
    limits = {"failed_auth_per_minute": LIMIT}
    async with start(admin=True, cache={"seconds": 300}, listen=limits, application={"parts": 100}) as ready:
        yield ready


async def send(environment: ProxyEnvironment, asked: str, *fields: bytes) -> RawResponse:
    return await environment.raw(f"GET {asked} HTTP/1.1".encode(), *fields)


async def traced(environment: ProxyEnvironment, asked: str = ASKED, *fields: bytes) -> Any:
    """The trace of a request."""
    response = await send(environment, asked, TRACED, BEARER, *fields)
    assert response.status == 200, response.body
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    return response.json["trace"]


def request_lines(log_output: io.StringIO) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log_output.getvalue().splitlines()]
    return [line for line in lines if line["event"] == "request completed"]


async def test_trace_is_that_of_the_command(environment: ProxyEnvironment) -> None:
    response = await send(environment, ASKED, TRACED, BEARER)
    parsed = msgspec.json.decode(response.body, type=TracedRequest)
    assert parsed.explanation.endpoint == "/parts/match"
    assert parsed.explanation.cost is not None
    assert parsed.trace is not None
    assert (parsed.trace.status, parsed.trace.application, parsed.trace.cache) == (200, "demo", "miss")
    assert [step.name for step in parsed.trace.steps][:3] == ["authenticate", "admit", "parse"]
    usual = await send(environment, ASKED)
    assert response.json["trace"]["response"]["results"] == usual.json["results"]
    # As the command prints it: indented, and with a line end.
    assert response.body == msgspec.json.format(response.body, indent=2) + b"\n"


async def test_traced_request_uses_quota_and_cache_like_any_other(
    environment: ProxyEnvironment, log_output: io.StringIO
) -> None:
    first = await traced(environment)
    assert first["parts"] == environment.billed_parts == first["quota"]["used"]
    assert (await traced(environment))["cache"] == "hit"
    usual = await send(environment, ASKED)
    assert (usual.headers["x-cache"], usual.headers["x-parts-used"]) == ("hit", str(first["parts"]))
    assert [(line["parts"], line["cache"]) for line in request_lines(log_output)] == [
        (first["parts"], "miss"),
        (0, "hit"),
        (0, "hit"),
    ]


async def test_trace_is_never_served_from_the_cache_of_responses(
    environment: ProxyEnvironment, unparsed: list[bytes]
) -> None:
    for _ in range(4):
        assert "results" in (await environment.get(ASKED)).json
    served = len(unparsed)
    assert served
    for _ in range(4):
        assert "response" in await traced(environment)
    assert len(unparsed) == served
    assert "results" in (await environment.get(ASKED)).json


async def test_error_of_the_request_is_in_its_trace(start: StartEnvironment) -> None:
    keys = [
        config.ApiKeySettings(config.digest(key), name=key)
        for key in (running_proxy.KEY, "ended", "strict", "slow", "old")
    ]
    keys[1] = msgspec.structs.replace(keys[1], sunset=config.SunsetSettings(date(2023, 1, 1)))
    keys[2] = msgspec.structs.replace(keys[2], strict=True)
    keys[3] = msgspec.structs.replace(keys[3], rate=1)
    keys[4] = msgspec.structs.replace(keys[4], expires=date(2023, 1, 1))
    ignored = "&show[]=offers.on_order_eta"
    async with start(admin=True, application={"apikeys": tuple(keys)}) as environment:
        statuses = {
            "no key": (await traced(environment, "/v3/parts/match?queries=[]"))["status"],
            "wrong key": (await traced(environment, target(QUERY, key="wrong")))["status"],
            "ended": (await traced(environment, target(QUERY, key="ended")))["status"],
            "expired": (await traced(environment, target(QUERY, key="old")))["status"],
            "strict key": (await traced(environment, target(QUERY, key="strict", more=ignored)))["status"],
            "strict": (await traced(environment, target(QUERY, more=ignored), b"X-Strict: 1"))["status"],
            "not strict": (await traced(environment, target(QUERY, more=ignored)))["status"],
            "first": (await traced(environment, target(QUERY, key="slow")))["status"],
            "second": (await traced(environment, target(QUERY, key="slow")))["status"],
            "no such uid": (await traced(environment, f"/api/v3/parts/abc/?apikey={running_proxy.KEY}"))["status"],
        }
    assert statuses == {
        "no key": 400,
        "wrong key": 403,
        "ended": 410,
        "expired": 403,
        "strict key": 400,
        "strict": 400,
        "not strict": 200,
        "first": 200,
        "second": 429,
        "no such uid": 404,
    }


@pytest.mark.parametrize(
    "fields, status, message",
    [
        ((TRACED,), 403, "X-Explain needs the admin token beside the API key: send the header Authorization: Bearer"),
        ((TRACED, b"Authorization: Bearer wrong"), 403, "X-Explain needs the admin token"),
        ((TRACED, b"Authorization: Basic wrong"), 403, "X-Explain needs the admin token"),
        ((TRACED, b"Authorization: Bearer \xff\xfe"), 403, "X-Explain needs the admin token"),
        ((b"X-Explain: plan", BEARER), 400, "X-Explain: 'plan' is unknown; the only value is trace"),
        ((b"X-Explain:",), 400, "X-Explain: '' is unknown"),
    ],
)
async def test_request_without_the_right_to_a_trace_is_refused(
    environment: ProxyEnvironment, fields: tuple[bytes, ...], status: int, message: str
) -> None:
    response = await send(environment, ASKED, *fields)
    assert (response.status, response.json["__class__"]) == (status, "ClientErrorResponse")
    assert response.json["message"].startswith(message)
    assert environment.billed_parts == 0


async def test_wrong_tokens_are_throttled_like_wrong_api_keys(
    environment: ProxyEnvironment, log_output: io.StringIO
) -> None:
    guesses = [f"Authorization: Bearer guess-{number}".encode() for number in range(LIMIT + 1)]
    statuses = [(await send(environment, ASKED, TRACED, each)).status for each in guesses]
    assert statuses == [403] * LIMIT + [429]
    assert (await send(environment, ASKED, TRACED, BEARER)).status == 429  # a right guess is refused like a wrong one
    lines = [json.loads(line) for line in log_output.getvalue().splitlines()]
    assert [line["event"] for line in lines].count("admin token refused") == LIMIT
    environment.time.advance(60)
    assert (await traced(environment))["status"] == 200


async def test_wrong_tokens_are_throttled_where_wrong_api_keys_are_not(start: StartEnvironment) -> None:
    async with start(admin=True, listen={"failed_auth_per_minute": 0}) as environment:
        guesses = [f"Authorization: Bearer guess-{number}".encode() for number in range(authentication.TOKENS_LIMIT)]
        assert {(await send(environment, ASKED, TRACED, each)).status for each in guesses} == {403}
        assert (await send(environment, ASKED, TRACED, BEARER)).status == 429
        assert (await send(environment, ASKED)).status == 200  # API keys go on
        assert (await send(environment, ASKED.replace(running_proxy.KEY, "wrong"))).status == 403


async def test_without_admin_interface_there_are_no_traces(start: StartEnvironment) -> None:
    async with start() as environment:
        response = await send(environment, ASKED, TRACED, BEARER)
        assert (response.status, environment.billed_parts) == (403, 0)
        assert response.json["message"] == "X-Explain needs the admin interface, which is off (admin: false)"


async def test_trace_holds_no_secret(environment: ProxyEnvironment, log_output: io.StringIO) -> None:
    key, token = running_proxy.KEY, running_admin.TOKEN
    query = {**QUERY, "reference": f"{key} {token}"}
    asked = f"{target(query)}&password={key}&q={token}"
    response = await send(environment, asked, TRACED, BEARER)
    secret = environment.sandbox.default_application.client_secret
    for planted in (key, token, secret):
        assert planted.encode() not in response.body
        assert planted not in log_output.getvalue()
    assert response.json["trace"]["status"] == 200


async def test_traced_and_strict_requests_are_not_forwarded_or_shadowed(
    start: StartEnvironment, tmp_path: Path
) -> None:
    """With `shadow.response: baseline`, where the old service responds to all others."""
    application = {"shadow": config.ApplicationShadowSettings(share=1.0, response="baseline")}
    async with scripted_v3.running() as baseline:
        shadow = {"baseline_url": baseline.url, "rate": 0}
        async with start(
            admin=True, application=application, shadow=shadow, store=f"sqlite:{tmp_path}/state.sqlite"
        ) as environment:
            assert (await traced(environment))["status"] == 200
            strict = await send(environment, target(QUERY, more="&show[]=flavor"), b"X-Strict: 1")
            assert strict.status == 400
            assert "show[]=flavor" in strict.json["message"]
        assert baseline.requests == []
