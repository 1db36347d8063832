"""Tests of overload: new work gets 503 and Retry-After; cached responses and health checks are served."""

import asyncio
import io
import time

import pytest
from integration.environment import StartEnvironment, target

from proxy.gateway import load_shedding

FULL = {"memory_bytes": 100_000_000}
KNOWN, NEW = {"mpn": "SN74S74N"}, {"mpn": "1N4007"}


class Memory:
    """Simulated memory use of the process."""

    used = 0

    def __call__(self) -> int:
        return self.used


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    read = Memory()
    monkeypatch.setattr(load_shedding, "memory_used", read)
    monkeypatch.setattr(load_shedding, "CHECK_SECONDS", 0.01)
    return read


async def until(log_output: io.StringIO, event: str) -> None:
    async with asyncio.timeout(20):
        while event not in log_output.getvalue():
            await asyncio.sleep(0.01)


async def test_overload_refuses_new_work_and_serves_cached_responses(
    start: StartEnvironment, memory: Memory, log_output: io.StringIO
) -> None:
    async with start(overload=FULL, cache={"seconds": 300, "stale_seconds": 0}) as environment:
        assert (await environment.get(target(KNOWN))).status == 200
        assert (await environment.get("/v3/brands/search?apikey=EXAMPLE_KEY&q=texas")).status == 200
        billed = environment.billed_parts
        memory.used = 95_000_000
        await until(log_output, "overload began")
        refused = await environment.get(target(NEW))
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert refused.json == {
            "__class__": "ServerErrorResponse",
            "message": "the service is overloaded; try again shortly",
        }
        both = f"GET {target(KNOWN, NEW)} HTTP/1.1".encode()
        results = (await environment.raw(both)).json["results"]
        assert [each["error"] for each in results] == [None, refused.json["message"]]
        for path in (target(KNOWN), "/healthz", "/readyz", "/v3/brands/search?apikey=EXAMPLE_KEY&q=texas"):
            assert (await environment.get(path)).status == 200, path
        assert "v3bridge_overload 1.0" in (await environment.get("/metrics")).body.decode()
        assert environment.billed_parts == billed
        memory.used = 0
        await until(log_output, "overload ended")
        assert (await environment.get(target(NEW))).status == 200
    assert log_output.getvalue().count("overload began") == 1
    assert "request failed" not in log_output.getvalue()


async def test_early_refusal_equals_the_normal_refusal(
    start: StartEnvironment, memory: Memory, log_output: io.StringIO
) -> None:
    """A request that closes its connection is parsed, one that keeps it is not."""
    async with start(overload=FULL, cache={"seconds": 300}) as environment:
        memory.used = 95_000_000
        await until(log_output, "overload began")
        for path in (
            target(NEW),
            "/v3/parts/search?apikey=EXAMPLE_KEY&q=resistor",
            "/api/v3/parts/get_multi?uid[]=2c3be9310496fffc&apikey=EXAMPLE_KEY",
        ):
            quick, usual = await environment.get(path), await environment.raw(f"GET {path} HTTP/1.1".encode())
            assert (quick.status, quick.body) == (usual.status, usual.body)
            assert quick.headers["retry-after"] == usual.headers["retry-after"]
            assert "x-request-id" in usual.headers
            assert "x-request-id" not in quick.headers
        script = await environment.get(target(NEW) + "&callback=show")
        assert (script.headers["content-type"], script.status) == ("application/javascript; charset=utf-8", 503)
        metrics = (await environment.get("/metrics")).body.decode()
        assert 'v3bridge_requests_total{route="/v3/parts/match",status="503"} 3.0' in metrics


async def test_pipelined_and_fragmented_requests_all_get_responses(
    start: StartEnvironment, memory: Memory, log_output: io.StringIO
) -> None:
    async with start(overload=FULL) as environment:
        memory.used = 95_000_000
        await until(log_output, "overload began")
        one = f"GET {target(NEW)} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", environment.port)
        for piece in (one, one + one, one[:20], one[20:], one):
            writer.write(piece)
            await asyncio.sleep(0.05)
        writer.write_eof()
        assert (await reader.read()).count(b"HTTP/1.1 503") == 5
        writer.close()


@pytest.mark.parametrize("field", ["Connection:close", "connection: keep-alive, Close"])
async def test_refused_request_may_close_its_connection(
    start: StartEnvironment, memory: Memory, log_output: io.StringIO, field: str
) -> None:
    async with start(overload=FULL) as environment:
        memory.used = 95_000_000
        await until(log_output, "overload began")
        reader, writer = await asyncio.open_connection("127.0.0.1", environment.port)
        writer.write(f"GET {target(NEW)} HTTP/1.1\r\nHost: a\r\n{field}\r\n\r\n".encode())
        async with asyncio.timeout(20):
            assert (await reader.read()).startswith(b"HTTP/1.1 503")
        writer.close()


async def test_stale_response_is_served_under_overload(
    start: StartEnvironment, memory: Memory, log_output: io.StringIO
) -> None:
    async with start(overload=FULL, cache={"seconds": 10, "stale_seconds": 60}) as environment:
        await environment.get(target(KNOWN))
        environment.time.advance(30)
        memory.used = 95_000_000
        await until(log_output, "overload began")
        reply = await environment.get(target(KNOWN))
        assert (reply.status, reply.headers["x-cache"]) == (200, "stale")


async def test_late_event_loop_is_an_overload(start: StartEnvironment, log_output: io.StringIO) -> None:
    async with start(overload={"lag_seconds": 0.05}) as environment:
        async with asyncio.timeout(20):
            while "overload began" not in log_output.getvalue():
                time.sleep(0.2)
                await asyncio.sleep(0)
        found = [(await environment.get(target(NEW))).status for _ in range(10)]
        assert 503 in found
        await until(log_output, "overload ended")
        assert (await environment.get(target(NEW))).status == 200


def test_memory_figure_is_that_of_this_process() -> None:
    before = load_shedding.memory_used()
    held = b"x" * 50_000_000
    assert load_shedding.memory_used() - before == pytest.approx(len(held), rel=0.2)
