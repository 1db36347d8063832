"""A field that the upstream refuses breaks no request: parts are then fetched with the fields that were asked for."""

import asyncio
import itertools
import re
from collections import Counter

import pytest
from support import cases, running_proxy
from together.environment import ProxyEnvironment, StartEnvironment, single_application, target

import nexar_sandbox

ONE, OTHER, THIRD = {"mpn": "SN74S74N"}, {"mpn": "1N4007"}, {"mpn": "NE555P"}
KEPT = {"seconds": 300}
LACKING = nexar_sandbox.parse_faults("missing-field field=SupPart.totalAvail")
KEY = f"apikey={running_proxy.KEY}"


@cases.parametrize("path")
async def test_response_without_the_field_is_that_of_whole_parts(start: StartEnvironment, path: str) -> None:
    async with start(cache=KEPT) as whole, start(cache=KEPT) as lacking:
        lacking.sandbox.faults.replace(LACKING)
        expected, found = [(await each.get(f"{path}&{KEY}".replace("28a&", "28a?"))).json for each in (whole, lacking)]
        assert {**found, "msec": 0} == {**expected, "msec": 0}
        assert lacking.billed_parts == whole.billed_parts


def unique_numbers(catalog: nexar_sandbox.Catalog, count: int) -> list[str]:
    """Numbers of one part each."""
    parts = list(catalog.parts())
    spellings = Counter(re.sub(r"\W", "", mpn).upper() for part in parts for mpn in (part.mpn, *part.aka_mpns))
    return [part.mpn for part in parts if spellings[re.sub(r"\W", "", part.mpn).upper()] == 1][:count]


async def operations(environment: ProxyEnvironment) -> int:
    """GraphQL requests sent, refused ones among them."""
    metrics = (await environment.get("/metrics")).body.decode()
    counts = re.findall(r'^v3bridge_upstream_requests_total\{.*"supMultiMatch.*\} (\S+)$', metrics, re.MULTILINE)
    return sum(map(int, map(float, counts)))


async def test_refusal_of_whole_parts_is_remembered(start: StartEnvironment) -> None:
    async with start(cache=KEPT) as environment:
        environment.sandbox.faults.replace(LACKING)
        for query, sent in ((ONE, 2), (OTHER, 3), (THIRD, 4)):
            (result,) = await environment.results(query)
            assert (result["error"], bool(result["items"]), await operations(environment)) == (None, True, sent)


async def test_requests_in_flight_are_all_answered(start: StartEnvironment) -> None:
    async with start(cache=KEPT) as environment:
        environment.sandbox.faults.replace(LACKING)
        results = await asyncio.gather(*(environment.results(query) for query in (ONE, ONE, OTHER, ONE, THIRD)))
        assert all(result["error"] is None and result["items"] for (result,) in results)


async def test_feature_that_the_plan_lacks_breaks_only_requests_for_it(start: StartEnvironment) -> None:
    plan = {"applications": single_application(features=frozenset())}
    async with start(cache=KEPT, sandbox=plan, application={"features": "all"}) as environment:
        (gated,) = await environment.results(ONE, more="&include[]=specs")
        sent = await operations(environment)
        (again,) = await environment.results(ONE, more="&include[]=specs")
        assert "TECH_SPECS" in gated["error"]
        assert again == gated
        assert await operations(environment) == sent + 1 == 3
        (plain,) = await environment.results(ONE)
        assert (plain["error"], len(plain["items"])) == (None, 3)


async def test_other_features_stay_in_parts_without_the_one_that_is_refused(start: StartEnvironment) -> None:
    """What a feature is missing for is fetched with the other request's fields: only the refused one is left out."""
    plan = {"applications": single_application(features=frozenset({"DATASHEETS"}))}
    async with start(cache=KEPT, sandbox=plan, application={"features": "all"}) as environment:
        first = await environment.get(target(ONE))
        assert (first.headers["x-parts-cost"], environment.billed_parts) == ("6", 3)  # 3 of them uncertain
        assert await operations(environment) == 2
        await environment.results(ONE, more="&include[]=descriptions&include[]=imagesets&include[]=category_uids")
        assert await operations(environment) == 2
        (documented,) = await environment.results(OTHER, more="&include[]=datasheets")
        assert (documented["error"], await operations(environment)) == (None, 3)


async def test_batch_that_is_too_complex_is_halved_for_good(
    start: StartEnvironment, catalog: nexar_sandbox.Catalog
) -> None:
    more = [{"mpn": mpn, "limit": 1} for mpn in unique_numbers(catalog, 31)]
    queries = more[:20]
    # 20 parts have more fields than this, 10 have not.
    async with start(cache=KEPT, sandbox={"answer_fields": 20_000}) as environment:
        first = await environment.get(target(*queries))
        assert [(each["error"], len(each["items"])) for each in first.json["results"]] == [(None, 1)] * len(queries)
        assert int(first.headers["x-parts-cost"]) == len(queries) + environment.billed_parts == 2 * len(queries)
        assert await operations(environment) == 3
        await environment.results(*more[20:])
        assert await operations(environment) == 5


async def test_batch_whose_response_is_too_large_is_halved_for_good(
    start: StartEnvironment, catalog: nexar_sandbox.Catalog
) -> None:
    queries = [{"mpn": mpn, "limit": 1} for mpn in unique_numbers(catalog, 20)]
    async with start(cache=KEPT, upstream={"response_bytes": 400_000}) as environment:
        first = await environment.get(target(*queries))
        assert [(each["error"], len(each["items"])) for each in first.json["results"]] == [(None, 1)] * len(queries)
        assert environment.billed_parts == int(first.headers["x-parts-cost"]) == 2 * len(queries)
        assert await operations(environment) == 3


async def test_batch_that_is_too_deep_is_sent_again_with_the_fields_that_are_shown(
    start: StartEnvironment, catalog: nexar_sandbox.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A smaller batch would be as deep. The upstream refuses before it executes, so nothing is uncertain."""
    documents = "nexar_sandbox.graphql.documents"
    monkeypatch.setattr(f"{documents}.MAX_DEPTH", 5)  # prices of offers are deeper
    # Not the cache: other tests send the same documents.
    monkeypatch.setattr(f"{documents}.DocumentCache.read", lambda cache, text: cache._read(text))
    queries = [{"mpn": mpn, "limit": 1} for mpn in unique_numbers(catalog, 22)]
    async with start(cache=KEPT) as environment:
        first = await environment.get(target(*queries[:20], more="&hide[]=offers"))
        assert [(each["error"], len(each["items"])) for each in first.json["results"]] == [(None, 1)] * 20
        assert int(first.headers["x-parts-cost"]) == environment.billed_parts == 20
        assert await operations(environment) == 2
        await environment.results(queries[20], more="&hide[]=offers")
        assert await operations(environment) == 3
        (deep,) = await environment.results(queries[21])
        assert "execution depth of 6" in deep["error"]


async def test_batches_have_as_many_parts_as_their_usual_size_allows(
    start: StartEnvironment, catalog: nexar_sandbox.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [{"mpn": mpn, "limit": 1} for mpn in unique_numbers(catalog, 21)]
    async with start(cache=KEPT) as environment:
        await environment.results(queries[0])
        monkeypatch.setattr("proxy.gateway.plan_knowledge.BATCH_BYTES", 1)
        await environment.results(*queries[1:5])
        assert await operations(environment) == 1 + 4
        monkeypatch.setattr("proxy.gateway.plan_knowledge.BATCH_BYTES", 4_000_000)
        await environment.results(*queries[5:])
        assert await operations(environment) == 1 + 4 + 1


async def test_part_is_paid_once_a_day(start: StartEnvironment, catalog: nexar_sandbox.Catalog) -> None:
    unique = unique_numbers(catalog, 60)
    clients = [
        ("", 1),
        ("&include[]=descriptions&include[]=imagesets", 3),
        ("&include[]=specs&include[]=datasheets", 1),
        ("&hide[]=offers", 20),
    ]
    async with start(cache={"seconds": 84_600}, application={"features": "all"}) as environment:
        for seconds in (0, 6 * 60, 23 * 3600):
            environment.time.advance(seconds)
            for (more, limit), first in itertools.product(clients, range(0, 60, 20)):
                queries = [{"mpn": mpn, "limit": limit} for mpn in unique[first : first + 20]]
                results = await environment.results(*queries, more=more)
                assert [[part["mpn"] for part in result["items"]] for result in results] == [
                    [query["mpn"]] for query in queries
                ]
                uids = "".join(f"&uid[]={result['items'][0]['uid']}" for result in results)
                reply = await environment.get(f"/v3/parts/get_multi?{KEY}{uids}{more}")
                assert len(reply.json) == 20
        assert environment.billed_parts == 60
