"""Requests, failures of upstream and store, deaths and time in random order, and what must be true at any time."""

import asyncio
import random
from collections import defaultdict
from typing import Any

import pytest
from service.next.world import HOUR, REFUSED, BrokenStore, Runs, Upstream, World, client, uid

from proxy import errors
from proxy.next.applications import Client, digest
from proxy.next.queries import Query, matching, part, search
from proxy.next.results import Answer
from proxy.store.protocol import FRESH_SECONDS

SIZES = (1, 1, 1, 1, 2, 3, 5, 30)  # of the lists
LISTS = {f"N{n}": [uid(100 * n + place) for place in range(size)] for n, size in enumerate(SIZES)}
LIMITS = {"none": None, "small": 60, "large": 150}
CLIENTS = [client(key, limit) for key, limit in LIMITS.items()]
CLIENTS += [client("none", client_id="shop", features=None), client("none", country="DE")]
APPLICATIONS = [each.application for each in CLIENTS]


def draw_query(draw: random.Random) -> Query:
    number = draw.choice([*LISTS])
    start = draw.choice((0, 0, 0, 0, 10))
    end = start + draw.choice((1, 3, 10))
    uids = LISTS[number]
    return draw.choice(
        (
            matching(start, end, mpn=draw.choice((number, f" {number.lower()}"))),
            matching(start, end, mpn=number),
            matching(start, end, mpn=number, manufacturer="Maker"),
            matching(start, end, mpn_or_sku=number),
            search("supSearch", start, end, {"q": number}),
            part(draw.choice(uids)),
            part(f"id of {draw.choice(uids)}"),
            matching(0, 1, mpn=REFUSED),
        )
    )


class Run:
    """One random run: two processes, of which each has the store through faults of its own."""

    def __init__(self, world: World, draw: random.Random) -> None:
        self.world, self.draw = world, draw
        self.stores = [BrokenStore(world.store), BrokenStore(world.store)]
        self.processes = [world.process(store, connections=100) for store in self.stores]
        self.callers: list[asyncio.Task[None]] = []
        self.faults: list[float] = []  # times at which results may have been lost

    async def steps(self) -> None:
        for _ in range(150):
            await asyncio.sleep(self.draw.choice((0, 0, 0, 0.01, 0.03, 1.0, 1.0, 20.0)))
            step = self.draw.choices(
                (self.call, self.leave, self.fail, self.slow, self.break_store, self.kill, self.pass_time),
                (60, 5, 10, 3, 3, 1, 2),
            )[0]
            await self.refresh()
            await step()
            await self.check()
        await self.settle()

    async def call(self) -> None:
        process, caller = self.draw.choice(self.processes), self.draw.choice(CLIENTS)
        queries = [draw_query(self.draw) for _ in range(self.draw.choice((1, 1, 1, 4)))]
        task = asyncio.create_task(self.resolve(process, caller, queries, self.draw.choice((30.0, 30.0, 2.0))))
        self.callers.append(task)

    async def resolve(self, process: Any, caller: Client, queries: list[Query], seconds: float) -> None:
        answers = await self.world.resolve(process, caller, queries, seconds)
        for query, answer in zip(queries, answers, strict=True):
            check_answer(caller, query, answer)

    async def leave(self) -> None:
        if self.callers:
            self.draw.choice(self.callers).cancel()

    async def fail(self) -> None:
        kinds: list[tuple[errors.BridgeError, bool]] = [
            (errors.UpstreamFault("failed"), False),
            (errors.UpstreamUnreadable("cut", may_be_billed=True), True),
            (errors.UpstreamUnreadable("cut", may_be_billed=True), False),
        ]
        self.world.upstream.failures.append(self.draw.choice(kinds))

    async def slow(self) -> None:
        self.world.upstream.seconds = self.draw.choice((0.05, 0.05, 13.0, 31.0))

    async def break_store(self) -> None:
        store = self.draw.choice(self.stores)
        names = ("begin", "finish", "quote", "put_value", "value")
        store.broken = {name for name in names if self.draw.random() < 0.5} if not store.broken else set()
        store.loses = self.draw.random() < 0.5
        self.faults.append(self.world.clock.monotonic())

    async def kill(self) -> None:
        place = self.draw.randrange(2)
        self.stores[place].is_dead = True
        self.stores[place] = BrokenStore(self.world.store)
        self.processes[place] = self.world.process(self.stores[place], connections=100)
        await self.processes[place].refresh(APPLICATIONS)
        self.faults.append(self.world.clock.monotonic())

    async def pass_time(self) -> None:
        for store in self.stores:
            store.broken = set()
        await asyncio.sleep(self.draw.choice((400.0, 6 * HOUR, 23.6 * HOUR)))

    async def refresh(self) -> None:
        for process, store in zip(self.processes, self.stores, strict=True):
            if "value" not in store.broken:
                await process.refresh(APPLICATIONS)

    async def settle(self) -> None:
        """Let all end that can, and see that nothing stays reserved."""
        for store in self.stores:
            store.broken = set()
        await asyncio.sleep(100.0)
        for process in self.processes:
            await process.aclose()
        await self.check()
        assert not any(row.reserved for row in await self.world.store.usage())

    async def check(self) -> None:
        for task in [task for task in self.callers if task.done()]:
            self.callers.remove(task)
            if not task.cancelled():
                task.result()
        billed = self.world.upstream.billed
        usage = {(row.account, row.period): row for row in await self.world.store.usage()}
        for client_id, parts in (+billed).items():
            row = usage[digest(client_id), "lifetime"]
            assert parts <= row.used + row.uncertain + row.reserved
        for key, limit in LIMITS.items():
            if limit is not None and (monthly := usage.get((digest(key), "2026-12"))):
                assert monthly.used + monthly.uncertain + monthly.reserved <= limit, monthly
        self.check_paid_once()

    def check_paid_once(self) -> None:
        """A part that was returned is returned again only for another list, a day later, or where it may be lost."""
        last: dict[tuple[str, str], tuple[float, str]] = {}
        asked: dict[tuple[str, str], list[float]] = defaultdict(list)
        for sent, returned, scope, found, key in self.world.upstream.returned:
            before, known = last.get((scope, found), (-1e9, ""))
            last[scope, found] = returned, key
            asked[scope, key].append(sent)
            # A list is as old as its oldest part.
            is_old = any(FRESH_SECONDS - 60 <= sent - at < 2 * FRESH_SECONDS for at in asked[scope, key])
            is_lost = any(before - 60.0 <= fault <= sent for fault in self.faults)
            if sent <= before or is_old or sent - before >= FRESH_SECONDS - 60 or is_lost:
                continue
            assert key != known, (
                scope,
                found,
                key,
                [e for e in self.world.upstream.returned if e[3] == found],
                self.faults,
            )
            assert not key.startswith("supParts"), (
                key,
                [e for e in self.world.upstream.returned if e[3] == found],
                self.faults,
            )
            has_one_hit = known in (f"supMultiMatch mpn=N{n}" for n, size in enumerate(SIZES) if size == 1)
            assert not has_one_hit or key != f"{known} manufacturer=Maker", (scope, found, key)


def check_answer(caller: Client, query: Query, answer: Answer) -> None:
    """An answer has the elements of its list, as they were fetched for this application and market."""
    if answer.result is None:
        assert answer.error is not None
        return
    if query.root == "supParts":
        expected = [str(query.criteria["id"]).removeprefix("id of ")]
    else:
        number = query.criteria.get("mpn") or query.criteria.get("mpnOrSku") or query.criteria["q"]
        expected = LISTS[number][query.start : query.end]
    shown = answer.result.items[query.start - answer.first : query.end - answer.first]
    assert [hit.uid for hit in shown] == expected
    scope = f"{caller.application.credentials.client_id} {caller.application.context.country}".encode()
    assert all(scope in body for body in answer.result.bodies)


async def sweep(world: World) -> None:
    while True:
        await asyncio.sleep(60.0)
        await world.store.sweep()


@pytest.mark.parametrize("seed", range(4))
def test_random_runs(runs: Runs, seed: int) -> None:
    draw = random.Random(seed)
    lacking = frozenset(draw.choice(((), ("TECH_SPECS",))))
    upstream = Upstream(LISTS, lacking, nullable=draw.random() < 0.5, bills_refused=draw.random() < 0.5)
    upstream.complex_from = draw.choice((1_000, 3))

    async def main(world: World) -> None:
        run = Run(world, draw)
        if lacking:  # the processes know it from the start
            for caller in CLIENTS:
                await world.resolve(run.processes[0], caller, [matching(0, 1, mpn="N0")])
            await run.processes[1].refresh(APPLICATIONS)
        sweeping = asyncio.create_task(sweep(world))
        await run.steps()
        sweeping.cancel()

    runs(upstream, main)
