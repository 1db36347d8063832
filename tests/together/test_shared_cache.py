"""Tests of the shared cache: results of one service are used by others at the same store, and after a restart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support import running_proxy
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, target

from proxy import config
from proxy.gateway.cache import shared, shared_misses
from proxy.kit import clock
from proxy.stores import open as opening

A, B, C = {"mpn": "SN74S74N"}, {"mpn": "1N4007"}, {"mpn": "SN74S74D"}
CACHED = {"seconds": 300}
PATIENCE = 60.0  # seconds; limits of the shared cache, so that a busy machine is not taken for a store in trouble


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Fixture: value of the setting `store`."""
    if request.param == "redis":
        return str(request.getfixturevalue("redis_server").url)
    return f"sqlite:{tmp_path}/state.sqlite"


@pytest.fixture(autouse=True)
def _shared_cache_is_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a look-up that took too long a service goes on alone, and a lease that has ended is claimed again. Both are
    right, and cost parts; here neither may happen because the machine is busy."""
    for name in ("LOOK_UP_TIMEOUT", "WRITE_TIMEOUT", "CLAIM_SECONDS", "WAIT_SECONDS"):
        monkeypatch.setattr(shared, name, PATIENCE)
    monkeypatch.setattr(shared_misses, "WAIT_SECONDS", PATIENCE)


def settings(environment: ProxyEnvironment, store: str, **changes: Any) -> config.Config:
    account = environment.sandbox.default_application
    own = {"client_id": config.ClientId(account.client_id), "client_secret": config.Secret(account.client_secret)}
    return running_proxy.settings(
        environment.sandbox.graphql_url,
        environment.sandbox.token_url,
        **{"store": store, "cache": CACHED, **changes, "application": own | changes.get("application", {})},
    )


@asynccontextmanager
async def others(
    environment: ProxyEnvironment, *configurations: config.Config
) -> AsyncIterator[list[ProxyEnvironment]]:
    """More services in front of the same sandbox."""
    async with AsyncExitStack() as stack:
        proxies = [
            await stack.enter_async_context(running_proxy.running(each, environment.time)) for each in configurations
        ]
        yield [ProxyEnvironment(proxy, environment.sandbox, environment.time) for proxy in proxies]


class Figures(NamedTuple):
    source: str
    cost: int


def figures(reply: RawResponse) -> Figures:
    assert reply.status == 200, reply.body
    return Figures(reply.headers["x-cache"], int(reply.headers["x-parts-cost"]))


def same(one: RawResponse, other: RawResponse) -> bool:
    return bool({**one.json, "msec": 0} == {**other.json, "msec": 0})


async def stored(environment: ProxyEnvironment, store: str, number: int, size: int = 0) -> int:
    """Wait until the shared cache has so many entries and bytes: they are stored after their responses. Return its
    bytes."""
    cache = opening.open_cache(config.StoreUrl(store), 2**20, 1.0, environment.time)
    assert cache is not None
    try:
        async with asyncio.timeout(30):
            while True:
                usages = await cache.cache_usage()
                used = sum(usage.bytes for usage in usages)
                if sum(usage.entries for usage in usages) >= number and used >= size:
                    return used
                await asyncio.sleep(0.01)
    finally:
        await cache.aclose()


async def test_every_endpoint_survives_a_restart(start: StartEnvironment, store: str) -> None:
    async with start() as environment:
        chosen = settings(environment, store)
        key = f"apikey={running_proxy.KEY}"
        search = f"/v3/parts/search?{key}&q=resistor&limit=3&facet[fields][brand.name][include]=1"
        search += "&stats[avg_price][include]=1&spec_drilldown[include]=1"
        async with others(environment, chosen) as (one,):
            uid = (await one.get(target(A))).json["results"][0]["items"][0]["uid"]
            paths = [
                target(A),
                target(B, A),
                search,
                f"/v3/parts/{uid}?{key}",
                f"/v3/parts/get_multi?{key}&uid[]={uid}",
            ]
            before = [await one.get(path) for path in paths]
        billed, asked = environment.billed_parts, environment.sandbox.request_counts.graphql
        async with others(environment, chosen) as (two,):
            after = [await two.get(path) for path in paths]
        assert {figures(reply) for reply in after} == {("hit", 0)}
        assert all(same(*pair) for pair in zip(before, after, strict=True))
        assert (environment.billed_parts, environment.sandbox.request_counts.graphql - asked) == (billed, 0)


async def test_part_that_any_service_has_brought_is_paid_once_a_day(start: StartEnvironment, store: str) -> None:
    """By number with other limits and fields, and by uid, in turn by two services, after a restart, for 23 hours."""
    programs = [("", 10), ("&include[]=descriptions", 1), ("&include[]=specs", 3), ("&hide[]=offers", 20)]
    async with start() as environment:
        chosen = settings(environment, store, cache={"seconds": 84_600}, application={"features": "all"})
        uids: list[str] = []
        for seconds in (0, 6 * 60, 23 * 3600):
            environment.time.advance(seconds)
            async with others(environment, chosen, chosen) as services:
                for turn, (more, limit) in enumerate(programs):
                    queries = [{**each, "limit": limit} for each in (A, B, C)]
                    response = await services[turn % 2].get(target(*queries, more=more))
                    uids = uids or [part["uid"] for result in response.json["results"] for part in result["items"]]
                    path = f"/v3/parts/get_multi?apikey={running_proxy.KEY}{more}" + "".join(
                        f"&uid[]={uid}" for uid in uids
                    )
                    # What a service has stored is found by the other one only once it is there.
                    await stored(environment, store, 3)
                    assert set((await services[1 - turn % 2].get(path)).json) == set(uids)
        assert environment.billed_parts == len(uids)


async def test_remaining_lifetime_counts(start: StartEnvironment, store: str) -> None:
    async with start() as environment, others(environment, *[settings(environment, store)] * 2) as (one, two):
        await one.get(target(A))
        await stored(environment, store, 1)
        environment.time.advance(299)
        assert [figures(await two.get(target(A))).source for _ in range(3)] == ["hit"] * 3
        environment.time.advance(2)
        assert figures(await two.get(target(A))).source == "miss"


class JumpingClock(clock.ManualClock):
    """Clock whose wall-clock time can be set, while its monotonic time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = 0.0

    def now(self) -> float:
        return super().now() + self.offset


@pytest.mark.parametrize("offset,source", [(-3600, "miss"), (-2, "hit"), (200, "hit"), (400, "miss"), (10**7, "miss")])
async def test_clock_jumps_make_no_entry_live_longer(
    start: StartEnvironment, store: str, offset: float, source: str
) -> None:
    async with start() as environment:
        one, two = JumpingClock(), JumpingClock()
        chosen = settings(environment, store)
        async with running_proxy.running(chosen, one) as first:
            assert (await first.get(target(A))).headers["x-cache"] == "miss"
        two.offset = offset
        async with running_proxy.running(chosen, two) as second:
            assert (await second.get(target(A))).headers["x-cache"] == source


@hypothesis_settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 3), st.sampled_from("ABC"), st.integers(0, 200)), max_size=12))
async def test_every_result_is_paid_for_once_in_its_lifetime(
    start: StartEnvironment, tmp_path: Path, steps: list[tuple[int, str, int]]
) -> None:
    """Four services of two applications, asked in any order at any time: a result is billed again only when all
    entries of its application have expired."""
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    folder.mkdir()
    async with start() as environment:
        chosen = settings(environment, f"sqlite:{folder}/state.sqlite")
        other = msgspec.structs.replace(chosen, applications={"other": chosen.applications["demo"]})
        async with others(environment, chosen, chosen, other, other) as services:
            fresh: dict[tuple[int, str], float] = {}
            for service, letter, seconds in steps:
                environment.time.advance(seconds)
                key, now = (service // 2, letter), environment.time.now()
                query = {"A": A, "B": B, "C": C}[letter]
                # "shared": another service has just fetched it, and stores it within 30 ms.
                free, is_fresh = ("hit", "shared"), fresh.get(key, 0) > now
                assert (figures(await services[service].get(target(query, query))).source in free) == is_fresh
                if not is_fresh:
                    fresh[key] = now + 300
