"""Wrong API keys are throttled by client address: no faster guessing, and no lock-out of who uses a right key."""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from integration.house import House, RawReply, Starts, target

from proxy import config

KEYS = ("first-key", "second-key")
LIMIT = 3
QUERY = {"mpn": "SN74S74N"}
BEHIND_A_PROXY = {"wrong_keys": LIMIT, "trusted_proxies": (config.Network("127.0.0.0/8"), config.Network("10.0.0.1"))}


@asynccontextmanager
async def guarded(start: Starts, **listen: object) -> AsyncIterator[House]:
    apikeys = tuple(config.ApiKeySettings(config.digest(key), name=key) for key in KEYS)
    chosen = {"wrong_keys": LIMIT, **listen}
    async with start(application={"apikeys": apikeys}, listen=chosen, cache={"seconds": 300}) as house:
        yield house


async def ask(house: House, key: str, *forwarded: str) -> RawReply:
    """A match with a key, as the proxies in front of the service pass it on."""
    headers = [f"X-Forwarded-For: {each}".encode() for each in forwarded]
    return await house.raw(f"GET {target(QUERY, key=key)} HTTP/1.1".encode(), *headers)


async def guess(house: House, number: int, *forwarded: str) -> list[int]:
    return [(await ask(house, f"wrong-{n}", *forwarded)).status for n in range(number)]


async def test_address_with_too_many_wrong_keys_gets_429_for_any_request(start: Starts) -> None:
    async with guarded(start) as house:
        assert await guess(house, LIMIT + 2) == [403, 403, 403, 429, 429]
        right, wrong = await ask(house, KEYS[0]), await ask(house, "wrong")
        assert (right.status, right.body) == (wrong.status, wrong.body)
        assert right.headers["retry-after"] == "60"
        assert "too many wrong API keys" in right.json["message"]
        house.time.advance(60)
        assert (await ask(house, KEYS[0])).status == 200


async def test_wrong_keys_per_minute_never_exceed_the_limit(start: Starts) -> None:
    async with guarded(start) as house:
        tried: list[float] = []
        for _ in range(60):
            if (await ask(house, "wrong")).status == 403:
                tried.append(house.time.monotonic())
            house.time.advance(7)
        assert len(tried) > 5 * LIMIT
        assert all(later - first >= 60 for first, later in zip(tried, tried[LIMIT:], strict=False))


async def test_key_used_before_from_a_throttled_address_keeps_working(start: Starts) -> None:
    async with guarded(start) as house:
        assert (await ask(house, KEYS[0])).status == 200
        await guess(house, LIMIT)
        assert [(await ask(house, key)).status for key in (*KEYS, "wrong")] == [200, 429, 429]
        house.time.advance(50)  # nothing of this makes the address wait longer
        assert (await ask(house, "wrong")).status == 429
        house.time.advance(10)
        assert (await ask(house, KEYS[1])).status == 200


async def test_throttled_address_gets_no_cached_response(start: Starts) -> None:
    """The third response to a request is kept whole and needs no look-up of its key."""
    async with guarded(start, **BEHIND_A_PROXY) as house:
        for _ in range(3):
            assert (await ask(house, KEYS[0], "192.0.2.1")).status == 200
        await guess(house, LIMIT, "192.0.2.2")
        assert (await ask(house, KEYS[0], "192.0.2.2")).status == 429
        assert (await ask(house, KEYS[0], "192.0.2.1")).status == 200


async def test_client_served_from_cache_alone_is_not_throttled(start: Starts) -> None:
    async with guarded(start, **BEHIND_A_PROXY) as house:
        for _ in range(3):
            await ask(house, KEYS[0], "192.0.2.1")
        assert (await ask(house, KEYS[0], "192.0.2.2")).status == 200
        await guess(house, LIMIT, "192.0.2.2")
        assert (await ask(house, KEYS[0], "192.0.2.2")).status == 200


async def test_x_forwarded_for_is_ignored_without_trusted_proxies(start: Starts) -> None:
    async with guarded(start) as house:
        found = [(await ask(house, f"wrong-{n}", f"192.0.2.{n}")).status for n in range(LIMIT + 1)]
        assert found == [403, 403, 403, 429]


@pytest.mark.parametrize(
    "first, other, same",
    [
        (("192.0.2.1",), ("192.0.2.2",), False),
        (("6.6.6.6, 192.0.2.1",), ("7.7.7.7, 192.0.2.1",), True),  # its left end is the client's own invention
        (("7.7.7.7", "192.0.2.1"), ("192.0.2.1",), True),
        (("192.0.2.1, 10.0.0.1",), ("192.0.2.1",), True),
        (("10.0.0.1, 192.0.2.1",), ("192.0.2.1",), True),
        (("192.0.2.1:4711",), ("192.0.2.1:4712",), True),
        (("2001:db8:0:1::1",), ("[2001:db8:0:1:ffff::2]:80",), True),
        (("2001:db8:0:1::1",), ("2001:db8:0:2::1",), False),
        (("::ffff:192.0.2.1",), ("192.0.2.1",), True),
        (("192.0.2.1, not an address",), ("192.0.2.2, not an address",), True),
        ((), ("",), True),
    ],
)
async def test_clients_behind_a_trusted_proxy_are_distinguished(
    start: Starts, first: tuple[str, ...], other: tuple[str, ...], same: bool
) -> None:
    async with guarded(start, **BEHIND_A_PROXY) as house:
        await guess(house, LIMIT, *first)
        assert (await ask(house, "wrong", *first)).status == 429
        assert (await ask(house, "wrong", *other)).status == (429 if same else 403)


async def test_zero_disables_throttling(start: Starts) -> None:
    async with guarded(start, wrong_keys=0) as house:
        assert set(await guess(house, 30)) == {403}


async def test_throttled_address_is_logged_once_without_key(start: Starts, written: io.StringIO) -> None:
    async with guarded(start) as house:
        await guess(house, LIMIT + 3)
        metrics = (await house.get("/metrics")).body.decode()
    (event,) = (
        json.loads(line)
        for line in written.getvalue().splitlines()
        if json.loads(line)["event"].startswith("wrong API keys")
    )
    assert (event["event"], event["address"], event["limit"]) == ("wrong API keys throttled", "127.0.0.1", LIMIT)
    assert 'v3bridge_wrong_api_keys_total{outcome="forbidden"} 3.0' in metrics
    assert 'v3bridge_wrong_api_keys_total{outcome="throttled"} 3.0' in metrics
    assert "wrong-" not in written.getvalue()


async def test_other_paths_are_not_throttled(start: Starts) -> None:
    async with guarded(start) as house:
        await guess(house, LIMIT + 1)
        assert (await house.get("/healthz")).status == 200
        assert (await house.get("/v3/openapi.json")).status == 200
