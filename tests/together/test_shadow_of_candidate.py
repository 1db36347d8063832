"""Tests of shadowing while the old service serves clients: its responses are unchanged, the candidate is compared."""

import asyncio
import gzip
import json
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

import pytest
from support import scripted_v3
from together.environment import StartEnvironment, target
from together.shadowing import Shadowed, seen

from proxy import config

ONE = {"mpn": "SN74S74N"}
ASKED = target(ONE)
TODAY = "2023-11-14"


@pytest.fixture
def relayed(shadowed: Callable[..., Any]) -> Callable[..., Any]:
    """An environment whose application is answered by the old service; further fields are `shadow`'s."""
    return partial(shadowed, "baseline")


async def test_baseline_response_is_passed_through_unchanged(
    relayed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    body = b'{ "odd" :  1.50,"a":[ ] }\n'
    baseline.behavior = scripted_v3.responding(
        body,
        418,
        **{
            "Content-Type": "text/x-json; charset=latin-1",
            "X-Own": "yes",
            "Retry-After": "7",
            "Connection": "X-Hop",
            "X-Hop": "no",
        },
    )
    async with relayed(share=0.0) as found:
        response = await found.environment.get(
            "/api/v3/parts/match/?apikey=EXAMPLE_KEY&queries=[{%22mpn%22:%22a|b%22}]&x=%2f"
        )
        assert (response.status, response.body) == (418, body)
        assert response.headers["content-type"] == "text/x-json; charset=latin-1"
        assert (response.headers["x-own"], response.headers["retry-after"]) == ("yes", "7")
        assert response.headers["x-request-id"]
        assert "x-hop" not in response.headers
        assert baseline.requests == ["/v3/parts/match/?apikey=EXAMPLE_KEY&queries=[{%22mpn%22:%22a|b%22}]&x=%2f"]
        assert found.environment.billed_parts == 0
        assert b'route="/api/v3/parts/match/",status="418"' in (await found.environment.get("/metrics")).body


async def test_sunset_applies_to_clients_of_the_baseline(relayed: Any, baseline: scripted_v3.ScriptedV3Service) -> None:
    async with relayed(share=0.0, application={"sunset": config.SunsetSettings(date(2023, 11, 14))}) as found:
        response = await found.environment.get(ASKED)
        assert (response.status, response.headers["sunset"]) == (200, "Tue, 14 Nov 2023 23:59:59 GMT")
        found.environment.time.advance(6400)
        response = await found.environment.get(ASKED)
        assert (response.status, response.headers["sunset"]) == (410, "Tue, 14 Nov 2023 23:59:59 GMT")
    assert baseline.requests == [ASKED]


async def test_baseline_service_receives_the_request_unchanged(
    relayed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    async with relayed(share=0.0) as found:
        response = await found.environment.raw(b"GET /v3/parts/search?q=[a|b]&&apikey=EXAMPLE_KEY HTTP/1.1")
        assert response.status == 200
        response = await found.environment.raw(b"GET http://old.example/api/v3/parts/abc?apikey=EXAMPLE_KEY HTTP/1.1")
        assert response.status == 200
    assert baseline.requests == ["/v3/parts/search?q=[a|b]&&apikey=EXAMPLE_KEY", "/v3/parts/abc?apikey=EXAMPLE_KEY"]


async def test_baseline_response_is_compressed_on_request(
    relayed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    body = json.dumps(["x" * 5000]).encode()
    baseline.behavior = scripted_v3.responding(
        gzip.compress(body), **{"Content-Encoding": "gzip", "Content-Type": "application/json"}
    )
    async with relayed(share=0.0) as found:
        line = f"GET {ASKED} HTTP/1.1".encode()
        whole = await found.environment.raw(line)
        assert (whole.body, "content-encoding" in whole.headers) == (body, False)
        packed = await found.environment.raw(line, b"Accept-Encoding: gzip")
        assert packed.headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed.body) == body


async def test_head_requests_and_redirects_are_passed_through(
    relayed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    baseline.behavior = scripted_v3.responding({}, 302, Location="http://elsewhere.example/")
    async with relayed(share=0.0) as found:
        response = await found.environment.proxy.get(ASKED, method="HEAD", allow_redirects=False)
    assert (response.status, response.headers["Location"]) == (302, "http://elsewhere.example/")


@pytest.mark.parametrize(
    "does", [scripted_v3.abort_connection, scripted_v3.truncate_response], ids=["crashes", "breaks off"]
)
async def test_failing_baseline_service_gives_a_v3_error(
    relayed: Any, baseline: scripted_v3.ScriptedV3Service, does: scripted_v3.Behavior
) -> None:
    baseline.behavior = does
    async with relayed() as found:
        response = await found.environment.get(ASKED)
        assert (response.status, response.json["__class__"]) == (503, "ServerErrorResponse")
        assert response.json["message"].startswith("the old service ")
        assert baseline.url not in response.body.decode()
        await found.counted(1, "errors", side="baseline")
        assert found.environment.billed_parts == 0


async def test_stalled_baseline_request_ends_at_the_time_limit(
    relayed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    baseline.behavior = baseline.stall
    async with relayed(upstream={"timeouts": config.TimeoutSettings(total_seconds=0.2)}) as found:
        response = await found.environment.get(ASKED)
        assert (response.status, response.json["message"]) == (
            503,
            "the old service gives no complete response within 0.2 s",
        )


async def test_unknown_api_key_is_refused_by_the_proxy(relayed: Any, baseline: scripted_v3.ScriptedV3Service) -> None:
    async with relayed() as found:
        statuses = [
            (await found.environment.get(f"/v3/parts/match?{key}")).status for key in ("apikey=other", "", "q=1")
        ]
    assert statuses == [403, 400, 400]
    assert baseline.requests == []


async def test_candidate_is_executed_and_compared(
    relayed: Any, baseline: scripted_v3.ScriptedV3Service, start: StartEnvironment
) -> None:
    async with start() as environment:
        baseline.behavior = scripted_v3.responding(
            (await environment.get(ASKED)).body, **{"Content-Type": "application/json"}
        )
    async with relayed() as found:
        first = await found.environment.get(ASKED)
        assert "x-parts-cost" not in first.headers
        await found.counted(1, "compared", outcome="equivalent")
        assert found.environment.billed_parts == 3
        baseline.behavior = scripted_v3.responding({"__class__": "PartsMatchResponse"})
        await found.environment.get(ASKED)
        await found.counted(1, "compared", outcome="different")
        assert (await found.noted(2)).spent == 6
        assert len(baseline.requests) == 2  # never for the comparison's sake: its responses are the clients'
        day = [state for state in await found.store.all_usage() if state.entry == ("shadow:", TODAY)]
        assert [(state.used, state.reserved) for state in day] == [(6, 0)]


async def test_daily_part_budget_is_never_exceeded(relayed: Any, baseline: scripted_v3.ScriptedV3Service) -> None:
    async with relayed(parts=7) as found:
        for number in range(9):
            assert (await found.environment.get(ASKED)).status == 200
            await counted_in_all(found, number + 1)
        assert (await found.count("requests"), found.environment.billed_parts) == (2, 6)  # 3 each; one is left
        assert await found.count("dropped", reason="parts") == 7
        found.environment.time.advance(86_400)
        await found.environment.get(ASKED)
        await found.counted(3, "requests")
        assert len(baseline.requests) == 10


async def counted_in_all(found: Shadowed, requests: int) -> None:
    async with asyncio.timeout(60):
        while (
            await found.count("compared", outcome="different") + await found.count("dropped", reason="parts") < requests
        ):
            await asyncio.sleep(0.02)


async def test_candidate_failure_affects_no_response(
    relayed: Any, baseline: scripted_v3.ScriptedV3Service, unreachable_url: str
) -> None:
    baseline.behavior = scripted_v3.responding({"fine": True})
    async with relayed(urls={"graphql_url": f"{unreachable_url}/graphql"}) as found:
        for _ in range(5):
            response = await found.environment.get(ASKED)
            assert (response.status, response.json) == (200, {"fine": True})
        await found.counted(5, "errors", side="candidate")
        assert seen(await found.noted(5)) == 5


async def test_other_methods_and_applications_are_not_forwarded(
    relayed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    async with relayed() as found:
        assert (await found.environment.get(ASKED, "POST")).status == 405
        assert (await found.environment.get(ASKED, "OPTIONS")).status == 204
        assert (await found.environment.get("/healthz")).status == 200
    assert baseline.requests == []


async def test_shadow_requests_do_not_count_against_client_rate_limits(
    relayed: Any, baseline: scripted_v3.ScriptedV3Service
) -> None:
    async with relayed(application={"rate": 1}) as found:
        for number in range(3):
            assert (await found.environment.get(ASKED)).status == 200
            await found.counted(number + 1, "requests")
        await found.counted(2, "errors", side="candidate")  # the new way would have refused them
