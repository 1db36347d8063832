"""Tests of throttling of wrong API keys by client address: no fast guessing, no lock-out of valid keys."""

import base64
import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support import cases
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, target

from proxy import config

KEYS = ("first-key", "second-key")
LIMIT = 3
QUERY = {"mpn": "SN74S74N"}
BEHIND_A_PROXY = {
    "failed_auth_per_minute": LIMIT,
    "trusted_proxies": (config.Network("127.0.0.0/8"), config.Network("10.0.0.1")),
}


@asynccontextmanager
async def guarded(start: StartEnvironment, **listen: object) -> AsyncIterator[ProxyEnvironment]:
    apikeys = tuple(config.ApiKeySettings(config.digest(key), name=key) for key in KEYS)
    chosen = {"failed_auth_per_minute": LIMIT, **listen}
    async with start(application={"apikeys": apikeys}, listen=chosen) as environment:
        yield environment


async def ask(environment: ProxyEnvironment, key: str, *forwarded: str) -> RawResponse:
    """A match with a key, as the proxies in front of the service pass it on."""
    headers = [f"X-Forwarded-For: {each}".encode() for each in forwarded]
    return await environment.raw(f"GET {target(QUERY, key=key)} HTTP/1.1".encode(), *headers)


async def guess(environment: ProxyEnvironment, number: int, *forwarded: str) -> list[int]:
    return [(await ask(environment, f"wrong-{n}", *forwarded)).status for n in range(number)]


async def test_wrong_keys_per_minute_never_exceed_the_limit(start: StartEnvironment) -> None:
    async with guarded(start) as environment:
        tried: list[float] = []
        for _ in range(60):
            if (await ask(environment, "wrong")).status == 403:
                tried.append(environment.time.monotonic())
            environment.time.advance(7)
        assert len(tried) > 5 * LIMIT
        assert all(later - first >= 60 for first, later in zip(tried, tried[LIMIT:], strict=False))


async def test_requests_whose_key_cannot_be_read_count(start: StartEnvironment) -> None:
    digits = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"%b"}' % (b"9" * 400)).decode().rstrip("=")
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for path, headers, body in (
        ("/graphql", {"Authorization": f"Bearer {digits}.e30.AAAA"}, b"{}"),
        ("/connect/token", form, b"client_secret=\xff"),
        ("/connect/token", {"Content-Type": "multipart/form-data"}, b""),
        ("/connect/token", {**form, "Content-Encoding": "gzip"}, b"a"),
    ):
        found: list[int] = []
        async with guarded(start) as environment:
            for _ in range(LIMIT + 1):
                url, session = f"{environment.proxy.url}{path}", environment.proxy.session
                async with session.post(url, data=body, headers=headers) as response:
                    found.append(response.status)
        assert all(400 <= status < 500 for status in found)
        assert [status == 429 for status in found] == [False] * LIMIT + [True]


async def test_throttled_address_gets_no_cached_response(start: StartEnvironment) -> None:
    """The third response to a request is kept whole and needs no look-up of its key."""
    async with guarded(start, **BEHIND_A_PROXY) as environment:
        for _ in range(3):
            assert (await ask(environment, KEYS[0], "192.0.2.1")).status == 200
        await guess(environment, LIMIT, "192.0.2.2")
        assert (await ask(environment, KEYS[0], "192.0.2.2")).status == 429
        assert (await ask(environment, KEYS[0], "192.0.2.1")).status == 200


async def test_client_served_from_cache_alone_is_not_throttled(start: StartEnvironment) -> None:
    async with guarded(start, **BEHIND_A_PROXY) as environment:
        for _ in range(3):
            await ask(environment, KEYS[0], "192.0.2.1")
        assert (await ask(environment, KEYS[0], "192.0.2.2")).status == 200
        await guess(environment, LIMIT, "192.0.2.2")
        assert (await ask(environment, KEYS[0], "192.0.2.2")).status == 200


async def test_x_forwarded_for_is_ignored_without_trusted_proxies(start: StartEnvironment) -> None:
    async with guarded(start) as environment:
        found = [(await ask(environment, f"wrong-{n}", f"192.0.2.{n}")).status for n in range(LIMIT + 1)]
        assert found == [403, 403, 403, 429]


@cases.parametrize("first, other, same")
async def test_clients_behind_a_trusted_proxy_are_distinguished(
    start: StartEnvironment, first: list[str], other: list[str], same: bool
) -> None:
    async with guarded(start, **BEHIND_A_PROXY) as environment:
        await guess(environment, LIMIT, *first)
        assert (await ask(environment, "wrong", *first)).status == 429
        assert (await ask(environment, "wrong", *other)).status == (429 if same else 403)


async def test_throttled_address_is_logged_once_without_key(start: StartEnvironment, log_output: io.StringIO) -> None:
    async with guarded(start) as environment:
        await guess(environment, LIMIT + 3)
        metrics = (await environment.get("/metrics")).body.decode()
    (event,) = (
        json.loads(line)
        for line in log_output.getvalue().splitlines()
        if json.loads(line)["event"].startswith("wrong API keys")
    )
    assert (event["event"], event["address"], event["limit"]) == ("wrong API keys throttled", "127.0.0.1", LIMIT)
    assert 'v3bridge_wrong_api_keys_total{outcome="forbidden"} 3.0' in metrics
    assert 'v3bridge_wrong_api_keys_total{outcome="throttled"} 3.0' in metrics
    assert "wrong-" not in log_output.getvalue()
