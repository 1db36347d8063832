"""Sunset of an API key: headers of every response until its last day has passed, then a 410, cached or not."""

import asyncio
import io
import json
from datetime import date

import pytest
from support import running_proxy
from together.environment import StartEnvironment, target

import nexar_sandbox
from proxy import config

PAGE = "https://wiki.example/v3"
SUNSET = config.SunsetSettings(date(2023, 11, 14), PAGE)  # the tests begin on that day, at 22:13:20
REMAINING = 6400  # seconds until it ends
ANNOUNCED = {
    "deprecation": "@1648684800",
    "link": f'<{PAGE}>; rel="deprecation", <{PAGE}>; rel="sunset"',
    "sunset": "Tue, 14 Nov 2023 23:59:59 GMT",
}
GONE = f"v3 is not served to this API key since its sunset on 2023-11-14; see {PAGE}"
MATCH = target({"mpn": "SN74S74N"})


def key(text: str = running_proxy.KEY, **fields: object) -> config.ApiKeySettings:
    return config.ApiKeySettings(config.digest(text), **fields)  # type: ignore[arg-type]


def announced(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name in ANNOUNCED}


@pytest.mark.parametrize(
    "path, status",
    [
        (MATCH, 200),
        (f"{MATCH}&callback=handle", 200),
        (f"{MATCH}&pretty_print=1", 200),
        ("/v3/brands/search?apikey=EXAMPLE_KEY&q=texas", 200),
        ("/v3/parts/match?apikey=EXAMPLE_KEY&queries=[", 400),
        ("/v3/parts/match?apikey=EXAMPLE_KEY&queries=[&suppress_status_codes=1", 200),
        ("/v3/brands/ffffffffffffffff?apikey=EXAMPLE_KEY", 404),
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_every_response_to_the_key_announces_its_sunset(
    start: StartEnvironment, path: str, status: int, method: str
) -> None:
    async with start(application={"sunset": SUNSET}) as environment:
        response = await environment.get(path, method)
    assert (response.status, announced(response.headers)) == (status, ANNOUNCED)


async def test_requests_get_410_from_midnight_after_the_last_day(
    start: StartEnvironment, log_output: io.StringIO
) -> None:
    keys = (key(sunset=SUNSET, name="erp"), key("another"))
    async with start(application={"apikeys": keys}) as environment:
        environment.time.advance(REMAINING - 1)
        assert (await environment.get(MATCH)).status == 200
        billed = environment.billed_parts
        environment.time.advance(1)
        refused = [await environment.get(MATCH) for _ in range(2)]
        hidden = await environment.get(f"{MATCH}&callback=handle&suppress_status_codes=1")
        served = await environment.get(target({"mpn": "SN74S74N"}, key="another"))
        metrics = (await environment.get("/metrics")).body.decode()
        assert (served.status, environment.billed_parts) == (200, billed)
    for response in refused:
        assert (response.status, announced(response.headers)) == (410, ANNOUNCED)
        assert response.json == {"__class__": "ClientErrorResponse", "message": GONE}
    assert (hidden.status, announced(hidden.headers)) == (200, ANNOUNCED)
    assert hidden.body.startswith(b"handle({")
    assert GONE.encode() in hidden.body
    lines = [json.loads(line) for line in log_output.getvalue().splitlines()]
    (event,) = [line for line in lines if line["event"] == "sunset passed"]
    assert (event["level"], event["application"], event["key"]) == ("warning", "demo", "erp")
    errors = [(line["key"], line["error"]) for line in lines if line.get("error")]
    assert errors == [("erp", "Gone")] * 3
    assert 'v3bridge_requests_total{route="/v3/parts/match",status="410"} 2.0' in metrics


async def test_cached_responses_end_with_the_sunset(start: StartEnvironment) -> None:
    async with start(application={"sunset": SUNSET}) as environment:
        assert [(await environment.get(MATCH)).status for _ in range(5)] == [200] * 5
        environment.time.advance(REMAINING)
        assert [(await environment.get(MATCH)).status for _ in range(3)] == [410] * 3


async def test_request_that_joins_an_equal_one_after_the_sunset_gets_410(start: StartEnvironment) -> None:
    async with start(application={"sunset": SUNSET}) as environment:
        await environment.get(target({"mpn": "1N4007"}))  # the token, which is also affected by the latency
        environment.sandbox.faults.replace(nexar_sandbox.parse_faults("latency ms=150"))
        leading = asyncio.create_task(environment.get(MATCH))
        await asyncio.sleep(0.05)
        environment.time.advance(REMAINING)
        assert (await environment.get(MATCH)).status == 410
        assert (await leading).status == 200
