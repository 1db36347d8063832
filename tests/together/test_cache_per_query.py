"""Results are stored by query: billed parts of a BOM, batches, and headers."""

import json
import re
from typing import Any

import pytest
from support import running_proxy, scripted_upstream
from together.environment import StartEnvironment, target

A, B, C = {"mpn": "SN74S74N"}, {"mpn": "1N4007"}, {"mpn": "SN74S74D"}


def figures(reply: Any) -> tuple[str, int]:
    return reply.headers["x-cache"], int(reply.headers["x-parts-cost"])


async def test_overlapping_bom_is_billed_for_new_queries_only(start: StartEnvironment) -> None:
    async with start() as environment:
        first = await environment.get(target(A, B))
        billed = environment.billed_parts
        second = await environment.get(target(B, C, A))
        assert figures(first) == ("miss", billed)
        assert figures(second) == ("miss", environment.billed_parts - billed)
        assert [query["mpn"] for query in environment.sent_variables[-1]["queries"]] == ["SN74S74D"]
        items = [result["items"] for result in second.json["results"]]
        assert [items[2], items[0]] == [result["items"] for result in first.json["results"]]
        assert figures(await environment.get(target(C, A))) == ("hit", 0)


async def test_repeated_response_is_identical(start: StartEnvironment) -> None:
    async with start() as environment:
        replies = [await environment.get(target(A, B)) for _ in range(4)]
        assert [figures(reply)[0] for reply in replies] == ["miss", "hit", "hit", "hit"]
        assert len({json.dumps({**reply.json, "msec": 0}) for reply in replies}) == 1
        counted = (await environment.get("/metrics")).body.decode()
        assert re.findall(r'v3bridge_queries_total{source="(\w+)"} (\S+)', counted) == [("miss", "2.0"), ("hit", "6.0")]
        environment.time.advance(84_601)
        assert figures(await environment.get(target(A, B)))[0] == "miss"


@pytest.mark.parametrize("more", ["&callback=f", "&pretty_print=1", "&slice[offers]=0:1", "&show[]=mpn"])
async def test_repeated_response_keeps_its_style(start: StartEnvironment, more: str) -> None:
    async with start() as environment:
        await environment.get(target(A, B))
        replies = [await environment.get(target(A, B, more=more)) for _ in range(3)]
        assert {figures(reply) for reply in replies} == {("hit", 0)}
        assert len({reply.body.replace(b" ", b"") for reply in replies}) == 1
        assert len({reply.headers["content-type"] for reply in replies}) == 1


async def test_part_by_uid_is_found_in_results_of_other_queries_while_they_are_fresh(start: StartEnvironment) -> None:
    async with start() as environment:
        uids = [part["uid"] for result in await environment.results(A, B) for part in result["items"]]
        key = f"apikey={running_proxy.KEY}"
        one, many = f"/v3/parts/{uids[0]}?{key}", f"/v3/parts/get_multi?{key}" + "".join(f"&uid[]={u}" for u in uids)
        found = [await environment.get(target) for target in (one, many, f"{one}&include[]=descriptions")]
        assert [figures(reply) for reply in found] == [("hit", 0)] * 3
        assert found[0].json == found[1].json[uids[0]]
        assert found[0].json.items() < found[2].json.items()
        environment.time.advance(84_601)
        fetched = [await environment.get(target) for target in (one, many)]
        assert [figures(reply) for reply in fetched] == [("miss", 1), ("miss", len(uids) - 1)]
        assert [reply.json for reply in fetched] == [reply.json for reply in found[:2]]


async def test_match_pays_for_what_smaller_pages_lack(start: StartEnvironment) -> None:
    pages = (({"limit": 2}, 2), ({"limit": 3}, 1), ({"start": 1, "limit": 1}, 0), ({"start": 2, "limit": 2}, 1))
    async with start() as environment:
        for page, cost in pages:
            reply = await environment.get(target({**A, **page}))
            assert figures(reply) == ("miss" if cost else "hit", cost)


async def test_search_is_cached_with_its_counts(start: StartEnvironment) -> None:
    async with start() as environment:
        path = f"/v3/parts/search?apikey={running_proxy.KEY}&q=resistor&limit=2&facet[fields][brand.name][include]=1"
        first, second = [await environment.get(path) for _ in range(2)]
        assert [figures(first), figures(second)] == [("miss", 2), ("hit", 0)]
        assert {**first.json, "msec": 0} == {**second.json, "msec": 0}
        assert figures(await environment.get(path + "&include[]=specs")) == ("hit", 0)


async def test_partial_failure_leaves_other_results(start: StartEnvironment) -> None:
    async with scripted_upstream.running() as upstream:
        good = {"data": {"supMultiMatch": [{"hits": 0, "parts": [], "error": None}] * 5}}
        upstream.respond_with(good, scripted_upstream.ScriptedResponse(b"gone", 502))
        settings = running_proxy.settings(upstream.graphql_url, upstream.token_url, application={"features": "all"})
        async with running_proxy.running(settings) as proxy:
            reply = await proxy.match(json.dumps([{"mpn": f"number-{n}", "limit": 20} for n in range(10)]))
        errors = [result["error"] for result in reply["results"]]
        assert sorted(errors, key=str) == [*[None] * 5, *["the GraphQL service answered with HTTP 502"] * 5]
