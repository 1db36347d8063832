"""Soak in three phases: baseline without faults, load at a constant rate under faults, recovery without faults.

Each distinct request is sent once in the first and the last phase. Memory is measured before the load and after each of
its halves, with no request in flight, idle connections closed and unused memory released, so that a backlog on a busy
machine does not count as growth. The cache is full before the load.
"""

import asyncio
import math
import random
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import yarl

from bench.soak import servers
from bench.soak.outcome import EXTRA_DESCRIPTORS, SoakOutcome, SoakPlan, check
from bench.soak.requests import ExpectedResults, SoakRequest
from bench.soak.response_judge import ReceivedResponse

BASELINE_CONCURRENCY = 8
LOAD_CONCURRENCY = 300  # requests in flight; on a machine that is too slow for the rate, the rate falls
RESPONSE_SECONDS = 60
RECOVERY_SECONDS = 90  # until idle connections are closed and every request succeeds


async def run(plan: SoakPlan) -> SoakOutcome:
    """Run a soak with new processes in a temporary folder."""
    with tempfile.TemporaryDirectory() as name, servers.sandbox(Path(name), plan.seed) as printed:
        with servers.service(Path(name), printed, plan.cache_bytes) as process:
            async with aiohttp.ClientSession() as session:
                soak = _Soak(plan, process, servers.SandboxControl(printed["sandbox"], session))
                await soak.run_phases()
            soak.stop()
        soak.outcome.ledger = await servers.ledger(Path(name))
    kinds = {request.kind for request in soak.requests}
    soak.outcome.run_errors.extend(check(plan, soak.outcome, kinds))
    return soak.outcome


class _Soak:
    def __init__(self, plan: SoakPlan, process: servers.ServiceProcess, upstream: servers.SandboxControl) -> None:
        self._plan = plan
        self._process = process
        self._upstream = upstream
        self._rng = random.Random(plan.seed)
        self._expected = ExpectedResults(plan.seed)
        self.requests = self._expected.draw_requests(plan.distinct_requests, self._rng)
        self.outcome = SoakOutcome()

    async def run_phases(self) -> None:
        """Run the baseline, load and recovery phases."""
        async with self._client() as session:
            await self._for_each_request(lambda request: self._record_baseline(session, request))
        if self.outcome.errors:
            raise SystemExit("errors in the baseline phase:\n" + "\n".join(self.outcome.errors[:10]))
        before, tasks = self._process.descriptors(), servers.tasks(await self._metrics())
        baseline_totals = (await self._upstream.journal())["totals"]
        await self._upstream.declare(f"mixed share={self._plan.fault_share}")
        await self._load(before)
        await self._count_upstream_requests(baseline_totals)
        await self._upstream.declare()
        async with self._client() as session:
            await self._for_each_request(lambda request: self._recover(session, request))
        self.outcome.totals = (await self._upstream.journal())["totals"]
        most = self.outcome.descriptors[1]
        self.outcome.descriptors = before, most, await self._wait_for_descriptors(before + EXTRA_DESCRIPTORS)
        self.outcome.tasks = tasks, self.outcome.tasks[1], servers.tasks(await self._metrics())

    def stop(self) -> None:
        """Stop the service as an operator does; record errors of its exit and its log."""
        if not self._process.alive():
            self._add_error("the service died")
        elif code := self._process.stop():
            self._add_error(f"the service ended with code {code}")
        self.outcome.run_errors.extend(self._process.log_errors())

    async def _load(self, descriptors: int) -> None:
        """Send a burst at the concurrency limit, then two halves of a constant load. `descriptors`: open before."""
        first, seconds = self._plan.requests // 2, 0.0
        await self._measure_memory(descriptors)
        async with self._client() as session:
            await self._send_load(session, LOAD_CONCURRENCY, math.inf)
            seconds += await self._send_load(session, first, self._plan.rate)
        await self._measure_memory(descriptors)
        async with self._client() as session:
            seconds += await self._send_load(session, self._plan.requests - first, self._plan.rate)
        await self._measure_memory(descriptors)
        self.outcome.rate = self._plan.requests / seconds

    async def _measure_memory(self, descriptors: int) -> None:
        """Record the memory in use once idle connections are closed."""
        await self._wait_for_descriptors(descriptors + EXTRA_DESCRIPTORS)
        self._process.release_memory()
        for _ in range(
            2
        ):  # the second response is sent after the signal was handled, in whatever order the event loop works
            await self._metrics()
        self.outcome.memory.append(self._process.memory())

    async def _send_load(self, session: aiohttp.ClientSession, requests: int, rate: float) -> float:
        """Send a request every 1/rate seconds, independent of the responses; returns the seconds that this took."""
        loop, in_flight = asyncio.get_running_loop(), asyncio.Semaphore(LOAD_CONCURRENCY)
        start = loop.time()

        async def send(request: SoakRequest) -> None:
            try:
                response = await self._send(session, request)
                self._check(request, response)
                if response is not None and response.status == 200:
                    self.outcome.succeeded[request.kind] += 1
            finally:
                in_flight.release()

        async with asyncio.TaskGroup() as group:
            for number in range(requests):
                await asyncio.sleep(max(0.0, start + number / rate - loop.time()))
                await in_flight.acquire()
                group.create_task(send(self._rng.choice(self.requests)), name="load request")
            seconds = loop.time() - start
            self.outcome.descriptors = 0, self._process.descriptors(), 0
            self.outcome.tasks = 0, servers.tasks(await self._metrics()), 0
        return seconds

    async def _count_upstream_requests(self, baseline: Any) -> None:
        """Record the upstream requests under load. `baseline`: the sandbox's totals before the load."""
        journal, metrics = await self._upstream.journal(), await self._metrics()
        totals = journal["totals"]
        self.outcome.upstream_requests = sum(totals["requests"].values()) - sum(baseline["requests"].values())
        self.outcome.faulted = sum(totals["faults"].values())
        slow = [
            entry for entry in journal["entries"] if entry["service"] == "graphql" and "slow-loris" in entry["faults"]
        ]
        late = max(servers.timed_out(metrics), servers.stalled(metrics))
        self.outcome.late = max(0, late - len(slow))

    async def _for_each_request(self, action: Callable[[SoakRequest], Awaitable[None]]) -> None:
        """Run an action with every request, BASELINE_CONCURRENCY at a time."""
        remaining = iter(self.requests)  # shared by all tasks

        async def consume() -> None:
            for request in remaining:
                await action(request)

        async with asyncio.TaskGroup() as group:
            for _ in range(BASELINE_CONCURRENCY):
                group.create_task(consume(), name="requests without faults")

    async def _record_baseline(self, session: aiohttp.ClientSession, request: SoakRequest) -> None:
        response = await self._send(session, request)
        body = None if response is None else self.outcome.judge.add_baseline(request.target, response)
        if body is not None:
            self.outcome.judge.errors.extend(self._expected.check(request, body))

    async def _recover(self, session: aiohttp.ClientSession, request: SoakRequest) -> None:
        """Repeat a request until it succeeds or RECOVERY_SECONDS are over."""
        loop = asyncio.get_running_loop()
        end = loop.time() + RECOVERY_SECONDS
        while True:
            response = await self._send(session, request)
            if response is None or response.status == 200 or loop.time() > end:
                break
            await asyncio.sleep(0.2)
        self._check(request, response)
        if response is not None and response.status != 200:
            self._add_error(f"{request.target} still fails {RECOVERY_SECONDS} s after the last fault")

    async def _send(self, session: aiohttp.ClientSession, request: SoakRequest) -> ReceivedResponse | None:
        """Send a request; returns the response, or None and records an error if there was none."""
        try:
            async with session.get(yarl.URL(self._process.url + request.target, encoded=True)) as response:
                return ReceivedResponse(response.status, response.headers, await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            self._add_error(f"{request.target} got no response: {type(error).__name__}")
            return None

    def _check(self, request: SoakRequest, response: ReceivedResponse | None) -> None:
        if response is not None:
            self.outcome.judge.check(request.target, response)

    def _add_error(self, error: str) -> None:
        self.outcome.run_errors.append(error)

    async def _wait_for_descriptors(self, maximum: int) -> int:
        """Wait until at most `maximum` descriptors are open, or RECOVERY_SECONDS are over; returns their number."""
        loop = asyncio.get_running_loop()
        end = loop.time() + RECOVERY_SECONDS
        while True:
            count = self._process.descriptors()
            if count <= maximum or loop.time() > end:
                return count
            await asyncio.sleep(0.2)

    async def _metrics(self) -> str:
        """Read the metrics of the service over a new connection."""
        async with self._client() as session, session.get(self._process.url + "/metrics") as response:
            return await response.text()

    def _client(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=RESPONSE_SECONDS),
            headers={"Accept-Encoding": "identity"},
        )
