"""The page Cache: entries, bytes and hits of both caches, and clearing them in all workers."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support import redis_server as servers
from support.running_admin import BEARER
from together.environment import ProxyEnvironment, StartEnvironment

from proxy.gateway.cache import clearing

QUERY = {"mpn": "SN74S74N"}


@pytest.fixture
async def caching(start: StartEnvironment, tmp_path: Path) -> AsyncIterator[ProxyEnvironment]:
    """A response cache in memory, and one that is shared through a file."""
    async with start(admin=True, cache={"seconds": 300}, store=f"sqlite:{tmp_path}/state.sqlite") as ready:
        yield ready


async def flush(environment: ProxyEnvironment) -> None:
    """Wait until entries are in the shared cache, which gets them after the response."""
    shared = environment.admin.service.gateway.cache.shared
    assert shared is not None
    await shared.flush()


async def clearing_seen(environment: ProxyEnvironment) -> None:
    """Wait until the process has looked for the note."""
    cache = environment.admin.service.gateway.cache
    assert cache.entries is not None
    async with asyncio.timeout(60):
        while cache.entries.usage()[0]:
            await asyncio.sleep(clearing.LOOK_SECONDS / 10)


async def test_figures_are_those_of_both_caches(caching: ProxyEnvironment) -> None:
    for _ in range(3):
        await caching.results(QUERY)
    await caching.results({"mpn": "ATMEGA328P-PU"})
    await flush(caching)
    page = await caching.admin.json("/cache.json")
    gateway = caching.admin.service.gateway
    assert gateway.cache.entries is not None
    entries, size = gateway.cache.entries.usage()
    queries, responses = page["memory"]
    assert (queries["entries"], queries["bytes"]) == (entries, size)
    assert entries == 2
    assert responses["entries"] == 1
    assert queries["limit"] + responses["limit"] == gateway.settings.cache.bytes
    (shared,) = page["shared"]
    assert gateway.cache.shared is not None
    (usage,) = await gateway.cache.shared.usage()
    assert (shared["application"], shared["entries"], shared["bytes"]) == ("demo", 2, usage.bytes)
    sources = {each["name"]: each["queries"] for each in page["sources"]}
    assert (sources["memory"], sources["upstream"]) == (2, 2)
    assert page["hit_ratio"] == 0.5
    assert page["parts_per_query"] == caching.billed_parts / 2
    assert shared["refetch_parts"] == caching.billed_parts


async def test_clearing_an_application_costs_what_the_page_says(caching: ProxyEnvironment) -> None:
    await caching.results(QUERY)
    await flush(caching)
    before = caching.billed_parts
    html = await caching.admin.page("/cache")
    assert f"about {before} parts" in html
    await caching.admin.sign_in()
    response = await caching.admin.submit("/cache", "/clear", application="demo")
    assert response.status == 303
    await clearing_seen(caching)
    page = await caching.admin.json("/cache.json")
    assert (page["shared"], [each["entries"] for each in page["memory"]]) == ([], [0, 0])
    await caching.results(QUERY)
    assert caching.billed_parts == 2 * before


async def test_clearing_everything_also_clears_encoded_responses(caching: ProxyEnvironment) -> None:
    for _ in range(3):
        await caching.results(QUERY)
    before = caching.billed_parts
    assert "all applications" in await caching.admin.act("/cache/clear")
    await clearing_seen(caching)
    await caching.results(QUERY)
    assert caching.billed_parts == 2 * before


@pytest.mark.parametrize(
    "query, field, reason",
    [("", "application", "no application"), ("", "app", "are application,"), ("?application=demo", "csrf", "the body")],
)
async def test_clearing_what_is_not_named_rightly_is_refused(
    caching: ProxyEnvironment, query: str, field: str, reason: str
) -> None:
    await caching.results(QUERY)
    response = await caching.admin.send("POST", f"/cache/clear{query}", headers=BEARER, data={field: "another"})
    assert (response.status, reason in await response.text()) == (400, True)
    assert (await caching.admin.json("/cache.json"))["memory"][0]["entries"] == 1


async def test_empty_cache_says_what_it_will_hold(caching: ProxyEnvironment) -> None:
    html = await caching.admin.page("/cache")
    assert "No query yet" in html
    assert "The shared cache is empty" in html


async def test_cache_that_is_off_says_which_setting_does_it(start: StartEnvironment) -> None:
    async with start(admin=True, cache={"seconds": 0}) as ready:
        html = await ready.admin.page("/cache")
        assert "The response cache is off: <code>cache.seconds</code>" in html
        assert "/cache/clear" not in html


async def test_page_shows_the_memory_while_the_store_is_down(
    start: StartEnvironment, redis_server: servers.RedisServer
) -> None:
    async with start(admin=True, cache={"seconds": 300}, store=redis_server.url) as environment:
        await environment.results(QUERY)
        await flush(environment)
        assert (await environment.admin.json("/cache.json"))["shared"]
        redis_server.stop()
        try:
            data, page = await environment.admin.json("/cache.json"), await environment.admin.page("/cache")
        finally:
            redis_server.start()
        assert data["store_failure"]
        assert (data["shared"], data["memory"][0]["entries"]) == ([], 1)
        assert "The store cannot be used" in page
        assert "The shared cache is empty" not in page
