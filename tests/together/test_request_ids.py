"""Tests of request ids: accepted or generated, in the response, on every log line, and sent upstream."""

import io
import json
import re
from typing import Any

import pytest
from support import running_proxy, scripted_upstream
from together.environment import ProxyEnvironment, StartEnvironment, raw, target

ONE = {"mpn": "SN74S74N"}
MADE = re.compile(r"[0-9a-f]{16}")


def lines(log_output: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_output.getvalue().splitlines()]


async def id_for(environment: ProxyEnvironment, **headers: str) -> str:
    """The id of a request with these headers."""
    response = await environment.proxy.get(
        target(ONE), headers={name.replace("_", "-"): each for name, each in headers.items()}
    )
    return response.headers["X-Request-Id"]


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a/b", 'a"b', "ü", "a:b", "{}"])
async def test_invalid_request_id_is_replaced(environment: ProxyEnvironment, given: str) -> None:
    assert MADE.fullmatch(await id_for(environment, X_Request_Id=given))


async def test_request_id_equal_to_the_api_key_is_replaced(environment: ProxyEnvironment) -> None:
    assert MADE.fullmatch(await id_for(environment, X_Request_Id=running_proxy.KEY))


async def test_every_log_line_of_a_request_has_its_id(
    start: StartEnvironment, unreachable_url: str, log_output: io.StringIO
) -> None:
    async with start(urls={"token_url": f"{unreachable_url}/connect/token"}) as environment:
        await id_for(environment, X_Request_Id="the-one")
    found = lines(log_output)
    assert {line["event"] for line in found} >= {"token request failed", "request failed", "request completed"}
    assert {line.get("request") for line in found} == {"the-one"}


async def test_internal_error_response_has_the_logged_request_id(
    environment: ProxyEnvironment, log_output: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("proxy.v3.parts_match.response", break_)
    reply = await environment.get(target(ONE))
    request = reply.headers["x-request-id"]
    assert reply.json["message"] == f"Internal error (request {request})"
    (line,) = [line for line in lines(log_output) if line["event"] == "internal error caught"]
    assert line["request"] == request


async def test_log_line_outside_a_request_has_no_request_id(
    environment: ProxyEnvironment, log_output: io.StringIO
) -> None:
    good = "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: the-one\r\n\r\n"
    await raw(environment.port, f"{good}GET /{{ and blanks HTTP/1.1".encode())
    refused = [line for line in lines(log_output) if line["event"] == "malformed request refused"]
    assert [line.get("request") for line in refused] == [None]


async def test_request_id_is_sent_upstream() -> None:
    async with scripted_upstream.running() as upstream:
        upstream.respond_with({"data": {"supMultiMatch": [{"hits": 0, "parts": []}]}})
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url)
        async with running_proxy.running(settings) as proxy:
            await proxy.get(target(ONE), headers={"X-Request-Id": "the-one"})
    assert {headers["x-request-id"] for headers in upstream.headers} == {"the-one"}
