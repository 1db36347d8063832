"""API keys: wrong ones are throttled by address, valid ones not locked out; a sunset is announced, and then a 410."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date

from support import cases, running_proxy
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, target

from proxy import config

KEYS = ("first-key", "second-key")
LIMIT = 3
BEHIND_A_PROXY = {"trusted_proxies": (config.secret.Network("127.0.0.0/8"), config.secret.Network("10.0.0.1"))}


@asynccontextmanager
async def guarded(start: StartEnvironment, **listen: object) -> AsyncIterator[ProxyEnvironment]:
    apikeys = tuple(config.ApiKeySettings(config.digest(key), name=key) for key in KEYS)
    chosen = {"failed_auth_per_minute": LIMIT, **listen}
    async with start(application={"apikeys": apikeys}, listen=chosen) as environment:
        yield environment


async def ask(environment: ProxyEnvironment, key: str, *forwarded: str) -> RawResponse:
    """A match with a key, as the proxies in front of the service pass it on."""
    headers = [f"X-Forwarded-For: {each}".encode() for each in forwarded]
    return await environment.raw(f"GET {target({'mpn': 'SN74S74N'}, key=key)} HTTP/1.1".encode(), *headers)


async def guess(environment: ProxyEnvironment, number: int, *forwarded: str) -> list[int]:
    return [(await ask(environment, f"wrong-{n}", *forwarded)).status for n in range(number)]


async def test_requests_whose_key_cannot_be_read_count(start: StartEnvironment) -> None:
    digits = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"%b"}' % (b"9" * 400)).decode().rstrip("=")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    async with guarded(start) as environment:
        for path, headers, body in (
            ("/graphql", {"Authorization": f"Bearer {digits}.e30.AAAA"}, b"{}"),
            ("/connect/token", form, b"client_secret=\xff"),
            ("/connect/token", {"Content-Type": "multipart/form-data"}, b""),
            ("/connect/token", {**form, "Content-Encoding": "gzip"}, b"a"),
        ):
            environment.time.advance(61)
            found: list[int] = []
            for _ in range(LIMIT + 1):
                url, session = f"{environment.proxy.url}{path}", environment.proxy.session
                async with session.post(url, data=body, headers=headers) as response:
                    found.append(response.status)
            assert all(400 <= status < 500 for status in found)
            assert [status == 429 for status in found] == [False] * LIMIT + [True]
        environment.time.advance(61)
        no_text = b"GET /graphql HTTP/1.1", b"Authorization: Bearer \xff.e30.AAAA"
        assert [(await environment.raw(*no_text)).status for _ in range(LIMIT + 1)] == [401] * LIMIT + [429]


async def test_throttled_address_gets_no_cached_response_but_for_a_key_that_it_uses(start: StartEnvironment) -> None:
    """The third response to a request is kept whole and needs no look-up of its key."""
    async with guarded(start, **BEHIND_A_PROXY) as environment:
        for _ in range(3):
            assert (await ask(environment, KEYS[0], "192.0.2.1")).status == 200
        assert (await ask(environment, KEYS[0], "192.0.2.3")).status == 200
        for address in ("192.0.2.2", "192.0.2.3"):
            await guess(environment, LIMIT, address)
        statuses = [(await ask(environment, KEYS[0], f"192.0.2.{last}")).status for last in (1, 2, 3)]
        assert statuses == [200, 429, 200]


async def test_clients_behind_a_trusted_proxy_are_distinguished(start: StartEnvironment) -> None:
    async with guarded(start, **BEHIND_A_PROXY) as environment:
        for first, other, same in cases.of(__file__, "clients_behind_a_trusted_proxy_are_distinguished"):
            environment.time.advance(61)
            assert await guess(environment, LIMIT + 1, *first) == [403] * LIMIT + [429]
            assert (await ask(environment, "wrong", *other)).status == (429 if same else 403), (first, other)


async def test_without_trusted_proxies_the_header_is_ignored_and_refusals_are_counted(start: StartEnvironment) -> None:
    async with guarded(start) as environment:
        found = [(await ask(environment, f"wrong-{n}", f"192.0.2.{n}")).status for n in range(LIMIT + 2)]
        assert found == [403, 403, 403, 429, 429]
        metrics = (await environment.get("/metrics")).body.decode()
        assert 'v3bridge_wrong_api_keys_total{outcome="forbidden"} 3.0' in metrics
        assert 'v3bridge_wrong_api_keys_total{outcome="throttled"} 2.0' in metrics


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
