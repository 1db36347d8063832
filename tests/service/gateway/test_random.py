"""Requests, failures of upstream and store, deaths, reloads and time in random order, and what is true at any time.

Two processes use one store. Each operation of their stores may fail, lose its reply, or be the last of its process; the
upstream refuses, is late, cuts and changes; a month ends; Redis loses its data, a file is deleted.
"""

import asyncio
import contextlib
import dataclasses
import itertools
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import redis
from service.gateway.world import FIELDS, HOUR, REFUSED, SECONDS, START, BrokenStore, Runs, Upstream, World, client, uid

from proxy import errors
from proxy.gateway.applications import Client
from proxy.gateway.features import TIER
from proxy.gateway.pipeline import Pipeline
from proxy.gateway.process import ProcessState
from proxy.gateway.quota import EXHAUSTED
from proxy.gateway.results import Answer
from proxy.model import GraphQLError
from proxy.planning.documents import PartialData
from proxy.planning.fetches import Documents, Fetch
from proxy.planning.queries import PassedOn, Query, Received, document, matching, part, search
from proxy.store.protocol import EMPTY_SECONDS, FRESH_SECONDS, STORED_SECONDS, Account, Reserved

SEEDS, STEPS = 100, 60
MONTH_END = START + 22 * 24 * HOUR
SIZES = (1, 1, 1, 1, 0, 2, 3, 5, 30)  # of the lists
LISTS = {f"N{n}": [uid(100 * n + place) for place in range(size)] for n, size in enumerate(SIZES)}
CLIENTS = [client("none"), client("small", 60), client("large", 150)]
CLIENTS += [client("till", client_id="shop", features=None), client("german", country="DE")]
CLIENT_IDS = {each.application.account: str(each.application.credentials.client_id) for each in CLIENTS}
APPLICATIONS = [each.application for each in CLIENTS]
Event = Callable[[], Awaitable[None]]
DOCUMENTS = Documents("v3uid id manufacturer { name }")
# Until a process knows what another one has learned, which takes a step, and has sent what it had begun before.
LEARNING_SECONDS = 25.0 + SECONDS


def draw_query(draw: random.Random) -> Query:
    number = draw.choice([*LISTS])
    start = draw.choice((0, 0, 0, 0, 10))
    end = start + draw.choice((1, 3, 10))
    uids = LISTS[number] or [uid(1)]
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


def draw_document(draw: random.Random, caller: Client) -> Query:
    """Return the query of an operation that is passed on: a search with a selection of its own."""
    number, context = draw.choice([*LISTS]), caller.application.context
    fetch = Fetch(search("supSearch", 0, 5, {"q": number}), None)
    operation = DOCUMENTS.operation([fetch], context.country, context.currency)
    return document(f"of {number}", PassedOn(operation, receive, is_private=number == "N0"))


def receive(data: Any) -> Received:
    found, reported = data if isinstance(data, PartialData) else (data, ())
    bodies = [msgspec.json.decode(bytes(each.part)) for each in found.supSearch.results]
    uids = [body["v3uid"] for body in bodies if body]
    return Received(msgspec.json.encode(uids), reported, len(uids), len(bodies) - len(uids))


def draw_failure(draw: random.Random) -> tuple[errors.BridgeError, bool]:
    """Return an error of an operation, and whether it is billed."""
    refused = GraphQLError("no", path=["supMultiMatch", 0, "parts"])
    billed = draw.random() < 0.5
    return draw.choice(
        (
            (errors.UpstreamFault("failed"), False),
            (errors.TooManyRequests("too many"), False),
            (errors.CredentialsRefused("no"), False),
            (errors.UpstreamUnreachable("gone"), False),
            (errors.UpstreamUnreachable("gone", may_be_billed=True), billed),
            (errors.UpstreamUnreadable("cut", may_be_billed=True), billed),
            (errors.QueryRefused("no", reported=(refused,), may_be_billed=True), billed),
            (errors.QueryRefused("no", reported=(GraphQLError("invalid"),)), False),
            (errors.OversizedOperation("too large", may_be_billed=True), billed),
        )
    )


@dataclasses.dataclass(eq=False)
class Process:
    """A process: its pipeline, and its store, whose operations fail at a `rate`."""

    name: str
    store: BrokenStore
    state: ProcessState
    pipeline: Pipeline
    rate: float = 0.0


class Call(NamedTuple):
    process: Process
    task: asyncio.Task[None]
    until: float


class Answered(NamedTuple):
    """What was answered to a question: when, when it was fetched at the earliest, and the elements of its list."""

    time: float
    fetched: float
    start: int
    end: int


class Run:
    """One random run. `exempt` are the times at which what was fetched may have been lost, or a part be another one."""

    def __init__(self, world: World, draw: random.Random, address: str) -> None:
        self.world, self.draw, self.address = world, draw, address
        self.processes: list[Process] = []
        self.calls: list[Call] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.ends: list[tuple[Process, asyncio.Task[None]]] = []  # of pipelines of configurations before, and of all
        self.exempt: list[float] = []
        self.changed: dict[str, list[float]] = defaultdict(list)  # times at which a list became another one
        self.versions = {number: [list(uids)] for number, uids in LISTS.items()}
        self.answered: dict[tuple[str, str], list[Answered]] = defaultdict(list)
        self.names = itertools.count(1)
        self.connections = draw.choice((2, 100, 100))
        self.paid = 0  # by those who have waited for their answer
        self.is_exact = True  # nobody died
        self.is_set = False  # usage was set after a loss of data
        self.swept = 0.0
        self.snapshot: dict[bytes, tuple[int, bytes]] = {}
        self.exceeded: list[Account] = []
        events: dict[Event, float] = {self.leave: 5, self.fail: 10, self.slow: 3, self.break_store: 4, self.kill: 1}
        events |= {self.reload: 2, self.stop: 1, self.pass_time: 2, self.change_list: 2, self.spoil: 2}
        events |= {self.exhaust: 0.5}
        events |= {self.change_tier: 1} if draw.random() < 0.3 else {}
        events |= {self.save: 2, self.lose_data: 1} if address and draw.random() < 0.5 else {}
        self.events = {self.call: 60.0} | {event: often for event, often in events.items() if draw.random() < 0.7}

    @property
    def now(self) -> float:
        return self.world.clock.monotonic()

    async def steps(self) -> None:
        self.processes = [await self.start(), await self.start()]
        for _ in range(STEPS):
            await asyncio.sleep(self.draw.choice((0, 0, 0, 0.01, 0.03, 1.0, 1.0, 20.0)))
            await self.tick()
            (event,) = self.draw.choices([*self.events], [*self.events.values()])
            await event()
            await self.check()
        await self.settle()

    async def start(self) -> Process:
        name = f"worker {next(self.names)}"
        store = await self.world.open(name)
        state = self.world.state(store)
        process = Process(name, store, state, self.pipeline(state))
        store.fault = lambda *call: self.fault(process, *call)
        store.after = lambda *call: self.after(process, *call)
        await self.refresh(process.pipeline)
        return process

    def pipeline(self, state: ProcessState) -> Pipeline:
        async def send(*arguments: Any) -> Any:
            await state.store.alive()  # type: ignore[attr-defined]
            data = await self.world.upstream.send(*arguments)
            await state.store.alive()  # type: ignore[attr-defined]
            return data

        return self.world.process(state=state, connections=self.connections, send=send)

    async def delay(self, process: Process) -> None:
        if self.draw.random() < process.rate:
            await asyncio.sleep(self.draw.choice((0.0, 0.0, 0.01, 0.03, 2.0)))

    async def after(self, process: Process, name: str, arguments: tuple[Any, ...], reply: Any) -> None:
        if name == "begin":
            await self.check_limits(arguments[0], reply)
        await self.delay(process)

    async def fault(self, process: Process, name: str, arguments: tuple[Any, ...]) -> str:
        """Draw whether an operation of a process is late, and whether it fails."""
        await self.delay(process)
        is_tier = name == "put_value" and arguments[0].startswith(TIER)
        fault = ""
        if self.draw.random() < process.rate:
            fault = self.draw.choices(("fails", "loses", "dies", "dies after"), (60, 30, 1, 1))[0]
        if is_tier or (fault and name in ("finish", "put_value", "value", "values")) or fault.startswith("dies"):
            self.exempt.append(self.now)
        self.is_exact &= not fault.startswith("dies")
        return fault

    async def tick(self) -> None:
        """Do what is done once a second or minute, and replace who has died."""
        for place, process in enumerate(self.processes):
            if process.store.is_dead:
                self.is_exact = False
                self.exempt.append(self.now)
                for call in [call for call in self.calls if call.process is process]:
                    call.task.cancel()
                    self.calls.remove(call)
                self.processes[place] = await self.start()
                if self.address and self.draw.random() < 0.5:
                    await self.world.store.end_worker(process.name)
        for process in self.processes:
            self.spawn(self.refresh(process.pipeline))
        if self.now - self.swept > 60.0:
            self.swept = self.now
            await self.world.store.sweep()

    async def refresh(self, pipeline: Pipeline) -> None:
        with contextlib.suppress(errors.StoreUnavailable):
            await pipeline.refresh(APPLICATIONS)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Do work that may never end, because its process dies."""
        task = asyncio.create_task(work)
        self.tasks.append(task)
        return task

    async def call(self) -> None:
        process, caller = self.draw.choice(self.processes), self.draw.choice(CLIENTS)
        queries = [draw_query(self.draw) for _ in range(self.draw.choice((1, 1, 1, 4)))]
        if self.draw.random() < 0.1:
            queries = [draw_document(self.draw, caller)]
        until = self.now + self.draw.choice((30.0, 30.0, 2.0))
        self.calls.append(Call(process, asyncio.create_task(self.resolve(process, caller, queries, until)), until))

    async def resolve(self, process: Process, caller: Any, queries: list[Query], until: float) -> None:
        begun = self.now
        answers = await process.pipeline.resolve(caller, queries, until)
        if caller.application.credentials.client_id == "erp":
            self.paid += sum(answer.parts for answer in answers)
        for query, answer in zip(queries, answers, strict=True):
            if answer.result is None:
                assert answer.error is not None
                assert type(answer.error) is not errors.ServerError, "an internal error"
                # A refusal is by an account of the client itself, or by the upstream.
                own = ("You have exceeded", *(f"{each.name} has" for each in caller.charged))
                assert answer.error.status != 429 or answer.error.message.startswith((*own, "too many"))
                continue
            self.check_answer(caller, query, answer)
            self.check_question(caller, query, answer, begun)

    async def leave(self) -> None:
        if self.calls:
            call = self.draw.choice(self.calls)
            call.task.cancel()
            self.calls.remove(call)

    async def fail(self) -> None:
        self.world.upstream.failures.append(draw_failure(self.draw))

    async def slow(self) -> None:
        self.world.upstream.seconds = self.draw.choice((0.05, 0.05, 13.0, 31.0))

    async def spoil(self) -> None:
        """Let some parts come with an error, or as null."""
        uids = frozenset(self.draw.choice(list(LISTS.values())))
        self.world.upstream.faulty, self.world.upstream.null = self.draw.choice(
            ((uids, frozenset()), (frozenset(), uids))
        )
        if self.draw.random() < 0.5:
            self.world.upstream.faulty = self.world.upstream.null = frozenset()

    async def break_store(self) -> None:
        process = self.draw.choice(self.processes)
        process.rate = self.draw.choice((0.05, 0.5, 1.0)) if not process.rate else 0.0

    async def kill(self) -> None:
        self.draw.choice(self.processes).store.is_dead = True
        await self.tick()

    async def reload(self) -> None:
        self.spawn(self.swap(self.draw.choice(self.processes)))

    async def swap(self, process: Process) -> None:
        pipeline = self.pipeline(process.state)
        await self.refresh(pipeline)
        self.end(process)
        process.pipeline = pipeline

    async def stop(self) -> None:
        """Replace a process by another one; it ends what it has begun."""
        place = self.draw.randrange(2)
        old, new = self.processes[place], await self.start()
        if old.store.is_dead:  # perhaps since the other one began to start
            return
        self.processes[place], old.rate = new, 0.0
        self.end(old)

    def end(self, process: Process) -> None:
        self.ends.append((process, self.spawn(process.pipeline.aclose())))

    async def pass_time(self) -> None:
        for process in self.processes:
            process.rate = 0.0
        for seconds in (61.0, 61.0, 61.0, self.draw.choice((EMPTY_SECONDS, 6 * HOUR, 23.6 * HOUR))):
            await asyncio.sleep(seconds)
            await self.tick()

    async def change_list(self) -> None:
        """Add, take away or move an element of a list."""
        number = self.draw.choice([*LISTS])
        listed = list(self.versions[number][-1])
        if listed and self.draw.random() < 0.5:
            listed.pop(self.draw.randrange(len(listed)))
        else:
            listed.insert(self.draw.randint(0, len(listed)), uid(10_000 + next(self.names)))
        self.world.upstream.lists[number] = listed
        self.versions[number].append(listed)
        self.changed[number].append(self.now)

    async def change_tier(self) -> None:
        upstream = self.world.upstream
        upstream.lacking = frozenset() if upstream.lacking else frozenset({self.draw.choice([*FIELDS])})

    async def exhaust(self) -> None:
        """Let the upstream refuse a quota as exhausted, or have more parts bought."""
        if self.draw.random() < 0.5:
            error = errors.QuotaExhausted("You have exceeded your part limit of 100")
            self.world.upstream.failures.insert(0, (error, False))
        for application in APPLICATIONS:
            await self.world.store.drop_value(f"{EXHAUSTED}{application.account}")

    async def save(self) -> None:
        """Remember the data of Redis, as a snapshot does."""
        if self.address.startswith("unix:"):
            with redis.Redis.from_url(self.address) as server:
                self.snapshot = {key: (max(0, server.pttl(key)), server.dump(key)) for key in server.keys("*")}

    async def lose_data(self) -> None:
        """Lose all data, or those since a snapshot, and set usage as the vendor's portal shows it. Until then nothing
        that costs parts is begun."""
        counted = {(row.account, row.period): sum(row[2:]) for row in await self.world.store.usage()}
        if self.address.startswith("unix:"):
            with redis.Redis.from_url(self.address) as server:
                server.flushall()
                for key, (milliseconds, value) in self.snapshot.items() if self.draw.random() < 0.5 else ():
                    server.restore(key, milliseconds, value)
        else:
            Path(self.address).unlink()
        for process in self.processes:
            process.rate = 0.0
        for _ in range(self.draw.randrange(4)):
            await self.call()
            await asyncio.sleep(1.0)
        await asyncio.sleep(40.0)
        if not self.address.startswith("unix:"):
            await self.restart_all()
        self.is_exact, self.is_set = False, True
        accounts = {client_id: account for account, client_id in CLIENT_IDS.items()}
        billed = {(accounts[client_id], period): 0 for client_id, period in self.world.upstream.billed_in}
        for pair, parts in (billed | counted).items():
            if pair[0] in CLIENT_IDS:
                parts = self.world.upstream.billed_in[CLIENT_IDS[pair[0]], pair[1]]
            await self.world.store.set_usage(Account(*pair), parts)
        self.exempt.append(self.now)

    async def restart_all(self) -> None:
        """Start again on a new file."""
        for process in {*self.processes, *(process for process, _ in self.ends)}:
            process.store.is_dead = True
            await process.store.store.aclose()
        self.ends.clear()
        await self.world.store.store.aclose()
        self.world.store = await self.world.open("observer")
        await self.tick()

    async def settle(self) -> None:
        """Let all end that can, and see that nothing stays reserved."""
        for process in self.processes:
            process.rate = 0.0
            self.end(process)
        for _ in range(100):
            await asyncio.sleep(61.0)
            await self.tick()
            if all(task.done() or process.store.is_dead for process, task in self.ends):
                break
        else:
            raise AssertionError("does not end")
        assert all(process.pipeline.is_ready for process in self.processes)
        await self.check()
        usage = await self.world.store.usage()
        assert not any(row.reserved for row in usage)
        if self.is_exact:
            used = {row.account: row.used for row in usage if row.period == "lifetime"}
            for account, client_id in CLIENT_IDS.items():
                assert used.get(account, 0) == self.world.upstream.used[client_id]

    async def check(self) -> None:
        for call in [call for call in self.calls if call.task.done()]:
            self.calls.remove(call)
            call.task.result()
        assert not self.exceeded
        assert all(call.process.store.is_dead or self.now <= call.until + 5.0 for call in self.calls), (
            "no answer in time"
        )
        usage = {(row.account, row.period): row for row in await self.world.store.usage()}
        upstream = self.world.upstream
        for account, client_id in CLIENT_IDS.items():
            for (billed_to, period), parts in upstream.billed_in.items():
                if billed_to == client_id and parts:
                    assert parts <= sum(usage[account, period][2:])
            row = usage.get((account, "lifetime"))
            if row and not self.is_set:
                assert row.used <= upstream.used[client_id]
                keys = {each.charged[1].id for each in CLIENTS if each.application.account == account}
                own = [usage[key, "lifetime"][2:] for key in keys if (key, "lifetime") in usage]
                assert row[2:] == tuple(map(sum, zip(*own, strict=True)))
                # What has expired may be lowered below what was said to a client.
                is_booked = self.is_exact and all(process.pipeline.is_ready for process in self.processes)
                assert client_id != "erp" or not is_booked or self.paid <= sum(row[2:])
        self.check_paid_once()

    async def check_limits(self, begins: Any, outcomes: Any) -> None:
        """What is reserved fits. After a month has ended, parts that were reserved in it are used in the next one."""
        usage = {(row.account, row.period): sum(row[2:]) for row in await self.world.store.usage()}
        for begin, outcome in zip(begins, outcomes, strict=True):
            if isinstance(outcome, Reserved) and not 0 <= self.world.clock.now() - MONTH_END < 60.0:
                limited = [each for each in begin.accounts if each.limit is not None]
                self.exceeded += [each for each in limited if usage.get(each[:2], 0) > each.limit]

    def is_exempt(self, since: float, until: float) -> bool:
        return any(since - LEARNING_SECONDS <= each <= until for each in self.exempt)

    def has_changed(self, key: str, since: float) -> bool:
        return any(since - STORED_SECONDS <= each for number in LISTS if number in key for each in self.changed[number])

    def check_paid_once(self) -> None:
        """A part that was returned is returned again only for another list, a day later, or where it may be lost."""
        last: dict[tuple[str, str], tuple[float, str]] = {}
        asked: dict[tuple[str, str], list[float]] = defaultdict(list)
        for sent, returned, scope, found, key, place in self.world.upstream.returned:
            if place >= 10 or " passed on" in key or self.has_changed(key, sent):
                continue  # of a page with a list of its own, stored without its parts, or of another list
            before, known = last.get((scope, found), (-1e9, ""))
            last[scope, found] = returned, key
            asked[scope, key].append(sent)
            # A list is as old as its oldest part.
            is_old = any(FRESH_SECONDS - 60 <= sent - at < 2 * FRESH_SECONDS for at in asked[scope, key])
            begun = sent - (SECONDS if self.connections == 2 else 0.0)  # what is reserved may wait for a connection
            if begun <= before or is_old or sent - before >= FRESH_SECONDS - 60 or self.is_exempt(before, sent):
                continue
            assert key != known, (scope, found, key, sent, before)
            assert not key.startswith("supParts"), (scope, found, key, sent, before)
            has_one_hit = known in (f"supMultiMatch mpn=N{n}" for n, size in enumerate(SIZES) if size == 1)
            assert not has_one_hit or key != f"{known} manufacturer=Maker", (scope, found, key, sent, before)

    def check_question(self, caller: Any, query: Query, answer: Answer, begun: float) -> None:
        """One question is paid for once in a day."""
        assert answer.result is not None
        scope = f"{caller.application.account} {caller.application.context.country}"
        is_empty = not answer.result.items and answer.result.details is None
        since = max(begun - FRESH_SECONDS + 60.0, begun - EMPTY_SECONDS if is_empty else -1e9)
        for known in self.answered[scope, query.key]:
            is_known = known.time < begun and known.start <= query.start and query.end <= known.end
            if answer.parts and is_known and since < known.fetched and not self.is_exempt(known.fetched, self.now):
                assert self.has_changed(query.key + str(query.criteria), known.fetched), (
                    query,
                    known,
                    answer.parts,
                    begun,
                    self.now,
                )
        is_stored = query.passed_on is None or (answer.result.details != b"[]" and not query.passed_on.is_private)
        if answer.source != "stale" and not answer.is_partial and is_stored:
            fetched = answer.result.fetched - self.world.clock.now() + self.now if answer.result.fetched else self.now
            self.answered[scope, query.key].append(Answered(self.now, fetched, query.start, query.end))

    def check_answer(self, caller: Any, query: Query, answer: Answer) -> None:
        """An answer has the elements of its list, as they were fetched for this application and market within a day,
        with the fields of its features."""
        assert answer.result is not None
        shown = answer.result.items[query.start - answer.first : query.end - answer.first]
        found = [hit.uid for hit in shown]
        if query.passed_on is not None:
            found = msgspec.json.decode(answer.result.details or b"")
            versions = self.versions[query.key.removeprefix("document of ")]
            assert answer.is_partial or found in [version[:5] for version in versions]
        elif query.root == "supParts":
            assert {*found, ""} <= {str(query.criteria["id"]).removeprefix("id of "), ""}
        else:
            number = query.criteria.get("mpn") or query.criteria.get("mpnOrSku") or query.criteria["q"]
            lists = [version[query.start : query.end] for version in self.versions[number]]
            assert answer.is_partial or found in lists or self.changed[number], (found, lists)
            assert all(not each or any(each in listed for listed in lists) for each in found)
            assert len({*found} - {""}) == len(list(filter(None, found)))
        for body in answer.result.bodies:
            if body == b"null":
                assert answer.is_partial
                continue
            decoded = msgspec.json.decode(body)
            assert decoded["slug"] == f"{caller.application.credentials.client_id} {caller.application.context.country}"
            most = STORED_SECONDS if answer.source == "stale" else FRESH_SECONDS
            assert self.world.clock.now() - decoded["at"][0] < most + 60.0
            assert {FIELDS[each] for each in answer.features if each in FIELDS} <= {*decoded["fields"]}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_runs(runs: Runs, seed: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    draw = random.Random(seed)
    kind = ("memory", "memory", "memory", "file", "redis")[seed % 5]
    address = {"memory": "", "file": str(tmp_path / "store.sqlite")}.get(kind)
    if address is None:
        address = request.getfixturevalue("redis_server").url
    lacking = frozenset(draw.choice(((), ("TECH_SPECS",))))
    lists = {number: list(uids) for number, uids in LISTS.items()}
    upstream = Upstream(lists, lacking, nullable=draw.random() < 0.5, bills_refused=draw.random() < 0.5, shows=True)
    upstream.has_path = draw.random() < 0.7
    upstream.complex_from = draw.choice((1_000, 3))
    start = draw.choice((START, MONTH_END - 1.0, MONTH_END - 600.0, MONTH_END - 2 * HOUR))
    runs(upstream, lambda world: Run(world, draw, address).steps(), start, address)
