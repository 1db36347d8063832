"""Scenarios: each provokes an attack, a crash or a fault, and checks what SECURITY.md promises."""

import asyncio
import contextlib
import shutil
import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from bench.chaos import billing, hostile
from bench.chaos.client import ObservedResponses, send_load
from bench.chaos.context import (
    KEY,
    LIMITED,
    OTHER_KEY,
    ScenarioContext,
    full_disk,
    get,
    kill,
    port,
    raw,
    usage_by_application,
    workers,
)
from bench.processes import Server, redis, upstream
from bench.soak.servers import ServiceProcess

KNOWN_MPN = "SN74S74N"  # of the sandbox's catalog
LIMIT = 400  # parts of the limited application where workers are killed
LEASE_SECONDS = 30  # until reservations of killed workers become uncertain usage, on a busy machine
WAIT_SECONDS = 30
GOODPUT = 0.5  # of the capacity, at 3 times the capacity
SERVED_SECONDS = 3.0  # p99 of served requests
MEMORY_MB = 400  # that a worker may grow by while responses without end come in

Run = Callable[[ScenarioContext], Coroutine[Any, Any, None]]


class Scenario(NamedTuple):
    """Scenario and the promise that it tests."""

    name: str
    promise: str
    run: Run


SCENARIOS: list[Scenario] = []


def scenario(promise: str) -> Callable[[Run], Run]:
    """Register a scenario by the name of its function."""

    def register(run: Run) -> Run:
        SCENARIOS.append(Scenario(run.__name__.replace("_", " "), promise, run))
        return run

    return register


@scenario("after any number of kills: billed ≤ limit, and billed ≤ used + uncertain (SQLite)")
async def killed_workers_on_sqlite(context: ScenarioContext) -> None:
    await _kill_workers(context, f"sqlite:{context.folder}/killed.sqlite")


@scenario("after any number of kills: billed ≤ limit, and billed ≤ used + uncertain (Redis)")
async def killed_workers_on_redis(context: ScenarioContext) -> None:
    if shutil.which("redis-server") is None:
        context.report.figures["skipped"] = "redis-server is not installed"
        return
    with redis() as address:
        await _kill_workers(context, address)


async def _kill_workers(context: ScenarioContext, store: str) -> None:
    before, kills = await _billed(context), 0
    changes = {"listen.workers": 2, "store": store, "cache.seconds": 0}
    parts = [context.rng.choice((KNOWN_MPN, "1N4007", "LM317T", "NE555P")) for _ in range(50)]
    with context.service(changes, limit=LIMIT) as process:
        end = time.monotonic() + context.seconds
        clients = [asyncio.create_task(_send_until(end, process, context, parts)) for _ in range(8)]
        while time.monotonic() < end:
            await asyncio.sleep(context.rng.uniform(0.2, 1.0))
            if found := workers(process):
                kill(context.rng.choice(found))
                kills += 1
        await asyncio.gather(*clients)
        end = time.monotonic() + LEASE_SECONDS
        while (await usage_by_application(store))[LIMITED].reserved and time.monotonic() < end:
            await asyncio.sleep(0.5)
        process.stop()
    usage, billed = (await usage_by_application(store))[LIMITED], await _billed(context) - before
    context.report.figures |= {
        "kills": str(kills),
        "billed / used / uncertain": f"{billed} / {usage.used} / {usage.uncertain}",
    }
    context.report.check(kills > 0, "no worker was killed")
    context.report.check(billed <= LIMIT, f"{billed} parts are billed of {LIMIT}")
    context.report.check(billed <= usage.used + usage.uncertain, f"{billed} parts are billed, {usage} is in the ledger")
    context.report.check(not usage.reserved, f"{usage.reserved} parts are still reserved")


async def _send_until(end: float, process: ServiceProcess, context: ScenarioContext, parts: list[str]) -> None:
    while time.monotonic() < end:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):  # its worker was killed
            await get(process, context.target(KEY, context.rng.choice(parts)), 15)
        await asyncio.sleep(0.02)


async def _billed(context: ScenarioContext) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{context.sandbox_output['sandbox']}/admin/journal?last=0") as found,
    ):
        return int((await found.json())["totals"]["parts"])


@scenario("a response without end is a 502, and memory stays bounded")
async def responses_without_end(context: ScenarioContext) -> None:
    async with hostile.running() as url:
        changes = {"upstream": {"graphql_url": f"{url}/graphql", "token_url": f"{url}/connect/token"}}
        with context.service({**changes, "cache.stale_seconds": 0, "upstream.breaker": {"failures": 0}}) as process:
            before, growth, statuses = process.memory(), 0.0, set()
            end = time.monotonic() + max(2.0, min(context.seconds, 20.0))
            while time.monotonic() < end:
                statuses.add((await get(process, context.target()))[0])
                growth = max(growth, process.memory() - before)
    context.report.figures |= {"statuses": str(sorted(statuses)), "memory growth (MB)": f"{growth:.0f}"}
    context.report.check(statuses == {502}, f"responses are {sorted(statuses)}")
    context.report.check(growth < MEMORY_MB, f"the worker grew by {growth:.0f} MB")


@scenario("clients that send slowly, long paths and wrong keys do not delay other clients")
async def hostile_clients(context: ScenarioContext) -> None:
    with context.service({"listen.connections": 100, "listen.header_seconds": 2}) as process:
        await get(process, context.target(number=KNOWN_MPN))
        baseline = await send_load(port(process), lambda: context.request(number=KNOWN_MPN), min(context.seconds, 2), 2)
        attacks = (_slow_headers(process), _long_paths(process), _guesses(process))
        for attack in attacks:
            async with attack as running:
                observed = await _cached_responses(context, process)
            name = running.name
            context.report.figures[f"{name}: p99, {running.figure}"] = (
                f"{observed.p99 * 1000:.1f} ms (baseline {baseline.p99 * 1000:.1f})"
            )
            context.report.check(
                observed.p99 < max(0.5, 20 * baseline.p99), f"{name}: cached responses take {observed.p99:.2f} s"
            )
            context.report.check(
                set(observed.statuses) == {200}, f"{name}: cached responses are {dict(observed.statuses)}"
            )
            context.report.check(running.contained(), f"{name}: {running.figure}")


class Attack:
    """Attack and the responses that it got.

    `expected`: the only statuses that it may get. `limit`: the maximum number of responses with the first of them.
    """

    def __init__(self, name: str, expected: tuple[int, ...], limit: int = 10**9) -> None:
        self.name, self._expected, self._limit = name, expected, limit
        self.responses = ObservedResponses()

    @property
    def figure(self) -> str:
        return ", ".join(f"{count} × {status or 'closed'}" for status, count in sorted(self.responses.statuses.items()))

    def contained(self) -> bool:
        """Return true if the service responded to the attack as promised."""
        return (
            set(self.responses.statuses) <= set(self._expected)
            and self.responses.statuses[self._expected[0]] <= self._limit
        )


@asynccontextmanager
async def _during(attack: Attack, jobs: list[Awaitable[None]]) -> AsyncIterator[Attack]:
    tasks = [asyncio.ensure_future(job) for job in jobs]
    await asyncio.sleep(0.3)
    yield attack
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _slow_headers(process: ServiceProcess) -> "contextlib.AbstractAsyncContextManager[Attack]":
    attack = Attack("slow headers", (0,))

    async def drip() -> None:
        while True:
            with contextlib.suppress(ConnectionError, OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port(process))
                for byte in raw("/healthz"):
                    writer.write(bytes([byte]))
                    await asyncio.sleep(0.5)
                    if writer.is_closing():
                        break
                writer.close()
            attack.responses.add(0, 0.0)
            await asyncio.sleep(0.1)

    return _during(attack, [drip() for _ in range(60)])


def _long_paths(process: ServiceProcess) -> "contextlib.AbstractAsyncContextManager[Attack]":
    attack = Attack("long paths", (404,))
    return _during(attack, [_flood(process, attack, raw("/" * 60_000)) for _ in range(4)])


def _guesses(process: ServiceProcess) -> "contextlib.AbstractAsyncContextManager[Attack]":
    attack = Attack("wrong keys", (403, 429), limit=20)
    return _during(attack, [_flood(process, attack, raw(f"/v3/parts/match?apikey=guess-{n}")) for n in range(4)])


async def _flood(process: ServiceProcess, attack: Attack, request: bytes) -> None:
    while True:
        responses = await send_load(port(process), lambda: request, 0.2, 1, 100)
        attack.responses.statuses.update({status: count for status, count in responses.statuses.items() if status})


async def _cached_responses(context: ScenarioContext, process: ServiceProcess) -> ObservedResponses:
    """Request a cached response repeatedly, as another client does during an attack."""
    return await send_load(
        port(process), lambda: context.request(number=KNOWN_MPN), max(2.0, min(context.seconds, 10.0)), 2, 50
    )


@scenario("while the identity service is unavailable requests fail at once (p99 below 100 ms)")
async def identity_away(context: ScenarioContext) -> None:
    changes = {"upstream.token_url": "http://127.0.0.1:9/connect/token"}
    with context.service(changes) as process:
        status, _ = await get(process, context.target())
        times = []
        for _ in range(200):
            began = time.perf_counter()
            await get(process, context.target())
            times.append(time.perf_counter() - began)
    slow = statistics.quantiles(times, n=100)[98]
    context.report.figures |= {"status": str(status), "p99": f"{slow * 1000:.0f} ms"}
    context.report.check(status == 503, f"the response is {status}")
    context.report.check(slow < 0.1, f"the error takes {slow:.2f} s")


@scenario("a full or deleted store fails readiness, and limited applications get 503")
async def store_trouble(context: ScenarioContext) -> None:
    with context.service() as process:
        await _readiness(context, process, 200, "before")
        with full_disk(process):
            await _readiness(context, process, 503, "on a full disk")
            await _statuses(context, process, "on a full disk")
        await _readiness(context, process, 200, "after a full disk")
        for file in _files(context):
            if file.suffix not in (".journal", ".intents"):
                file.unlink()
        await _readiness(context, process, 503, "without its store")
        await _statuses(context, process, "without its store")


def _files(context: ScenarioContext) -> list[Path]:
    """List the files of the only store in the folder of the context."""
    return list(context.folder.glob("service-*/state.sqlite*"))


async def _readiness(context: ScenarioContext, process: ServiceProcess, expected: int, when: str) -> None:
    end, status = time.monotonic() + WAIT_SECONDS, 0
    while status != expected and time.monotonic() < end:
        status, _ = await get(process, "/readyz")
        await asyncio.sleep(0.1)
    context.report.check(status == expected, f"/readyz is {status} {when}")


async def _statuses(context: ScenarioContext, process: ServiceProcess, when: str) -> None:
    statuses = [(await get(process, context.target(key)))[0] for key in (KEY, OTHER_KEY)]
    context.report.figures[when] = f"limited {statuses[0]}, unlimited {statuses[1]}"
    context.report.check(statuses == [503, 200], f"responses are {statuses} {when}")


scenario("a BOM of 300 lines costs 300 parts a day, whoever requests it (4 programs, 4 workers, a restart)")(
    billing.day_of_a_bom
)
scenario("no field, complexity or size of a response breaks a request; one retry, then it is remembered")(
    billing.refused_parts
)


@scenario("at 3 times the capacity the goodput stays, and served requests are served in time")
async def overload(context: ScenarioContext) -> None:
    with upstream() as canned, context.service({"cache.seconds": 0, "upstream": _addresses(canned)}) as process:
        service_port, seconds = port(process), max(2.0, context.seconds / 6)
        await send_load(service_port, context.request, 1, 16)
        normal, normal_cpu = await _by_cpu(process, send_load(service_port, context.request, seconds, 32))
        rate = normal.statuses[200] / seconds
        overloaded, overloaded_cpu = await _by_cpu(
            process, send_load(service_port, context.request, 2 * seconds, 900, 3 * rate)
        )
        health, _ = await get(process, "/healthz")
    capacity, goodput = normal.statuses[200] / normal_cpu, overloaded.statuses[200] / overloaded_cpu
    context.report.figures |= {
        "capacity": f"{rate:.0f}/s, {capacity:.0f} a second of CPU, p99 {normal.p99 * 1000:.0f} ms",
        "at 3 times": f"{goodput:.0f} a second of CPU ({goodput / capacity:.0%}), p99 {overloaded.p99 * 1000:.0f} ms",
        "responses": ", ".join(f"{count} × {status}" for status, count in sorted(overloaded.statuses.items())),
    }
    context.report.check(set(overloaded.statuses) <= {200, 503}, f"responses are {dict(overloaded.statuses)}")
    context.report.check(goodput > GOODPUT * capacity, f"goodput falls to {goodput / capacity:.0%} of the capacity")
    context.report.check(overloaded.p99 < SERVED_SECONDS, f"p99 of served requests is {overloaded.p99:.2f} s")
    context.report.check(health == 200, "/healthz is not 200 afterwards")


def _addresses(canned: Server) -> dict[str, str]:
    """Return the settings for the canned upstream, which responds faster than the service can send requests."""
    url = f"http://127.0.0.1:{canned.port}"
    return {"graphql_url": f"{url}/graphql", "token_url": f"{url}/connect/token"}


async def _by_cpu(process: ServiceProcess, load: Awaitable[ObservedResponses]) -> tuple[ObservedResponses, float]:
    """Return the responses, and the CPU seconds of the service, so that other programs on the machine do not count."""
    server = Server(port(process), process.pid)
    before = server.cpu()
    return await load, server.cpu() - before
