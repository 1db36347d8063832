"""API keys that no application has, over sockets: recorded by digest with address and User-Agent, in both dialects."""

import hashlib
from pathlib import Path

from together.environment import ProxyEnvironment, StartEnvironment, target

from proxy import config
from proxy.kit import clock
from proxy.model import Seen
from proxy.store import open as opening
from proxy.store.protocol import UNKNOWN_KEY

QUERY = {"mpn": "SN74S74N"}
OLD, OTHER = "an-old-key-of-erp", "4b1d"
START = clock.ManualClock().now()
DAY = int(START // 86_400)
PROXIES = {"trusted_proxies": (config.Network("127.0.0.0/8"),)}


async def send(environment: ProxyEnvironment, key: str, *headers: str) -> int:
    """Send a match with a key; return the status."""
    line = f"GET {target(QUERY, key=key)} HTTP/1.1"
    return (await environment.raw(line.encode(), *(each.encode() for each in headers))).status


async def graphql(environment: ProxyEnvironment, key: str) -> int:
    """Send a GraphQL document with a key as its access token; return the status."""
    headers = {"Authorization": f"Bearer {key}", "User-Agent": "gql/3"}
    response = await environment.proxy.get("/graphql", method="POST", json={"query": "{ __typename }"}, headers=headers)
    return response.status


async def stored(file: Path, time: clock.ManualClock) -> list[Seen]:
    store = await opening.open_store(config.StoreUrl(f"sqlite:{file}"), time, worker="test", cache_bytes=2**20)
    try:
        return await store.seen(UNKNOWN_KEY, 0)
    finally:
        await store.aclose()


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


async def test_unknown_keys_are_recorded_with_their_last_program(
    start: StartEnvironment, tmp_path: Path, time: clock.ManualClock
) -> None:
    file = tmp_path / "state.sqlite"
    async with start(store=f"sqlite:{file}", listen=PROXIES) as environment:
        assert await send(environment, OLD, f"User-Agent: erp/1 {OLD}", "X-Forwarded-For: 192.0.2.1") == 403
        time.advance(60)
        assert await send(environment, OLD, "X-Forwarded-For: 192.0.2.2") == 403
        time.advance(1)
        assert await graphql(environment, OTHER) == 401
        # Known keys, and requests without one, are not among them.
        assert await send(environment, "EXAMPLE_KEY") == 200
        assert await send(environment, "") == 400
    assert await stored(file, time) == [
        Seen(UNKNOWN_KEY, DAY, "", digest(OTHER), "127.0.0.1", "gql/3", "", 1, START + 61),
        Seen(UNKNOWN_KEY, DAY, "", digest(OLD), "192.0.2.2", "erp/1 …", "", 2, START + 60),
    ]
    assert OLD.encode() not in file.read_bytes()


async def test_refusals_of_an_address_with_too_many_wrong_keys_are_not_looked_up(
    start: StartEnvironment, tmp_path: Path, time: clock.ManualClock
) -> None:
    file = tmp_path / "state.sqlite"
    async with start(store=f"sqlite:{file}", listen={"failed_auth_per_minute": 2}) as environment:
        statuses = [await send(environment, OLD) for _ in range(4)]
    assert (statuses, [each.requests for each in await stored(file, time)]) == ([403, 403, 429, 429], [2])


async def test_keys_are_counted_without_a_limit(
    start: StartEnvironment, tmp_path: Path, time: clock.ManualClock
) -> None:
    file = tmp_path / "state.sqlite"
    async with start(store=f"sqlite:{file}", listen={"failed_auth_per_minute": 0}) as environment:
        assert {await send(environment, OLD) for _ in range(30)} == {403}
    assert [each.requests for each in await stored(file, time)] == [30]
