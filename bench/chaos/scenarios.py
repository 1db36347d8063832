"""Scenarios: each provokes an attack, a crash or a fault, and checks what docs/reference/limits.md promises."""

import asyncio
import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from bench.chaos import hostile
from bench.chaos.asking import Seen, ask
from bench.chaos.stage import KEY, LIMITED, OTHER_KEY, Stage, full_disk, get, kill, port, raw, states, workers
from bench.processes import Server, upstream
from bench.soak.servers import Process

KNOWN = "SN74S74N"  # a part number of the sandbox's catalog
LIMIT = 400  # parts of the limited application where workers are killed
LEASE_SECONDS = 30  # until the reservations of the dead are uncertain usage, on a busy machine
WAIT_SECONDS = 30
GOODPUT = 0.5  # of the capacity, at 3 times the capacity
SERVED_SECONDS = 3.0  # p99 of served requests
SHEDDING_LAG = 0.05  # seconds; a lower limit than the default, so that a test machine reaches it
MEMORY_MB = 400  # that a worker may grow by while responses without end come in

Run = Callable[[Stage], Coroutine[Any, Any, None]]


class Scenario(NamedTuple):
    """`promise` is what is broken where it finds something."""

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
async def killed_workers_on_sqlite(stage: Stage) -> None:
    await _kill_workers(stage, f"sqlite:{stage.folder}/killed.sqlite")


@scenario("after any number of kills: billed ≤ limit, and billed ≤ used + uncertain (Redis)")
async def killed_workers_on_redis(stage: Stage) -> None:
    program = shutil.which("redis-server")
    if program is None:
        stage.report.figures["skipped"] = "redis-server is not installed"
        return
    folder = tempfile.mkdtemp(prefix="v3bridge-")
    socket = f"{folder}/redis.sock"
    command = [program, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            while not Path(socket).exists():
                await asyncio.sleep(0.05)
            await _kill_workers(stage, f"unix://{socket}")
        finally:
            server.terminate()
    shutil.rmtree(folder)


async def _kill_workers(stage: Stage, store: str) -> None:
    before, kills = await _billed(stage), 0
    changes = {"listen.workers": 2, "store": store, "cache.seconds": 0}
    parts = [stage.rng.choice((KNOWN, "1N4007", "LM317T", "NE555P")) for _ in range(50)]
    with stage.service(changes, limit=LIMIT) as process:
        end = time.monotonic() + stage.seconds
        clients = [asyncio.create_task(_until(end, process, stage, parts)) for _ in range(8)]
        while time.monotonic() < end:
            await asyncio.sleep(stage.rng.uniform(0.2, 1.0))
            if found := workers(process):
                kill(stage.rng.choice(found))
                kills += 1
        await asyncio.gather(*clients)
        end = time.monotonic() + LEASE_SECONDS
        while (await states(store))[LIMITED].reserved and time.monotonic() < end:
            await asyncio.sleep(0.5)
        process.stop()
    state, billed = (await states(store))[LIMITED], await _billed(stage) - before
    stage.report.figures |= {
        "kills": str(kills),
        "billed / used / uncertain": f"{billed} / {state.used} / {state.uncertain}",
    }
    stage.report.check(kills > 0, "no worker was killed")
    stage.report.check(billed <= LIMIT, f"{billed} parts are billed of {LIMIT}")
    stage.report.check(billed <= state.used + state.uncertain, f"{billed} parts are billed, {state} is in the ledger")
    stage.report.check(not state.reserved, f"{state.reserved} parts are still held")


async def _until(end: float, process: Process, stage: Stage, parts: list[str]) -> None:
    while time.monotonic() < end:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):  # its worker was killed
            await get(process, stage.target(KEY, stage.rng.choice(parts)), 15)
        await asyncio.sleep(0.02)


async def _billed(stage: Stage) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{stage.told['sandbox']}/admin/journal?last=0") as found,
    ):
        return int((await found.json())["totals"]["parts"])


@scenario("a response without end is a 502, and memory stays bounded")
async def responses_without_end(stage: Stage) -> None:
    async with hostile.running() as url:
        changes = {"upstream": {"graphql_url": f"{url}/graphql", "token_url": f"{url}/connect/token"}}
        with stage.service({**changes, "cache.stale_seconds": 0, "upstream.breaker": {"failures": 0}}) as process:
            before, most, statuses = process.memory(), 0.0, set()
            end = time.monotonic() + max(2.0, min(stage.seconds, 20.0))
            while time.monotonic() < end:
                statuses.add((await get(process, stage.target()))[0])
                most = max(most, process.memory() - before)
    stage.report.figures |= {"statuses": str(sorted(statuses)), "memory more (MB)": f"{most:.0f}"}
    stage.report.check(statuses == {502}, f"responses are {sorted(statuses)}")
    stage.report.check(most < MEMORY_MB, f"the worker grew by {most:.0f} MB")


@scenario("clients that send slowly, long paths and wrong keys hold up nobody")
async def hostile_clients(stage: Stage) -> None:
    with stage.service({"listen.connections": 100, "listen.header_seconds": 2}) as process:
        await get(process, stage.target(number=KNOWN))
        calm = await ask(port(process), lambda: stage.request(number=KNOWN), min(stage.seconds, 2), 2)
        attacks = (_slow_heads(process), _long_paths(process), _guesses(process))
        for attack in attacks:
            async with attack as outcome:
                seen = await _neighbour(stage, process)
            name = outcome.name
            stage.report.figures[f"{name}: p99, {outcome.figure}"] = (
                f"{seen.p99 * 1000:.1f} ms (calm {calm.p99 * 1000:.1f})"
            )
            stage.report.check(seen.p99 < max(0.5, 20 * calm.p99), f"{name}: cached responses take {seen.p99:.2f} s")
            stage.report.check(set(seen.statuses) == {200}, f"{name}: cached responses are {dict(seen.statuses)}")
            stage.report.check(outcome.fine(), f"{name}: {outcome.figure}")


class Attack:
    """What an attack has seen; `expected` are the only statuses that it may get, and `most` of the first of them."""

    def __init__(self, name: str, expected: tuple[int, ...], most: int = 10**9) -> None:
        self.name, self._expected, self._most = name, expected, most
        self.seen = Seen()

    @property
    def figure(self) -> str:
        return ", ".join(f"{count} × {status or 'closed'}" for status, count in sorted(self.seen.statuses.items()))

    def fine(self) -> bool:
        """Whether the service did to it what is promised."""
        return set(self.seen.statuses) <= set(self._expected) and self.seen.statuses[self._expected[0]] <= self._most


@asynccontextmanager
async def _during(attack: Attack, works: list[Awaitable[None]]) -> AsyncIterator[Attack]:
    tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.sleep(0.3)
    yield attack
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _slow_heads(process: Process) -> "contextlib.AbstractAsyncContextManager[Attack]":
    attack = Attack("slow heads", (0,))

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
            attack.seen.note(0, 0.0)
            await asyncio.sleep(0.1)

    return _during(attack, [drip() for _ in range(60)])


def _long_paths(process: Process) -> "contextlib.AbstractAsyncContextManager[Attack]":
    attack = Attack("long paths", (404,))
    return _during(attack, [_flood(process, attack, raw("/" * 60_000)) for _ in range(4)])


def _guesses(process: Process) -> "contextlib.AbstractAsyncContextManager[Attack]":
    attack = Attack("wrong keys", (403, 429), most=20)
    return _during(attack, [_flood(process, attack, raw(f"/v3/parts/match?apikey=guess-{n}")) for n in range(4)])


async def _flood(process: Process, attack: Attack, request: bytes) -> None:
    while True:
        seen = await ask(port(process), lambda: request, 0.2, 1, 100)
        attack.seen.statuses.update({status: count for status, count in seen.statuses.items() if status})


async def _neighbour(stage: Stage, process: Process) -> Seen:
    """Somebody who asks for what is cached, meanwhile."""
    return await ask(port(process), lambda: stage.request(number=KNOWN), max(2.0, min(stage.seconds, 10.0)), 2, 50)


@scenario("while the identity service is away its error comes at once (p99 below 100 ms)")
async def identity_away(stage: Stage) -> None:
    changes = {"upstream.token_url": "http://127.0.0.1:9/connect/token"}
    with stage.service(changes) as process:
        status, _ = await get(process, stage.target())
        times = []
        for _ in range(50):
            began = time.perf_counter()
            await get(process, stage.target())
            times.append(time.perf_counter() - began)
    slow = sorted(times)[-2]  # one may be the request that asks again after the back-off
    stage.report.figures |= {"status": str(status), "slowest but one": f"{slow * 1000:.0f} ms"}
    stage.report.check(status == 503, f"the response is {status}")
    stage.report.check(slow < 0.1, f"the error takes {slow:.2f} s")


@scenario("a store that is full or gone turns readiness red, and limited applications get 503")
async def store_trouble(stage: Stage) -> None:
    with stage.service() as process:
        await _readiness(stage, process, 200, "before")
        with full_disk(process):
            await _readiness(stage, process, 503, "on a full disk")
            await _statuses(stage, process, "on a full disk")
        await _readiness(stage, process, 200, "after a full disk")
        for file in _files(stage):
            if file.suffix not in (".journal", ".intents"):
                file.unlink()
        await _readiness(stage, process, 503, "without its store")
        await _statuses(stage, process, "without its store")


def _files(stage: Stage) -> list[Path]:
    """Of the only store that the stage has."""
    return list(stage.folder.glob("service-*/state.sqlite*"))


async def _readiness(stage: Stage, process: Process, wanted: int, when: str) -> None:
    end, status = time.monotonic() + WAIT_SECONDS, 0
    while status != wanted and time.monotonic() < end:
        status, _ = await get(process, "/readyz")
        await asyncio.sleep(0.1)
    stage.report.check(status == wanted, f"/readyz is {status} {when}")


async def _statuses(stage: Stage, process: Process, when: str) -> None:
    found = [(await get(process, stage.target(key)))[0] for key in (KEY, OTHER_KEY)]
    stage.report.figures[when] = f"limited {found[0]}, unlimited {found[1]}"
    stage.report.check(found == [503, 200], f"responses are {found} {when}")


@scenario("at 3 times the capacity the goodput stays, and served requests are served in time")
async def overload(stage: Stage) -> None:
    await _overload(stage, {})


@scenario("where new work is refused, the refusals leave the capacity to served requests")
async def load_shedding(stage: Stage) -> None:
    refused = await _overload(stage, {"overload.lag_seconds": SHEDDING_LAG})
    stage.report.check(refused > 0, "no request was refused")


async def _overload(stage: Stage, changes: dict[str, object]) -> int:
    """Measure goodput at the capacity and at 3 times the capacity; returns the number of refused requests."""
    with (
        upstream() as canned,
        stage.service({"cache.seconds": 0, "upstream": _addresses(canned), **changes}) as process,
    ):
        where, seconds = port(process), max(2.0, stage.seconds / 6)
        await ask(where, stage.request, 1, 16)
        calm, calm_cpu = await _by_cpu(process, ask(where, stage.request, seconds, 32))
        rate = calm.statuses[200] / seconds
        crowd, crowd_cpu = await _by_cpu(process, ask(where, stage.request, 2 * seconds, 900, 3 * rate))
        health, _ = await get(process, "/healthz")
    capacity, goodput = calm.statuses[200] / calm_cpu, crowd.statuses[200] / crowd_cpu
    stage.report.figures |= {
        "capacity": f"{rate:.0f}/s, {capacity:.0f} a second of CPU, p99 {calm.p99 * 1000:.0f} ms",
        "at 3 times": f"{goodput:.0f} a second of CPU ({goodput / capacity:.0%}), p99 {crowd.p99 * 1000:.0f} ms",
        "responses": ", ".join(f"{count} × {status}" for status, count in sorted(crowd.statuses.items())),
    }
    stage.report.check(set(crowd.statuses) <= {200, 503}, f"responses are {dict(crowd.statuses)}")
    stage.report.check(goodput > GOODPUT * capacity, f"goodput falls to {goodput / capacity:.0%} of the capacity")
    stage.report.check(crowd.p99 < SERVED_SECONDS, f"p99 of served requests is {crowd.p99:.2f} s")
    stage.report.check(health == 200, "health is not served afterwards")
    return crowd.statuses[503]


def _addresses(canned: Server) -> dict[str, str]:
    """Of the canned upstream, which answers faster than the service can ask."""
    url = f"http://127.0.0.1:{canned.port}"
    return {"graphql_url": f"{url}/graphql", "token_url": f"{url}/connect/token"}


async def _by_cpu(process: Process, load: Awaitable[Seen]) -> tuple[Seen, float]:
    """What was seen, and the seconds of CPU that the service used: other programs on the machine do not count."""
    server = Server(port(process), process.pid)
    before = server.cpu()
    return await load, server.cpu() - before
