"""Who calls, over sockets: requests are counted for their API key, endpoint, User-Agent and what they lose; those with
keys that no application has by digest, with address and User-Agent. Nothing of a key is stored."""

import hashlib
from pathlib import Path
from typing import Any

from together.environment import ProxyEnvironment, StartEnvironment, target

from proxy import config
from proxy.gateway.recording import OTHERS
from proxy.kit import clock
from proxy.model import Seen
from proxy.store import open as opening
from proxy.store.protocol import CLIENT, DAY_SECONDS, UNKNOWN_KEY

QUERY = {"mpn": "SN74S74N"}
SEARCH = "/v3/brands/search?apikey=EXAMPLE_KEY&q=texas"
OLD, OTHER = "an-old-key-of-erp", "4b1d"
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
    """Send a match with a key; return the status."""
    line = f"GET {target(QUERY, key=key)} HTTP/1.1"
    return (await environment.raw(line.encode(), *(each.encode() for each in headers))).status


async def graphql(environment: ProxyEnvironment, key: str) -> int:
    """Send a GraphQL document with a key as its access token; return the status."""
    headers = {"Authorization": f"Bearer {key}", "User-Agent": "gql/3"}
    sent = {"query": "{ __typename }"}
    return (await environment.proxy.get("/graphql", method="POST", json=sent, headers=headers)).status


async def test_requests_of_every_dialect_are_counted_with_what_they_lose(
    start: StartEnvironment, tmp_path: Path
) -> None:
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


async def test_hostile_user_agents_are_stored_as_bounded_text_without_the_key(
    start: StartEnvironment, tmp_path: Path
) -> None:
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


async def test_unknown_keys_are_recorded_with_their_last_program(
    start: StartEnvironment, tmp_path: Path, time: clock.ManualClock
) -> None:
    file = tmp_path / "state.sqlite"
    listen = {"trusted_proxies": (config.Network("127.0.0.0/8"),), "failed_auth_per_minute": 2}
    async with start(store=f"sqlite:{file}", listen=listen) as environment:
        assert await send(environment, OLD, f"User-Agent: erp/1 {OLD}", "X-Forwarded-For: 192.0.2.1") == 403
        time.advance(60)
        assert await send(environment, OLD, "X-Forwarded-For: 192.0.2.2") == 403
        time.advance(1)
        assert [await graphql(environment, OTHER) for _ in range(4)] == [
            401,
            401,
            429,
            429,
        ]  # the last are not looked up
        # Known keys, and requests without one, are not among them.
        assert await send(environment, "EXAMPLE_KEY", "X-Forwarded-For: 192.0.2.3") == 200
        assert await send(environment, "") == 400
    digests = [hashlib.sha256(key.encode()).hexdigest() for key in (OTHER, OLD)]
    assert await stored(f"sqlite:{file}", UNKNOWN_KEY) == [
        Seen(UNKNOWN_KEY, DAY, "", digests[0], "127.0.0.1", "gql/3", "", 2, START + 61),
        Seen(UNKNOWN_KEY, DAY, "", digests[1], "192.0.2.2", "erp/1 …", "", 2, START + 60),
    ]
    assert OLD.encode() not in file.read_bytes()
