"""Who still calls, over sockets: requests are counted for their API key, endpoint, User-Agent and what they lose."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from together.environment import StartEnvironment, target

from proxy import config
from proxy.gateway.recording import OTHERS
from proxy.kit import clock
from proxy.model import Seen
from proxy.store import open as opening
from proxy.store.protocol import CLIENT, DAY_SECONDS

SN74 = target({"mpn": "SN74S74N"})
DAY = int(clock.ManualClock().now() // DAY_SECONDS)

Stored = Callable[[], Awaitable[list[Seen]]]


async def clients(url: str, time: clock.ManualClock) -> list[Seen]:
    store = await opening.open_store(config.StoreUrl(url), time, worker="test", cache_bytes=2**20)
    try:
        return await store.seen(CLIENT, DAY)
    finally:
        await store.aclose()


@pytest.fixture
def store_file(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


@pytest.fixture
def stored(store_file: Path, time: clock.ManualClock) -> Stored:
    """Reads the store; after the service has ended, everything is in it."""

    async def read() -> list[Seen]:
        return await clients(f"sqlite:{store_file}", time)

    return read


async def test_requests_of_every_dialect_are_counted_with_what_they_lose(
    start: StartEnvironment, store_file: Path, stored: Stored
) -> None:
    own = {"Authorization": "Bearer EXAMPLE_KEY", "User-Agent": "bom/1"}
    async with start(store=f"sqlite:{store_file}") as environment:
        proxy = environment.proxy
        for path in (SN74, SN74, f"/api{SN74}", "/v3/parts/search?apikey=wrong&q=texas", "/healthz", "/"):
            await proxy.get(path, headers=own)
        await proxy.get("/v3/sellers/2c3be9310496fffc?apikey=EXAMPLE_KEY&show[]=has_ecommerce", headers=own)
        query = {"query": "{ __typename }"}
        async with proxy.session.post(f"{proxy.url}/graphql", json=query, headers=own) as response:
            assert response.status == 200
    counts = {(each.key, each.endpoint, bool(each.detail)): each.requests for each in await stored()}
    assert counts == {
        ("1", "parts/match", False): 3,
        ("", "parts/search", False): 1,
        ("1", "sellers/{uid}", True): 1,
        ("1", "graphql", False): 1,
    }


async def test_hostile_user_agents_are_stored_as_bounded_text_without_the_key(
    start: StartEnvironment, store_file: Path, stored: Stored
) -> None:
    path = b"GET /v3/brands/search?apikey=EXAMPLE_KEY&q=texas HTTP/1.1"
    agents = [b"x" * 5_000, "bidi \u202e \u00e9 ".encode() + b"\xff\xfe", b"<b>", b"erp (key EXAMPLE_KEY)"]
    async with start(store=f"sqlite:{store_file}") as environment:
        for agent in agents:
            assert (await environment.raw(path, b"User-Agent: " + agent)).status == 200
        for number in range(120):
            assert (await environment.raw(path, b"User-Agent: agent/%d" % number)).status == 200
    names = {count.user_agent: count.requests for count in await stored()}
    assert {"<b>", "erp (key …)"} < names.keys()
    assert max(map(len, names)) == 200
    assert all(name.isprintable() for name in names)
    assert (len(names), names[OTHERS]) == (101, 24)
    assert b"EXAMPLE_KEY" not in store_file.read_bytes()


async def test_no_request_is_lost_or_counted_twice_over_restarts_and_while_the_store_is_away(
    start: StartEnvironment, store_file: Path, stored: Stored
) -> None:
    path = "/v3/brands/search?apikey=EXAMPLE_KEY&q=texas"
    for _ in range(3):
        async with start(store=f"sqlite:{store_file}") as environment:
            assert (await environment.get(path)).status == 200
            away = store_file.rename(store_file.with_name("away"))
            assert (await environment.get(path)).status == 200
            away.rename(store_file)
    assert [count.requests for count in await stored()] == [6]


async def test_two_services_on_one_redis_add_up(
    start: StartEnvironment, redis_server: Any, time: clock.ManualClock
) -> None:
    async with start(store=redis_server.url) as one, start(store=redis_server.url) as other:
        for environment in (one, other, one):
            await environment.get("/v3/brands/search?apikey=EXAMPLE_KEY&q=texas")
    assert [count.requests for count in await clients(redis_server.url, time)] == [3]
