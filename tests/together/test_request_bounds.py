"""Tests of request bounds over HTTP: beyond a bound is a 400 that names it; within, no other request is delayed."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest
from support import running_proxy, scripted_upstream
from together.environment import ProxyEnvironment

ENTRIES = 10_000
KEY = f"apikey={running_proxy.KEY}"


@pytest.fixture
async def client() -> AsyncIterator[running_proxy.ProxyClient]:
    """A proxy whose upstream has nothing but long lists of makers, sellers and categories."""
    entries: list[dict[str, Any]] = [
        {"id": str(n), "name": f"Maker {n}", "aliases": [], "homepageUrl": None} for n in range(ENTRIES)
    ]
    async with scripted_upstream.running() as upstream:
        upstream.respond_with({"data": {"supManufacturers": entries}})
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url)
        async with running_proxy.running(settings) as client:
            yield client


COUNTED = "facet[fields], facet[queries][], stats: at most 20 counts together"


def many(name: str, count: int, value: str = "{}") -> str:
    return "&".join(f"{name}={quote(value.format(n))}" for n in range(count))


async def refusal(client: running_proxy.ProxyClient, target: str) -> Any:
    response = await client.get(target)
    body = await response.json()
    assert (response.status, body["__class__"]) == (400, "ClientErrorResponse"), body
    return body["message"]


SEARCHES = [
    (f"q={'a' * 2001}", "q: at most 2000 characters in a search, not 2001"),
    (f"sortby={quote('name asc,' * 10 + 'uid')}", "sortby: at most 10 fields, not 11"),
    (
        "&".join(f"filter[fields][specs.key{n}.value][]=1" for n in range(21)),
        "filter[fields]: at most 20 fields, not 21",
    ),
    (many("filter[fields][name][]", 201), "filter[fields][name][]: at most 200 values for each field, not 201"),
    (
        f"filter[fields][name][]={'x' * 2001}",
        "filter[fields][name][]: at most 2000 characters each, not 2001",
    ),
    (many("filter[queries][]", 21, "name:{}"), "filter[queries][]: at most 20 queries, not 21"),
    (many("facet[queries][]", 21, "name:{}"), f"{COUNTED}, not 21"),
    ("&".join(f"facet[fields][name{n}][include]=1" for n in range(21)), f"{COUNTED}, not 21"),
    ("&".join(f"stats[name{n}][include]=1" for n in range(21)), f"{COUNTED}, not 21"),
    (
        many("facet[queries][]", 6, "name:{}" + "x" * 1700),
        "filter[queries][], facet[queries][]: at most 10000 characters together, not 10236",
    ),
    (
        f"filter[queries][]=name:{'x' * 1996}",
        f"filter query 'name:{'x' * 35}'…: at most 2000 characters each, not 2001",
    ),
    (
        many("filter[queries][]", 1, " AND ".join(["name:x"] * 101)),
        "filter[fields], filter[queries][]: at most 100 conditions together, not 101",
    ),
    (
        many("facet[queries][]", 1, " AND ".join(["name:x"] * 101)),
        "facet[queries][]: at most 100 conditions together, not 101",
    ),
    (
        f"{many('filter[fields][name][]', 6, '*{}')}&{many('facet[queries][]', 5, 'name:*{}')}",
        "filter[fields][<field>][], filter[queries][], facet[queries][]: at most 10 values with * together, not 11",
    ),
]


async def test_search_beyond_a_bound_is_refused_naming_the_parameter(client: running_proxy.ProxyClient) -> None:
    for query, message in SEARCHES:
        assert await refusal(client, f"/v3/brands/search?{KEY}&{query.replace('specs.key', 'name')}") == message
        assert await refusal(client, f"/v3/parts/search?{KEY}&{query}") == message


async def test_list_search_at_its_bounds_is_accepted(client: running_proxy.ProxyClient) -> None:
    queries = [
        f"q={'maker+' * 333}",
        f"sortby={quote(','.join(['name desc', 'uid asc'] * 5))}",
        many("filter[fields][name][]", 190, "Maker {}"),
        many("filter[fields][name][]", 5, "Maker *{}1"),
        many("filter[queries][]", 20, "name:[Maker TO Nobody]"),
        many("facet[queries][]", 17, "name:Maker{}"),
        *(f"facet[fields][{field}][include]=1" for field in ("uid", "name", "homepage_url")),
    ]
    response = await client.get(f"/v3/brands/search?{KEY}&{'&'.join(queries)}")
    body = await response.json()
    assert response.status == 200, body
    assert body["hits"] > 190
    assert len(body["facet_results"]["queries"]) == 17


async def test_too_many_parameters_are_refused_before_authentication(client: running_proxy.ProxyClient) -> None:
    for key in ("", f"{KEY}&"):
        message = await refusal(client, f"/v3/parts/match?{key}{'a=&' * 20_000}")
        assert message == f"query string: at most 1000 parameters, not {20_001 + bool(key)}"


async def test_too_deep_or_too_large_json_is_refused(client: running_proxy.ProxyClient) -> None:
    for queries in ("9" * 60_000, "[" + "9" * 60_000 + "]", '[{"mpn":"X","start":' + "9" * 5_000 + "}]", "[" * 60_000):
        message = await refusal(client, f"/v3/parts/match?{KEY}&queries={queries}")
        assert message.startswith("queries is not valid JSON")


async def test_reference_may_be_deeply_nested(client: running_proxy.ProxyClient) -> None:
    for depth in (300, 900):
        deep = f'[{{"mpn":"-","reference":{"[" * depth}{"]" * depth}}}]'
        response = await client.get(f"/v3/parts/match?{KEY}&pretty_print=1&queries={deep}")
        assert (response.status, (await response.text()).count("[") > 2 * depth) == (200, True)


async def test_query_of_which_a_filter_would_be_lost_is_refused_for_nothing(environment: ProxyEnvironment) -> None:
    queries = ({"sku": "67K1122", "q": "flip-flop"}, {"mpn": "SN74*", "q": "flip-flop"}, {"mpn": "SN7*", "sku": "1"})
    found = await environment.results(*queries)
    assert [result["error"] for result in found] == [
        "q and sku cannot be combined",
        "q and mpn cannot be combined",
        "mpn and sku cannot be combined with wildcards",
    ]
    assert (environment.billed_parts, environment.sandbox.request_counts.graphql) == (0, 0)


async def test_lone_surrogate_fails_only_its_query(environment: ProxyEnvironment) -> None:
    queries = '[{"mpn":"SN74S74N","reference":"\\ud83d"},{"mpn":"\\ud800"},{"mpn":"X\\udfff1"}]'
    first, second, third = (await environment.proxy.match(queries))["results"]
    assert (len(first["items"]), first["reference"]) == (3, "?")
    assert (second["error"], third["error"]) == ("mpn has no letters or digits", None)


async def test_client_input_is_never_part_of_a_document(environment: ProxyEnvironment) -> None:
    odd = "zz} evil { __typename"
    more = f"&show[]={quote(odd)}&include[]={quote(odd)}&slice[{quote(odd)}]=0:1"
    await environment.results({"mpn": odd, "brand": odd}, {"sku": odd, "reference": odd}, more=more)
    sent = [query for variables in environment.sent_variables for query in variables["queries"]]
    assert {"sku": odd, "start": 0, "limit": 3} in sent
    assert {"mpn": odd.upper(), "manufacturer": odd, "start": 0, "limit": 3} in sent
    assert not any("evil" in document.lower() for document, _ in environment.sandbox.documents)


async def test_long_list_search_does_not_block_other_requests(client: running_proxy.ProxyClient) -> None:
    """Turns of the event loop, counted by a task that does nothing else."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def turns_of(target: str) -> int:
        before = turns
        response = await client.get(target)
        assert response.status == 200, await response.text()
        return turns - before

    await client.get(f"/v3/brands/search?{KEY}&q=none")
    counting = asyncio.create_task(count())
    try:
        short = min([await turns_of(f"/v3/brands/search?{KEY}&q=none") for _ in range(3)])
        patterns = many("filter[queries][]", 10, "name:*{}*")
        long = min([await turns_of(f"/v3/brands/search?{KEY}&{patterns}&limit={n}") for n in range(3)])
    finally:
        counting.cancel()
    assert long - short >= 9 * ENTRIES / 1_000  # about one for each slice of each of ten patterns
