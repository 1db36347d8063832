"""Equal requests in flight cost one operation: counts, log lines, errors, clients that leave."""

import asyncio
import io
import json
from typing import Any

import pytest
from together.environment import ProxyEnvironment, RawResponse, target

import nexar_sandbox
from nexar_sandbox import faults

ASKED = target({"mpn": "SN74S74N"}, {"mpn": "SN74S74N"})  # two queries are one GraphQL request
NUMBER = 12


def slow(environment: ProxyEnvironment, milliseconds: int) -> None:
    environment.sandbox.faults.replace(nexar_sandbox.parse_faults(f"latency ms={milliseconds}"))


async def together(environment: ProxyEnvironment, number: int = NUMBER, asked: str = ASKED) -> list[RawResponse]:
    return await asyncio.gather(*(environment.get(asked) for _ in range(number)))


async def warmed(environment: ProxyEnvironment) -> int:
    """Get a token, so that only the requests under test take time; the number of GraphQL requests so far."""
    await environment.get(target({"mpn": "NO-SUCH-PART"}))
    return environment.sandbox.request_counts.graphql


async def metric(environment: ProxyEnvironment, name: str) -> float:
    lines = (await environment.get("/metrics")).body.decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def request_lines(log_output: io.StringIO) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log_output.getvalue().splitlines()]
    return [line for line in lines if line["event"] == "request completed" and line["route"] == "/v3/parts/match"]


async def test_equal_requests_are_executed_once(environment: ProxyEnvironment, log_output: io.StringIO) -> None:
    before = await warmed(environment)
    billed = environment.billed_parts
    slow(environment, 100)
    replies = await together(environment)
    assert {reply.status for reply in replies} == {200}
    assert environment.sandbox.request_counts.graphql - before == 1
    sources = sorted(reply.headers["x-cache"] for reply in replies)
    assert sources == ["miss"] + ["shared"] * (NUMBER - 1)
    assert sum(int(reply.headers["x-parts-cost"]) for reply in replies) == environment.billed_parts - billed == 3
    assert {reply.headers["x-parts-used"] for reply in replies} == {"3"}
    assert (
        await metric(environment, 'v3bridge_queries_total{source="shared"}') == 2 * NUMBER - 1
    )  # one of them by the first request's own second query
    assert await metric(environment, 'v3bridge_requests_total{route="/v3/parts/match",status="200"}') == NUMBER + 1
    lines = request_lines(log_output)[1:]
    assert {line["request"] for line in lines} == {reply.headers["x-request-id"] for reply in replies}
    assert sorted((line["cache"], line["parts"]) for line in lines) == [("miss", 3)] + [("shared", 0)] * (NUMBER - 1)
    assert {(line["application"], line["key"], line["status"]) for line in lines} == {("demo", "1", 200)}


async def test_error_is_that_of_every_waiting_request(environment: ProxyEnvironment, log_output: io.StringIO) -> None:
    await warmed(environment)
    environment.sandbox.faults.replace(faults.read_faults(["latency ms=100", "5xx"]))
    replies = await together(environment, 4)
    assert {reply.status for reply in replies} == {503}
    assert len({reply.body for reply in replies}) == 1
    assert [line["error"] for line in request_lines(log_output)[1:]] == ["UpstreamFault"] * 4
    assert log_output.getvalue().count('"request failed"') == 4


@pytest.mark.parametrize("leaving", [0, 2])
async def test_client_that_leaves_takes_nothing_from_the_others(environment: ProxyEnvironment, leaving: int) -> None:
    before = await warmed(environment)
    slow(environment, 150)
    tasks = [asyncio.create_task(environment.get(ASKED)) for _ in range(4)]
    await asyncio.sleep(0.05)
    tasks.pop(leaving).cancel()
    assert [reply.status for reply in await asyncio.gather(*tasks)] == [200] * 3
    assert environment.sandbox.request_counts.graphql - before == 1


async def test_plain_and_compressed_requests_are_not_confused(environment: ProxyEnvironment) -> None:
    await warmed(environment)
    slow(environment, 100)
    line = f"GET {ASKED} HTTP/1.1".encode()
    replies = await asyncio.gather(
        *(environment.raw(line, *fields) for fields in ((), (b"Accept-Encoding: gzip",)) for _ in range(3))
    )
    assert [reply.headers.get("content-encoding") for reply in replies] == [None] * 3 + ["gzip"] * 3
