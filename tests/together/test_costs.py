"""What requests cost, by the sandbox's counter: as documented, at most as estimated, and as the headers say."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support import running_proxy
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, single_application, target

import nexar_sandbox
from proxy import config
from proxy.traffic import reading
from proxy.traffic.v3_request import V3Request, parse_target
from proxy.v3 import endpoints

DAY = 86_401
TI = "9cf2558336484335"
OLD, NEW = "103cdb613d20cffb", "bd4d768f82c5628a"
NOBODY = "ffffffffffffffff"
R = "specs.resistance.value"
COUNTS = (
    "facet[fields][brand.name][include]=1&facet[fields][brand.name][exclude_filter]=1"
    f"&facet[fields][{R}][include]=1&stats[{R}][include]=1&stats[{R}][exclude_filter]=1"
    f"&facet[queries][]={R}:[1000+TO+*]&facet[queries][]=avg_avail:[1+TO+*]"
    "&spec_drilldown[include]=1&spec_drilldown[exclude_filter]=1"
)
COSTS = [
    ("/v3/parts/search?q=resistor", 10),
    ("/v3/parts/search?q=resistor&limit=100", 78),
    ("/v3/parts/search?q=resistor&start=73", 5),
    ("/v3/parts/search?q=resistor&start=78", 0),
    ("/v3/parts/search?q=resistor&limit=0", 0),
    ("/v3/parts/search?q=none-such", 0),
    ("/v3/parts/search?q=resistor&limit=7&show[]=no_such_field", 7),
    (f"/v3/parts/search?q=resistor&limit=2&filter[fields][brand.name][]=Yageo&{COUNTS}", 2),
    (f"/v3/parts/{TI}", 1),
    (f"/v3/parts/{OLD}", 1),
    (f"/v3/parts/{NOBODY}", 0),
    (f"/v3/parts/get_multi?uid[]={TI}&uid[]={NOBODY}&uid[]={TI}&uid[]=no-uid", 1),  # unknown ones and repeated ones
    (f"/v3/parts/get_multi?uid[]={TI}&uid[]={NEW}", 2),
    (f"/v3/parts/get_multi?uid[]={OLD}&uid[]={NEW}", 2),  # both lead to one part
    ("/v3/brands/search?q=texas&facet[fields][name][include]=1", 0),
    ("/v3/brands/2239e3330e2df5fe", 0),
    ("/v3/brands/get_multi?uid[]=2239e3330e2df5fe", 0),
    ("/v3/sellers/search?q=*", 0),
    ("/v3/sellers/2c3be9310496fffc", 0),
    ("/v3/seller/2c3be9310496fffc", 0),
    ("/v3/sellers/get_multi?uid[]=2c3be9310496fffc", 0),
    ("/v3/categories/search?stats[num_parts][include]=1", 0),
    ("/v3/categories/8a1e4714bb3951d9", 0),
    ("/v3/categories/get_multi?uid[]=8a1e4714bb3951d9", 0),
]
ONE, STAR = {"mpn": "SN74S74N"}, {"mpn": "atmega328*"}
# Queries of /parts/match, and the parts that they cost by supMultiMatch, and where a single one goes by supSearchMpn,
# which bills partial matches, too.
MATCHES: list[tuple[list[dict[str, Any]], int, int]] = [
    ([ONE], 3, 3),
    ([{**ONE, "limit": 20}], 4, 6),
    ([{**ONE, "limit": 0}], 0, 0),
    ([{"mpn": "SN74S7"}], 0, 3),
    ([{"mpn": "none-such-number"}], 0, 0),
    ([ONE, ONE], 3, 3),
    ([{**ONE, "limit": 20}, {"mpn": "none-such-number"}], 4, 4),
    ([{**ONE, "brand": "TI"}], 1, 1),
    ([{"sku": "67K1122"}], 1, 1),
    ([{"mpn_or_sku": "67K1122"}], 1, 1),
    ([{"sku": "67K1122", "seller": "Digi-Key"}], 0, 0),
    ([{"q": "flip-flop"}], 3, 3),
    ([STAR], 3, 3),
    ([{**STAR, "limit": 20}], 5, 5),
    ([{"q": "flip-flop"}, STAR, ONE, {"sku": "67K1122"}], 10, 10),
    ([{}], 0, 0),
    ([STAR, {"mpn": "X", "limit": 21}, {"mpn": "a*"}], 3, 3),
]
EXACT = "&exact_only=true"


def match(queries: list[dict[str, Any]], more: str = "") -> str:
    return f"/v3/parts/match?queries={quote(json.dumps(queries))}{more}"


@pytest.mark.parametrize("single", ["supMultiMatch", "supSearchMpn"])
async def test_bills_are_those_of_the_table_and_at_most_the_estimate(start: StartEnvironment, single: str) -> None:
    known: list[tuple[str, int | None]] = [*COSTS]
    for queries, by_multi_match, by_search in MATCHES:
        known.append((match(queries), by_multi_match if single == "supMultiMatch" else by_search))
        known.append((match(queries, EXACT), None))
    total = 0
    async with start(translation={"single_query": single}) as environment:
        for target, parts in known:
            environment.time.advance(DAY)  # nothing is stored any more
            before, url = environment.billed_parts, f"{target}{'&' if '?' in target else '?'}apikey={running_proxy.KEY}"
            quoted = await environment.get(url, "HEAD")
            assert environment.billed_parts == before, target
            reply = await environment.get(url)
            billed = environment.billed_parts - before
            total += billed
            assert billed <= int(quoted.headers.get("x-parts-cost", 0)), target
            again = await environment.get(url, "HEAD")
            if billed:
                assert (quoted.status, source(quoted)[0], source(again)) == (200, "miss", ("hit", 0)), target
            assert (reply.status in (200, 404), billed) == (True, billed if parts is None else parts), target
            path, query, _ = parse_target(target)
            assert billed <= reading.worst_case_parts(V3Request(path, query)), target
        metrics = (await environment.get("/metrics")).body.decode()
        assert f'v3bridge_parts_returned_total{{application="demo"}} {total:.1f}' in metrics


def test_table_has_every_endpoint_and_those_of_lists_are_documented_as_free() -> None:
    paths = {target.partition("?")[0].removeprefix("/v3") for target in (*(each for each, _ in COSTS), match([]))}
    for endpoint in endpoints.ENDPOINTS:
        start = endpoint.path.partition("{")[0]
        assert any(path == start or (start.endswith("/") and path.startswith(start)) for path in paths), endpoint.path
        assert endpoint.cost.startswith("nothing") is not endpoint.path.startswith("/parts")


NONE = {"sku": "none such"}
TO_DECEMBER = 1_388_800  # seconds from 2023-11-14T22:13:20Z
ERP, SHOP = "key-of-erp", "key-of-shop"
KEYS = (
    config.ApiKeySettings(config.digest(ERP), name="erp", parts=12),
    config.ApiKeySettings(config.digest(SHOP), name="shop"),
)
MANNERS = ("", "&callback=f", "&pretty_print=1", "&slice[offers]=0:1", "&show[]=mpn")


def source(reply: RawResponse) -> tuple[str, int]:
    return reply.headers["x-cache"], int(reply.headers["x-parts-cost"])


def parts(reply: RawResponse) -> dict[str, str]:
    """Return the values of the headers about parts."""
    return {
        name.removeprefix("x-parts-"): value for name, value in reply.headers.items() if name.startswith("x-parts-")
    }


async def refusal(environment: ProxyEnvironment, *queries: Any) -> RawResponse:
    failure = await environment.failure(*queries)
    assert (failure.status, failure.json["__class__"]) == (429, "ClientErrorResponse")
    quoted = await environment.get(target(*queries), "HEAD")
    assert (quoted.status, parts(quoted)) == (429, parts(failure))
    return failure


async def test_repeated_response_is_the_same_in_every_manner(start: StartEnvironment) -> None:
    async with start() as environment:
        assert source(await environment.get(target(ONE, NONE))) == ("miss", 3)
        for manner in MANNERS:
            replies = [await environment.get(target(ONE, NONE, more=manner)) for _ in range(3)]
            assert {source(reply) for reply in replies} == {("hit", 0)}
            assert len({re.sub(rb'"msec": ?\d+', b"", reply.body) for reply in replies}) == 1
            assert len({reply.headers["content-type"] for reply in replies}) == 1
        counted = (await environment.get("/metrics")).body.decode()
        assert re.findall(r'v3bridge_queries_total{source="(\w+)"} (\S+)', counted) == [
            ("miss", "2.0"),
            ("hit", "30.0"),
        ]
        environment.time.advance(84_601)
        assert source(await environment.get(target(ONE, NONE))) == ("miss", 3)


async def test_equal_requests_under_way_share_one_operation_and_no_encoding(environment: ProxyEnvironment) -> None:
    await environment.get(target(NONE))  # which requests the token
    before = environment.sandbox.request_counts.graphql
    environment.sandbox.faults.replace(nexar_sandbox.parse_faults("latency ms=200"))
    line = f"GET {target(ONE, ONE)} HTTP/1.1".encode()
    fields = [*[()] * 4, *[(b"Accept-Encoding: gzip",)] * 4]
    left = asyncio.create_task(environment.raw(line))
    replies = asyncio.gather(*(environment.raw(line, *each) for each in fields))
    await asyncio.sleep(0.05)
    left.cancel()
    assert [reply.headers.get("content-encoding") for reply in await replies] == [None] * 4 + ["gzip"] * 4
    assert {reply.headers["x-parts-used"] for reply in await replies} == {"3"}
    assert {source(reply) for reply in await replies} <= {("miss", 3), ("shared", 0)}
    assert environment.sandbox.request_counts.graphql - before == 1
    assert environment.billed_parts == 3


async def test_headers_have_what_is_left_of_the_key_or_of_its_application(start: StartEnvironment) -> None:
    async with start(application={"apikeys": KEYS}) as environment:
        replies = [await environment.get(target(ONE, NONE, key=key)) for key in (ERP, ERP, SHOP)]
        listed = await environment.get(f"/v3/brands/search?q=texas&apikey={ERP}")
    assert [parts(reply) for reply in replies] == [
        {"cost": "3", "used": "3", "limit": "12", "reset": str(TO_DECEMBER)},
        {"cost": "0", "used": "3", "limit": "12", "reset": str(TO_DECEMBER)},
        {"cost": "0", "used": "3", "reset": str(TO_DECEMBER)},
    ]
    assert (listed.status, parts(listed)) == (200, {})


async def test_request_beyond_the_limit_is_not_sent(start: StartEnvironment) -> None:
    async with start(application={"parts": 8}) as environment:
        await environment.results(ONE, NONE)
        asked = environment.sandbox.request_counts.graphql
        reply = await refusal(environment, {"mpn": "NE555P", "limit": 6})
        assert (environment.billed_parts, environment.sandbox.request_counts.graphql) == (3, asked)
        assert int(reply.headers["retry-after"]) == TO_DECEMBER
        assert parts(reply) == {"cost": "0", "used": "3", "limit": "8", "reset": str(TO_DECEMBER)}
        assert reply.json["message"].startswith("demo has 5 of 8 parts left (2023-11), and this request may cost ")
        environment.time.advance(TO_DECEMBER)
        await environment.results(ONE, NONE)


async def test_part_limit_of_the_upstream_is_a_429_until_next_month(start: StartEnvironment, tmp_path: Path) -> None:
    own = {"store": f"sqlite:{tmp_path}/state.sqlite", "sandbox": {"applications": single_application(part_limit=3)}}
    async with start(**own) as environment:
        before = await environment.results(ONE, NONE)
        refused = await refusal(environment, {"mpn": "1N4007"})
        assert refused.json["message"].startswith("You have exceeded your part limit of 3.")
        assert await environment.results(ONE, NONE) == before
    environment.time.advance(1_000)
    async with start(**own) as environment:
        refused = await refusal(environment, {"mpn": "1N4007"})
        assert int(refused.headers["retry-after"]) == TO_DECEMBER - 1_000
        assert environment.sandbox.request_counts.graphql == 0
        environment.time.advance(TO_DECEMBER - 1_000)
        assert (await environment.results(ONE, NONE))[0] == before[0]


async def test_plan_without_parts_says_so_and_promises_no_date(start: StartEnvironment) -> None:
    async with start(sandbox={"applications": single_application(part_limit=0)}) as environment:
        for _ in range(2):
            refused = await refusal(environment, ONE)
            assert refused.json["message"].startswith("this plan has no parts: ")
            assert "retry-after" not in refused.headers
            assert parts(refused)["used"] == "0"
            assert "reset" not in parts(refused)
        assert environment.sandbox.request_counts.graphql == 1


async def test_billed_parts_are_returned_although_their_count_is_refused(start: StartEnvironment) -> None:
    single = {"single_query": "supSearchMpn"}
    async with start(sandbox={"applications": single_application(part_limit=3)}, translation=single) as environment:
        (result,) = await environment.results(ONE)
        assert environment.billed_parts == 3
    assert (len(result["items"]), result["error"]) == (3, None)
