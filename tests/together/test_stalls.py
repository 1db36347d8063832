"""Tests of stalled upstream requests: callers get a stale response or share one new attempt; every part is booked.

The facts of docs/explanation/faults.md. The sandbox stalls; its bill is held against the proxy's ledger.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from together.environment import ProxyEnvironment, RawResponse, StartEnvironment, target

import nexar_sandbox
from proxy.kit import clock
from proxy.stores.protocols import LedgerEntry
from proxy.stores.sqlite import SqliteStore

ONE, OTHER, THIRD, FOURTH = ({"mpn": number} for number in ("SN74S74N", "LM358N", "ATMEGA328P-PU", "1N4007"))
STALLED = "slow-loris ms=60000 count=1"
PARTS = 3  # that one query costs, at most and here in fact


class _Environment:
    """An environment with a short stall limit.

    `begin` sends a request; `used` and `uncertain` are the ledger after closing.
    """

    def __init__(self, environment: ProxyEnvironment) -> None:
        self.environment = environment
        self.used = self.uncertain = -1

    def declare(self, *texts: str) -> None:
        self.environment.sandbox.faults.replace([fault for text in texts for fault in nexar_sandbox.parse_faults(text)])

    @property
    def sent(self) -> int:
        return self.environment.sandbox.request_counts.graphql

    async def begin(self, *queries: dict[str, Any]) -> "asyncio.Task[RawResponse]":
        """A client's request, once the proxy has had the time to read it."""
        task = asyncio.create_task(self.environment.get(target(*(queries or [ONE]))))
        await asyncio.sleep(0.02)
        return task

    async def first(self, *queries: dict[str, Any]) -> "asyncio.Task[RawResponse]":
        """A client's request, once the sandbox has it."""
        sent = self.sent
        task = await self.begin(*queries)
        await until(lambda: self.sent > sent)
        return task

    async def metric(self, line: str) -> float:
        text = (await self.environment.get("/metrics")).body.decode()
        return next((float(each.split()[-1]) for each in text.splitlines() if each.startswith(line)), 0.0)

    async def stalled(self) -> None:
        """Wait until the proxy has noticed."""
        async with asyncio.timeout(60):
            while not await self.metric("v3bridge_upstream_stalls_total"):
                await asyncio.sleep(0.01)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.005)


@pytest.fixture
def start_stalling(start: StartEnvironment, tmp_path: Path) -> Callable[..., Any]:
    @asynccontextmanager
    async def opened(**settings: Any) -> AsyncIterator[_Environment]:
        chosen = {
            "coalescing": {"stall_seconds": 0.1},
            "translation": {"single_query": "supMultiMatch"},
            "store": f"sqlite:{tmp_path / 'state.sqlite'}",
            **settings,
        }
        async with start(**chosen) as environment:
            made = _Environment(environment)
            yield made
            environment.sandbox.faults.clear()
        store = await SqliteStore.open(tmp_path / "state.sqlite.core", clock.SystemClock())
        (state,) = await store.usage([LedgerEntry("demo", "lifetime")])
        await store.aclose()
        made.used, made.uncertain = state.used, state.uncertain
        assert state.reserved == 0

    return opened


def hits(replies: list[RawResponse]) -> list[Any]:
    return [(reply.status, reply.json["results"][0]["hits"]) for reply in replies]


async def test_waiting_callers_share_one_second_attempt_and_the_stalled_one_is_uncertain_usage(
    start_stalling: Callable[..., Any],
) -> None:
    async with start_stalling() as stage:
        stage.declare(STALLED)
        tasks = [await stage.first(), await stage.begin(), await stage.begin()]
        assert hits(await asyncio.gather(*tasks)) == [(200, 4)] * 3
        assert (stage.sent, stage.environment.billed_parts) == (2, 2 * PARTS)
        assert await stage.metric('v3bridge_upstream_retries_total{operation="supMultiMatch",reason="Stalled"}') == 1
        sources = [reply.headers["x-cache"] for reply in [task.result() for task in tasks]]
        assert sorted(sources) == ["miss", "miss", "shared"]
        await until(lambda: stage.environment.sandbox.journal.totals.spoiled_parts == PARTS)
    assert (stage.used, stage.uncertain) == (PARTS, PARTS)


async def test_later_callers_join_the_one_second_attempt(start_stalling: Callable[..., Any]) -> None:
    async with start_stalling() as stage:
        stage.declare(STALLED)
        tasks = [await stage.first(), await stage.begin()]
        stage.declare("latency ms=300")
        await until(lambda: stage.sent == 2)
        tasks += [await stage.begin() for _ in range(5)]
        assert hits(await asyncio.gather(*tasks)) == [(200, 4)] * 7
        assert stage.sent == 2
    assert (stage.used, stage.uncertain) == (PARTS, PARTS)


async def test_single_caller_waits_for_the_stalled_request(start_stalling: Callable[..., Any]) -> None:
    async with start_stalling() as stage:
        stage.declare("latency ms=400")
        task = await stage.first()
        await stage.stalled()
        assert hits([await task]) == [(200, 4)]
        assert (stage.sent, stage.environment.billed_parts) == (1, PARTS)
    assert (stage.used, stage.uncertain) == (PARTS, 0)


async def test_stale_response_is_preferred_to_a_second_attempt(start_stalling: Callable[..., Any]) -> None:
    async with start_stalling(cache={"seconds": 60}) as stage:
        await stage.environment.results(ONE)
        stage.environment.time.advance(61)
        stage.declare("latency ms=600")
        task, waiting = await stage.first(), await stage.begin()
        await stage.stalled()
        stale = [await waiting, await stage.environment.get(target(ONE))]
        assert hits(stale) == [(200, 4)] * 2
        assert [reply.headers["x-cache"] for reply in stale] == ["stale"] * 2
        assert not task.done()
        assert hits([await task]) == [(200, 4)]
        assert task.result().headers["x-cache"] == "miss"
        assert stage.sent == 2
    assert (stage.used, stage.uncertain) == (2 * PARTS, 0)


async def test_stalled_request_that_ends_first_is_shared_and_both_are_booked(
    start_stalling: Callable[..., Any],
) -> None:
    async with start_stalling() as stage:
        stage.declare("latency ms=400")
        tasks = [await stage.first(), await stage.begin()]
        await until(lambda: stage.sent == 2)
        done, _ = await asyncio.wait(tasks, return_when=asyncio.ALL_COMPLETED)
        assert hits([task.result() for task in done]) == [(200, 4)] * 2
        assert stage.sent == 2
    assert (stage.used, stage.uncertain) == (2 * PARTS, 0)


async def test_insufficient_quota_prevents_a_second_attempt(start_stalling: Callable[..., Any]) -> None:
    async with start_stalling(application={"parts": 2 * PARTS - 1}) as stage:
        stage.declare("latency ms=400")
        tasks = [await stage.first(), await stage.begin(), await stage.begin()]
        await stage.stalled()
        assert hits(await asyncio.gather(*tasks)) == [(200, 4)] * 3
        assert (stage.sent, stage.environment.billed_parts) == (1, PARTS)
    assert (stage.used, stage.uncertain) == (PARTS, 0)


async def test_cancelled_first_caller_does_not_affect_the_second_attempt(start_stalling: Callable[..., Any]) -> None:
    async with start_stalling() as stage:
        stage.declare(STALLED)
        leaving, waiting = await stage.first(), await stage.begin()
        stage.declare("latency ms=300")
        await until(lambda: stage.sent == 2)
        leaving.cancel()
        assert hits([await waiting]) == [(200, 4)]
        assert stage.sent == 2
        await until(lambda: stage.environment.sandbox.journal.totals.spoiled_parts == PARTS)
    assert (stage.used, stage.uncertain) == (PARTS, PARTS)


async def test_batched_callers_share_one_second_attempt(start_stalling: Callable[..., Any]) -> None:
    async with start_stalling(upstream={"connections": 2}) as stage:
        stage.declare("latency ms=600 count=2")
        alone = [await stage.first(), await stage.first(FOURTH)]
        stage.declare(STALLED)
        together = [await stage.begin(OTHER), await stage.begin(THIRD)]  # they wait for a connection
        replies = await asyncio.gather(*together, *alone)
        assert [status for status, _ in hits(replies)] == [200] * 4
        assert all(reply.json["results"][0]["error"] is None for reply in replies)
        assert stage.sent == 4
        found = [len(reply.json["results"][0]["items"]) for reply in replies]
        assert stage.environment.billed_parts == sum(found) + sum(found[:2])
    assert (stage.used, stage.uncertain) == (sum(found), 2 * PARTS)


async def test_setting_of_zero_disables_second_attempts(start_stalling: Callable[..., Any]) -> None:
    async with start_stalling(coalescing={"stall_seconds": 0}) as stage:
        stage.declare("latency ms=400")
        tasks = [await stage.first(), await stage.begin()]
        assert hits(await asyncio.gather(*tasks)) == [(200, 4)] * 2
        assert stage.sent == 1
