"""What responses say of their cost, their source and the parts that are left: stored, shared and refused ones."""

import asyncio
import re
from pathlib import Path
from typing import Any

from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, single_application, target

import nexar_sandbox
from proxy import config

ONE, NONE = {"mpn": "SN74S74N"}, {"sku": "none such"}
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


async def test_equal_requests_under_way_share_one_operation_and_none_gets_what_it_did_not_ask_for(
    environment: ProxyEnvironment,
) -> None:
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


async def test_part_limit_of_the_upstream_is_a_429_until_the_next_month_also_after_a_restart(
    start: StartEnvironment, tmp_path: Path
) -> None:
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
