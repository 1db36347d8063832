"""Under overload new work is refused with 503 and Retry-After; what is known and health checks are served."""

import asyncio
import io
import time

import pytest
from integration.house import Starts, target

from proxy.gateway import load_shedding

FULL = {"memory_bytes": 100_000_000}
KNOWN, NEW = {"mpn": "SN74S74N"}, {"mpn": "1N4007"}


class Memory:
    """What the process seems to use."""

    used = 0

    def __call__(self) -> int:
        return self.used


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    read = Memory()
    monkeypatch.setattr(load_shedding, "memory_used", read)
    monkeypatch.setattr(load_shedding, "LOOK_SECONDS", 0.01)
    return read


async def until(written: io.StringIO, event: str) -> None:
    async with asyncio.timeout(20):
        while event not in written.getvalue():
            await asyncio.sleep(0.01)


async def test_overload_refuses_new_work_and_serves_cached_responses(
    start: Starts, memory: Memory, written: io.StringIO
) -> None:
    async with start(overload=FULL, cache={"seconds": 300, "stale_seconds": 0}) as house:
        assert (await house.get(target(KNOWN))).status == 200
        assert (await house.get("/v3/brands/search?apikey=EXAMPLE_KEY&q=texas")).status == 200
        billed = house.billed
        memory.used = 95_000_000
        await until(written, "overload began")
        refused = await house.get(target(NEW))
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert refused.json == {
            "__class__": "ServerErrorResponse",
            "message": "the service is overloaded; try again shortly",
        }
        both = f"GET {target(KNOWN, NEW)} HTTP/1.1".encode()
        results = (await house.raw(both)).json["results"]
        assert [each["error"] for each in results] == [None, refused.json["message"]]
        for path in (target(KNOWN), "/healthz", "/readyz", "/v3/brands/search?apikey=EXAMPLE_KEY&q=texas"):
            assert (await house.get(path)).status == 200, path
        assert "v3bridge_overload 1.0" in (await house.get("/metrics")).body.decode()
        assert house.billed == billed
        memory.used = 0
        await until(written, "overload ended")
        assert (await house.get(target(NEW))).status == 200
    assert written.getvalue().count("overload began") == 1
    assert "request failed" not in written.getvalue()


async def test_early_refusal_equals_the_normal_refusal(start: Starts, memory: Memory, written: io.StringIO) -> None:
    """A request that closes its connection is parsed, one that keeps it is not."""
    async with start(overload=FULL, cache={"seconds": 300}) as house:
        memory.used = 95_000_000
        await until(written, "overload began")
        for path in (
            target(NEW),
            "/v3/parts/search?apikey=EXAMPLE_KEY&q=resistor",
            "/api/v3/parts/get_multi?uid[]=2c3be9310496fffc&apikey=EXAMPLE_KEY",
        ):
            quick, usual = await house.get(path), await house.raw(f"GET {path} HTTP/1.1".encode())
            assert (quick.status, quick.body) == (usual.status, usual.body)
            assert quick.headers["retry-after"] == usual.headers["retry-after"]
            assert "x-request-id" in usual.headers
            assert "x-request-id" not in quick.headers
        script = await house.get(target(NEW) + "&callback=show")
        assert (script.headers["content-type"], script.status) == ("application/javascript; charset=utf-8", 503)
        metrics = (await house.get("/metrics")).body.decode()
        assert 'v3bridge_requests_total{route="/v3/parts/match",status="503"} 3.0' in metrics


async def test_pipelined_and_fragmented_requests_are_all_answered(
    start: Starts, memory: Memory, written: io.StringIO
) -> None:
    async with start(overload=FULL) as house:
        memory.used = 95_000_000
        await until(written, "overload began")
        one = f"GET {target(NEW)} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", house.port)
        for piece in (one, one + one, one[:20], one[20:], one):
            writer.write(piece)
            await asyncio.sleep(0.05)
        writer.write_eof()
        assert (await reader.read()).count(b"HTTP/1.1 503") == 5
        writer.close()


async def test_stale_response_is_served_under_overload(start: Starts, memory: Memory, written: io.StringIO) -> None:
    async with start(overload=FULL, cache={"seconds": 10, "stale_seconds": 60}) as house:
        await house.get(target(KNOWN))
        house.time.advance(30)
        memory.used = 95_000_000
        await until(written, "overload began")
        reply = await house.get(target(KNOWN))
        assert (reply.status, reply.headers["x-cache"]) == (200, "stale")


async def test_late_event_loop_is_an_overload(start: Starts, written: io.StringIO) -> None:
    async with start(overload={"lag_seconds": 0.05}) as house:
        async with asyncio.timeout(20):
            while "overload began" not in written.getvalue():
                time.sleep(0.2)
                await asyncio.sleep(0)
        found = [(await house.get(target(NEW))).status for _ in range(10)]
        assert 503 in found
        await until(written, "overload ended")
        assert (await house.get(target(NEW))).status == 200


def test_memory_figure_is_that_of_this_process() -> None:
    before = load_shedding.memory_used()
    held = b"x" * 50_000_000
    assert load_shedding.memory_used() - before == pytest.approx(len(held), rel=0.2)
