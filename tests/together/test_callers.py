"""Who still calls, over sockets: every kind of response is counted for its API key, endpoint and User-Agent."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from support import running_proxy
from together.environment import StartEnvironment, target

import nexar_sandbox
from proxy import config
from proxy.kit import clock
from proxy.stores.redis import RedisStore
from proxy.stores.sqlite import SqliteStore
from proxy.telemetry.callers import DAY_SECONDS, OTHERS, Caller, CallerCount, CallerSeen

CACHED = {"seconds": 86_400, "stale_seconds": 0}
SN74 = target({"mpn": "SN74S74N"})
DAY = int(clock.ManualClock().now() // DAY_SECONDS)
SUNSET = config.SunsetSettings(date(2023, 11, 14))
START = int(clock.ManualClock().now())


class Counted(NamedTuple):
    """What a store holds: requests, errors and parts by day, endpoint and user agent of a key; times by caller."""

    counts: dict[tuple[int, str, str, str], tuple[int, int, int]]
    seen: dict[Caller, CallerSeen]


@pytest.fixture
def store_file(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


@pytest.fixture
def stored(store_file: Path, time: clock.ManualClock) -> Callable[[], Any]:
    """Reads the store; after the service has ended, everything is in it."""

    async def read() -> Counted:
        store = await SqliteStore.open(store_file, time)
        try:
            seen, counts = await store.caller_usage(0, 99_999)
        finally:
            await store.aclose()
        by_caller = {(each.day, *each.caller[1:]): (each.requests, each.errors, each.parts) for each in counts}
        return Counted(by_caller, {each.caller: each for each in seen})

    return read


async def test_hits_misses_and_errors_are_counted(
    start: StartEnvironment, store_file: Path, stored: Any, time: clock.ManualClock
) -> None:
    async with start(store=f"sqlite:{store_file}", cache=CACHED) as environment:

        async def get(asked: str, *fields: bytes) -> None:
            await environment.raw(f"GET {asked} HTTP/1.1".encode(), *fields)

        for _ in range(5):
            await get(SN74, b"User-Agent: BOM/1.0")
            time.advance(1)
        await get(f"/api{SN74}", b"User-Agent: BOM/1.1")
        await get(f"{SN74}&slice[]=&pretty_print=maybe", b"User-Agent: BOM/1.1")
        await get("/v3/brands/ffffffffffffffff/?apikey=EXAMPLE_KEY", b"User-Agent: BOM/1.1")
        await get("/v3/brands/search?apikey=EXAMPLE_KEY&q=texas")
        await get("/v3/parts/search?apikey=wrong&q=texas")
        await get("/v3/parts/search?q=texas")
        for path in ("/healthz", "/v3/nothing?apikey=EXAMPLE_KEY", "/"):
            await get(path)
        billed = environment.billed_parts
    counted = await stored()
    assert counted.counts == {
        (DAY, "1", "parts/match", "BOM/1.0"): (5, 0, billed),
        (DAY, "1", "parts/match", "BOM/1.1"): (2, 1, 0),
        (DAY, "1", "brands/{uid}", "BOM/1.1"): (1, 1, 0),
        (DAY, "1", "brands/search", ""): (1, 0, 0),
        (DAY, "", "parts/search", ""): (2, 2, 0),
    }
    bom = Caller("demo", "1", "parts/match", "BOM/1.0")
    assert counted.seen[bom] == CallerSeen(bom, START, START + 4)


async def test_requests_after_the_sunset_are_counted(
    start: StartEnvironment, store_file: Path, stored: Any, time: clock.ManualClock
) -> None:
    keys = (config.ApiKeySettings(config.digest("old"), name="erp", sunset=SUNSET),)
    async with start(store=f"sqlite:{store_file}", application={"apikeys": keys}) as environment:
        time.advance(2 * DAY_SECONDS)
        gone = target({"mpn": "SN74S74N"}, key="old")
        statuses = [(await environment.get(path)).status for path in (gone, f"{gone}&suppress_status_codes=1")]
        assert statuses == [410, 200]
    counts = {place[:3]: numbers for place, numbers in (await stored()).counts.items()}
    assert counts == {(DAY + 2, "erp", "parts/match"): (2, 2, 0)}


async def test_upstream_failures_are_errors_of_the_caller(
    start: StartEnvironment, store_file: Path, stored: Any
) -> None:
    async with start(store=f"sqlite:{store_file}") as environment:
        environment.sandbox.faults.replace(nexar_sandbox.parse_faults("5xx"))
        await environment.get(SN74)
    ((requests, failed, _),) = (await stored()).counts.values()
    assert (requests, failed) == (1, 1)


async def test_every_dialect_is_counted_and_its_failures_are_errors(
    start: StartEnvironment, store_file: Path, stored: Any
) -> None:
    """Else a key of a program that has moved to GraphQL would be listed as unused."""
    free, billed = '{ supSellers(ids: ["459"]) { name } }', '{ supParts(ids: ["1"]) { mpn } }'
    own = {"Authorization": "Bearer EXAMPLE_KEY", "User-Agent": ""}
    async with start(store=f"sqlite:{store_file}", upstream={"retries": 0}) as environment:
        proxy = environment.proxy
        await environment.get('/api/v4/rest/parts/match?apikey=EXAMPLE_KEY&queries=[{"mpn":"SN74S74N"}]')
        for fault in ("", "5xx retry_after=7"):
            environment.sandbox.faults.replace(nexar_sandbox.parse_faults(fault) if fault else [])
            for path, query in (("/graphql", free), ("/graphql/", billed), ("/api/v4/endpoint", "{ __typename }")):
                async with proxy.session.post(f"{proxy.url}{path}", json={"query": query}, headers=own) as response:
                    failed = bool(fault) and not path.startswith("/api")
                    assert response.status == (503 if failed else 200)
                    assert response.headers.get("Retry-After") == ("7" if failed else None)
    counts = {place[2]: numbers[:2] for place, numbers in (await stored()).counts.items()}
    assert counts == {"graphql": (4, 2), "api/v4/endpoint": (2, 0), "api/v4/rest/parts/match": (1, 0)}


async def test_days_and_months_are_those_of_utc(
    start: StartEnvironment, store_file: Path, stored: Any, time: clock.ManualClock
) -> None:
    path = "/v3/brands/search?apikey=EXAMPLE_KEY&q=texas"
    async with start(store=f"sqlite:{store_file}") as environment:
        time.advance(DAY_SECONDS * 16 + 6400 - 1)  # the last second of November
        for _ in range(3):
            await environment.get(path)
            time.advance(1)
    assert [(place[0], numbers[0]) for place, numbers in (await stored()).counts.items()] == [
        (DAY + 16, 1),
        (DAY + 17, 2),
    ]


async def test_hostile_user_agents_are_stored_as_bounded_text_without_the_key(
    start: StartEnvironment, store_file: Path, stored: Any
) -> None:
    path = b"GET /v3/brands/search?apikey=EXAMPLE_KEY&q=texas HTTP/1.1"
    agents = [
        b"x" * 5_000,
        "bidi \u202e \u00e9 ".encode() + b"\xff\xfe",
        b"<script>alert(1)</script>",
        b"erp (key EXAMPLE_KEY)",
        b"'; DROP TABLE callers; --",
    ]
    async with start(store=f"sqlite:{store_file}") as environment:
        for agent in agents:
            assert (await environment.raw(path, b"User-Agent: " + agent)).status == 200
        for number in range(120):
            assert (await environment.raw(path, b"User-Agent: agent/%d" % number)).status == 200
    counted = await stored()
    names = [caller.user_agent for caller in counted.seen]
    assert {"<script>alert(1)</script>", "erp (key …)", "'; DROP TABLE callers; --"} < set(names)
    assert max(map(len, names)) == 200
    assert all(name.isprintable() for name in names)
    assert counted.counts[DAY, "1", "brands/search", OTHERS] == (25, 0, 0)
    assert len(names) == 101
    assert b"EXAMPLE_KEY" not in store_file.read_bytes()


async def test_no_request_is_lost_or_counted_twice_over_restarts(
    start: StartEnvironment, store_file: Path, stored: Any
) -> None:
    for _ in range(3):
        async with start(store=f"sqlite:{store_file}", cache=CACHED) as environment:
            for _ in range(4):
                await environment.get(SN74)
    ((requests, failed, _),) = (await stored()).counts.values()
    assert (requests, failed) == (12, 0)


async def test_requests_are_served_and_counted_while_the_store_is_away(
    start: StartEnvironment, store_file: Path, stored: Any
) -> None:
    async with start(store=f"sqlite:{store_file}") as environment:
        away = store_file.rename(store_file.with_name("away"))
        path = "/v3/brands/search?apikey=EXAMPLE_KEY&q=texas"
        assert [(await environment.get(path)).status for _ in range(2)] == [200, 200]
        away.rename(store_file)
    assert [numbers[0] for numbers in (await stored()).counts.values()] == [2]


async def test_nothing_is_stored_where_it_is_switched_off(
    start: StartEnvironment, store_file: Path, stored: Any
) -> None:
    off = config.ClientSettings(days=0)
    async with start(store=f"sqlite:{store_file}", clients=off) as environment:
        await environment.get(SN74)
    assert await stored() == ({}, {})


async def test_two_services_on_one_redis_add_up(
    start: StartEnvironment, redis_server: Any, time: clock.ManualClock
) -> None:
    async with start(store=redis_server.url) as one, start(store=redis_server.url) as other:
        for environment in (one, other, one):
            headers = {"User-Agent": "BOM/1.0"}
            url = f"{environment.proxy.url}/v3/brands/search?apikey={running_proxy.KEY}&q=texas"
            async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
                assert response.status == 200
            time.advance(1)
    store = RedisStore(redis_server.url, time)
    caller = Caller("demo", "1", "brands/search", "BOM/1.0")
    assert (await store.caller_usage(DAY, DAY))[1] == [CallerCount(DAY, caller, 3, 0, 0)]
    assert await store.callers() == [CallerSeen(caller, START, START + 2)]
    await store.aclose()
