"""Sunset of an API key: headers of every response until its last day has passed, then a 410, cached or not."""

from datetime import date

from support import running_proxy
from together.environment import StartEnvironment, target

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


def announced(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name in ANNOUNCED}


async def test_every_response_to_the_key_announces_its_sunset(start: StartEnvironment) -> None:
    async with start(application={"sunset": SUNSET}) as environment:
        for path, status in (
            (MATCH, 200),
            (f"{MATCH}&callback=handle", 200),
            ("/v3/brands/search?apikey=EXAMPLE_KEY&q=texas", 200),
            ("/v3/parts/match?apikey=EXAMPLE_KEY&queries=[", 400),
            ("/v3/parts/match?apikey=EXAMPLE_KEY&queries=[&suppress_status_codes=1", 200),
            ("/v3/brands/ffffffffffffffff?apikey=EXAMPLE_KEY", 404),
        ):
            for method in ("GET", "HEAD"):
                response = await environment.get(path, method)
                assert (response.status, announced(response.headers)) == (status, ANNOUNCED), path


async def test_requests_get_410_from_midnight_after_the_last_day(start: StartEnvironment) -> None:
    keys = (
        config.ApiKeySettings(config.digest(running_proxy.KEY), sunset=SUNSET),
        config.ApiKeySettings(config.digest("another")),
    )
    async with start(application={"apikeys": keys}) as environment:
        environment.time.advance(REMAINING - 1)
        assert [(await environment.get(MATCH)).status for _ in range(3)] == [200] * 3
        billed = environment.billed_parts
        environment.time.advance(1)
        refused = [await environment.get(MATCH) for _ in range(2)]
        hidden = await environment.get(f"{MATCH}&callback=handle&suppress_status_codes=1")
        served = await environment.get(target({"mpn": "SN74S74N"}, key="another"))
        assert (served.status, environment.billed_parts) == (200, billed)
    for response in refused:
        assert (response.status, announced(response.headers)) == (410, ANNOUNCED)
        assert response.json == {"__class__": "ClientErrorResponse", "message": GONE}
    assert (hidden.status, announced(hidden.headers)) == (200, ANNOUNCED)
    assert hidden.body.startswith(b"handle({")
    assert GONE.encode() in hidden.body
