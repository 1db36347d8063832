"""Requests, failures of upstream and store, deaths, reloads and time in random order, and what is true at any time.

Two processes use one store. Each operation of their stores may fail, be late, lose its reply, or be the last of its
process; the upstream refuses, is late, cuts and changes; a month ends; Redis loses its data, a file is deleted.
"""

import asyncio
import contextlib
import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from service.gateway.world import FIELDS, HOUR, REFUSED, SECONDS, START, Sent, Upstream, World, client, uid
from support.store_client import BrokenStore

from proxy import errors
from proxy.gateway.applications import Client
from proxy.gateway.features import TIER
from proxy.gateway.flights import Answer
from proxy.gateway.pipeline import Pipeline
from proxy.gateway.process import EXHAUSTED
from proxy.model import GraphQLError
from proxy.planning.documents import PartialData, of_parts
from proxy.planning.queries import PassedOn, Query, Received, matching, of_list, operation, part
from proxy.store.protocol import EMPTY_SECONDS, FRESH_SECONDS, STORED_SECONDS, Account, Reserved
from proxy.store.store import Store

SEEDS, STEPS = 100, 60
MONTH_END = START + 22 * 24 * HOUR
SIZES = (1, 1, 1, 1, 0, 2, 3, 5, 30)  # of the lists
LISTS = {f"N{n}": [uid(100 * n + place) for place in range(size)] for n, size in enumerate(SIZES)}
CLIENTS = [client("none"), client("small", 60), client("large", 150)]
CLIENTS += [client("till", client_id="shop", features=None), client("german", country="DE")]
APPLICATIONS = [each.application for each in CLIENTS]
ACCOUNTS = {str(each.credentials.client_id): each.account for each in APPLICATIONS}
DOCUMENTS = of_parts("v3uid id manufacturer { name }")
# Until a process knows what another one has learned, which takes a step, and has sent what it had begun before.
LEARNING_SECONDS = 25.0 + SECONDS


def draw_query(draw: random.Random) -> Query:
    number = draw.choice([*LISTS])
    start = draw.choice((0, 0, 0, 0, 10))
    end = start + draw.choice((1, 3, 10))
    uid_ = draw.choice(LISTS[number] or [uid(1)])
    queries = (
        matching(start, end, mpn=draw.choice((number, number, f" {number.lower()}"))),
        matching(start, end, mpn=number, manufacturer="Maker"),
        matching(start, end, mpn_or_sku=number),
        of_list("supSearch", start, end, {"q": number}),
        part(draw.choice((uid_, f"id of {uid_}"))),
        matching(0, 1, mpn=REFUSED),
    )
    return draw.choices(queries, (2, 1, 1, 1, 2, 1))[0]


def draw_document(draw: random.Random, caller: Client) -> Query:
    """Return the query of an operation that is passed on: a search with a selection of its own."""
    number, context = draw.choice([*LISTS]), caller.application.context
    fetch = of_list("supSearch", 0, 5, {"q": number}).fetch()
    sent = operation(DOCUMENTS, [fetch], context.country, context.currency)
    passed_on = PassedOn(sent, receive, is_private=number == "N0")
    return Query("document", {}, f"document of {number}", 0, 1, passed_on=passed_on)


def receive(data: Any) -> Received:
    found, reported = data if isinstance(data, PartialData) else (data, ())
    bodies = [msgspec.json.decode(bytes(each.part)) for each in found.supSearch.results]
    uids = [body["v3uid"] for body in bodies if body]
    return Received(msgspec.json.encode(uids), reported, len(uids), len(bodies) - len(uids))


class Process(BrokenStore):
    """A process: its store, whose operations fail and are late, and its pipeline. After its death no
    operation returns."""

    def __init__(self, run: "Run", name: str, store: Store) -> None:
        super().__init__(store)
        self.run, self.name, self.is_dead = run, name, False
        self.state = run.world.state(self)
        self.pipeline = self.configured()

    def configured(self) -> Pipeline:
        return self.run.world.process(state=self.state, connections=self.run.connections, send=self.send)

    async def send(self, *arguments: Any) -> Any:
        await self.alive()
        return await self.run.world.upstream.send(*arguments)

    async def refresh(self, pipeline: Pipeline) -> None:
        with contextlib.suppress(errors.StoreUnavailable):
            await pipeline.refresh(CLIENTS)

    async def reload(self) -> None:
        pipeline = self.configured()
        await self.refresh(pipeline)
        self.spawn(self.pipeline.aclose())  # it ends what it has begun
        self.pipeline = pipeline

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        self.run.tasks.append((self, asyncio.create_task(work)))
        return self.run.tasks[-1][1]

    def die(self) -> None:
        self.is_dead, self.run.is_exact = True, False
        self.run.exempt.append(self.run.now())

    async def alive(self) -> None:
        """Return only if the process lives."""
        if self.is_dead:
            await asyncio.Future()

    async def operate(self, name: str, *args: Any, **named: Any) -> Any:
        """Draw whether an operation fails, loses its reply or is the last one, and how late it and its reply are."""
        draw, rate, fault = self.run.draw, self.run.rates[self], ""
        if draw.random() < rate:
            fault = draw.choices(("fails", "loses", "dies", "dies after"), (60, 30, 1, 1))[0]
        late, reply_late = (draw.choice((0.0, 0.01, 2.0)) if draw.random() < rate else 0.0 for _ in range(2))
        is_tier = name == "put_value" and args[0].startswith(TIER)
        is_lost = (fault or late) and name in ("finish", "put_value", "value", "values")
        # What is reserved, and sent when the reply has come, may come by another key meanwhile.
        if is_tier or is_lost or (reply_late and name == "begin"):
            self.run.exempt.append(self.run.now())
        await asyncio.sleep(late)
        if fault == "dies":
            self.die()
        if self.run.is_over:
            return None  # so that what the end of the test cancels comes to its own
        await self.alive()
        reply = None if fault == "fails" else await super().operate(name, *args, **named)
        if name == "begin" and reply:
            await self.run.check_limits(args[0], reply)
        if fault == "dies after":
            self.die()
        await asyncio.sleep(reply_late)
        await self.alive()
        if fault:
            raise errors.StoreUnavailable("broken")
        return reply


class Run:
    """One random run. `exempt` are the times at which what was fetched may have been lost, or a part be another one."""

    def __init__(self, world: World, draw: random.Random, address: str) -> None:
        self.world, self.draw, self.address, self.now = world, draw, address, world.clock.monotonic
        self.upstream = world.upstream
        self.processes, self.calls = list[Process](), list[asyncio.Task[None]]()
        self.tasks: list[tuple[Process, asyncio.Task[None]]] = []  # that end unless their process dies
        self.exempt, self.exceeded = list[float](), list[Account]()
        self.rates: dict[Process, float] = defaultdict(float)  # at which operations of a store fail, and are late
        self.shorter: dict[str, float] = {}  # when a list became shorter, and by which part
        self.versions = {number: [(-math.inf, uids)] for number, uids in LISTS.items()}  # since when
        self.asked: dict[tuple[str, str], list[Sent]] = defaultdict(list)  # by scope and uid, or scope and key
        self.names, self.swept = itertools.count(1), 0.0
        self.checked = 0  # parts that were asked for
        self.connections = draw.choice((2, 100, 100))
        self.paid: Counter[str] = Counter()  # by those who have waited for their answer, by client id
        self.is_exact, self.is_set, self.is_over = True, False, False  # nobody died; usage was set after a loss of data
        self.snapshot: dict[bytes, tuple[int, bytes]] = {}
        events: dict[Callable[[], Awaitable[None]], float] = {self.leave: 5, self.fail: 10, self.slow: 3, self.kill: 1}
        events |= {self.break_store: 4, self.reload: 2, self.stop: 1, self.pass_time: 2, self.change_list: 2}
        events |= {self.spoil: 2, self.exhaust: 0.5}
        events |= {self.change_tier: 1} if draw.random() < 0.3 else {}
        if address and draw.random() < 0.5:
            events |= {self.save: 2, self.lose_data: 1} if address.startswith("unix:") else {self.lose_data: 1}
        self.events = {self.call: 60.0} | {event: often for event, often in events.items() if draw.random() < 0.7}

    async def steps(self) -> None:
        try:
            self.processes = [await self.start(), await self.start()]
            for _ in range(STEPS):
                await asyncio.sleep(self.draw.choice((0, 0, 0, 0.01, 0.03, 1.0, 1.0, 20.0)))
                await self.tick()
                (event,) = self.draw.choices([*self.events], [*self.events.values()])
                await event()
                await self.check()
            await self.settle()
        finally:  # nothing goes on while a failure is shown
            self.is_over = True
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def start(self) -> Process:
        name = f"worker {next(self.names)}"
        process = Process(self, name, await self.world.open(name))
        await process.refresh(process.pipeline)
        return process

    async def tick(self) -> None:
        """Do what is done once a second or minute, and replace who has died."""
        for place, process in enumerate(self.processes):
            if process.is_dead:
                self.exempt.append(self.now())
                self.processes[place] = await self.start()
                if self.address and self.draw.random() < 0.5:
                    await self.world.store.end_worker(process.name)
        for process in self.processes:
            process.spawn(process.refresh(process.pipeline))
        if self.now() - self.swept > 60.0:
            self.swept = self.now()
            await self.world.store.sweep()

    async def call(self) -> None:
        process, caller = self.draw.choice(self.processes), self.draw.choice(CLIENTS)
        queries = [draw_query(self.draw) for _ in range(self.draw.choice((1, 1, 1, 4)))]
        if self.draw.random() < 0.1:
            queries = [draw_document(self.draw, caller)]
        until = self.now() + self.draw.choice((30.0, 30.0, 2.0))
        self.calls.append(process.spawn(self.resolve(process, caller, queries, until)))

    async def resolve(self, process: Process, caller: Client, queries: list[Query], until: float) -> None:
        answers = await process.pipeline.resolve(caller, queries, until)
        assert self.now() < until + 5.0, "no answer in time"
        self.paid[str(caller.application.credentials.client_id)] += sum(answer.parts for answer in answers)
        for query, answer in zip(queries, answers, strict=True):
            if answer.result is not None:
                self.check_answer(caller, query, answer)
                continue
            assert answer.error is not None
            assert type(answer.error) is not errors.ServerError, "an internal error"
            # A refusal is by an account of the client itself, or by the upstream.
            own = ("You have exceeded", "too many", *(f"{each.name} has" for each in caller.charged))
            assert answer.error.status != 429 or answer.error.message.startswith(own)

    async def leave(self) -> None:
        for call in self.calls[-1:]:
            call.cancel()

    async def fail(self) -> None:
        refused = GraphQLError("no", path=["supMultiMatch", 0, "parts"])
        free = errors.UpstreamFault, errors.TooManyRequests, errors.CredentialsRefused, errors.UpstreamUnreachable
        billed = errors.UpstreamUnreachable, errors.UpstreamUnreadable, errors.OversizedOperation
        failures: list[errors.BridgeError] = [kind("too many") for kind in free]
        failures += [kind("too late", may_be_billed=True) for kind in billed]
        failures += [errors.QueryRefused("no", reported=(GraphQLError("invalid"),))]
        failures += [errors.QueryRefused("no", reported=(refused,), may_be_billed=True)]
        failure = self.draw.choice(failures)
        is_billed = getattr(failure, "may_be_billed", False) and self.draw.random() < 0.5
        self.upstream.failures.append((failure, is_billed))

    async def slow(self) -> None:
        self.upstream.seconds = self.draw.choice((0.05, 0.05, 13.0, 31.0))

    async def spoil(self) -> None:
        """Let some parts come with an error, or as null, or all as they are."""
        some, none = frozenset(self.draw.choice([*LISTS.values()])), frozenset[str]()
        self.upstream.faulty, self.upstream.null = self.draw.choice(((some, none), (none, some), (none, none)))

    async def break_store(self) -> None:
        process = self.draw.choice(self.processes)
        self.rates[process] = self.draw.choice((0.05, 0.5, 1.0)) if not self.rates[process] else 0.0

    async def kill(self) -> None:
        self.draw.choice(self.processes).die()
        await self.tick()

    async def reload(self) -> None:
        process = self.draw.choice(self.processes)
        process.spawn(process.reload())

    async def stop(self) -> None:
        """Replace a process by another one; it ends what it has begun."""
        place, new = self.draw.randrange(2), await self.start()
        old = self.processes[place]
        if not old.is_dead:  # perhaps since the other one began to start
            self.processes[place], self.rates[old] = new, 0.0
            old.spawn(old.pipeline.aclose())

    async def pass_time(self) -> None:
        self.rates.clear()
        for seconds in (61.0, 61.0, 61.0, self.draw.choice((EMPTY_SECONDS, 6 * HOUR, 23.6 * HOUR))):
            await asyncio.sleep(seconds)
            await self.tick()

    async def change_list(self) -> None:
        """Add, take away or move an element of a list."""
        number = self.draw.choice([*LISTS])
        listed = [*self.versions[number][-1][1]]
        if listed and self.draw.random() < 0.5:
            self.shorter[number] = self.shorter[listed.pop(self.draw.randrange(len(listed)))] = self.now()
        else:
            listed.insert(self.draw.randint(0, len(listed)), uid(10_000 + next(self.names)))
        self.upstream.lists[number] = listed
        self.versions[number].append((self.now(), listed))

    async def change_tier(self) -> None:
        self.upstream.lacking = frozenset() if self.upstream.lacking else frozenset({self.draw.choice([*FIELDS])})

    async def exhaust(self) -> None:
        """Let the upstream refuse a quota as exhausted, or have more parts bought."""
        if self.draw.random() < 0.5:
            self.upstream.failures.insert(0, (errors.QuotaExhausted("You have exceeded your part limit of 100"), False))
        for application in APPLICATIONS:
            await self.world.store.put_value(f"{EXHAUSTED}{application.account}", "", 0.0)

    async def save(self) -> None:
        """Remember the data of Redis, as a snapshot does."""
        with redis.Redis.from_url(self.address) as server:
            self.snapshot = {key: (max(0, server.pttl(key)), server.dump(key)) for key in server.keys("*")}

    async def lose_data(self) -> None:
        """Lose all data, or those since a snapshot, and set usage as the vendor's portal shows it. Until then nothing
        that costs parts is begun."""
        usage = await self.world.store.usage()
        counted = {(row.account, row.period): 0 if row.account in ACCOUNTS.values() else sum(row[2:]) for row in usage}
        is_file = not self.address.startswith("unix:")
        if is_file:
            Path(self.address).unlink()
        else:
            with redis.Redis.from_url(self.address) as server:
                server.flushall()
                for key, (milliseconds, value) in self.snapshot.items() if self.draw.random() < 0.5 else ():
                    server.restore(key, milliseconds, value)
        self.rates.clear()
        for _ in range(self.draw.randrange(4)):
            await self.call()
            await asyncio.sleep(1.0)
        await asyncio.sleep(40.0)
        if is_file:
            for process in {*self.processes, *(process for process, _ in self.tasks)}:
                process.is_dead = True
                await process.store.aclose()
            await self.world.store.aclose()
            self.world.store = await self.world.open("observer")
            await self.tick()
        for process in self.processes:
            process.spawn(process.reload())  # what was known of tiers is lost
        self.is_exact, self.is_set = False, True
        billed = {(ACCOUNTS[name], period): parts for (name, period), parts in self.upstream.billed_in.items()}
        for pair, parts in (counted | billed).items():
            await self.world.store.set_usage(Account(*pair), parts)
        self.exempt.append(self.now())

    async def settle(self) -> None:
        """Let all end that can, and see that nothing stays reserved."""
        self.rates.clear()
        for process in self.processes:
            process.spawn(process.pipeline.aclose())
        for _ in range(10):
            await self.tick()
            await asyncio.sleep(61.0)
        assert all(task.done() or process.is_dead for process, task in self.tasks), "does not end"
        assert all(process.is_dead or not process.state.unfinished for process in self.processes)
        await self.world.store.sweep()
        await self.check()
        usage = await self.world.store.usage()
        assert not any(row.reserved for row in usage)
        used = {row.account: row.used for row in usage if row.period == "lifetime"}
        for client_id, account in ACCOUNTS.items() if self.is_exact else ():
            assert used.get(account, 0) == self.upstream.used[client_id]

    async def check(self) -> None:
        for _, task in self.tasks:
            if task.done() and not task.cancelled():
                task.result()
        assert not self.exceeded
        await self.check_usage()
        self.check_paid_once()

    async def check_usage(self) -> None:
        """What is billed is counted, no more is used than came, and API keys count what their application does.

        Uncertain parts of reservations that have expired fall to what the same query costs later, which is less where
        its list has become shorter meanwhile.
        """
        usage = {(row.account, row.period): row for row in await self.world.store.usage()}
        lowered = Counter(
            each.scope.partition(" ")[0]
            for each in self.upstream.sent
            if each.uid and any(f in f"{each.key} {each.uid}" and each.sent <= at for f, at in self.shorter.items())
        )
        for (client_id, period), parts in self.upstream.billed_in.items():
            assert parts <= sum(usage.get((ACCOUNTS[client_id], period), ())[2:]) + lowered[client_id]
        is_booked = self.is_exact and not any(process.state.unfinished for process in self.processes)
        for client_id, account in ACCOUNTS.items():
            if (row := usage.get((account, "lifetime"), ())) and not self.is_set:
                assert row.used <= self.upstream.used[client_id]
                keys = {each.charged[1].id for each in CLIENTS if each.application.account == account}
                own = [usage[key, "lifetime"][2:] for key in keys if (key, "lifetime") in usage]
                assert row[2:] == tuple(map(sum, zip(*own, strict=True)))
                assert not is_booked or self.paid[client_id] <= sum(row[2:])

    async def check_limits(self, begins: Any, outcomes: Any) -> None:
        """What is reserved fits. After a month has ended, parts that were reserved in it are used in the next one."""
        usage = {(row.account, row.period): sum(row[2:]) for row in await self.world.store.usage()}
        for begin, outcome in zip(begins, outcomes, strict=True):
            if isinstance(outcome, Reserved) and not 0 <= self.world.clock.now() - MONTH_END < 60.0:
                limited = [each for each in begin.accounts if each.limit is not None]
                self.exceeded += [each for each in limited if usage.get(each[:2], 0) > each.limit]

    def check_paid_once(self) -> None:
        """What has come is asked for again only for another list, a day later, or where it may be lost. That is what
        was asked for by the same, a part that is asked for by its uid or id, and the only part of a number that is
        asked for with its maker. Parts of what was passed on serve nothing else."""
        new, self.checked = self.upstream.sent[self.checked :], len(self.upstream.sent)
        for each in new:
            is_passed_on = " passed on" in each.key
            changed = max([self.versions[number][-1][0] for number in LISTS if number in each.key], default=-math.inf)
            # What is private, or has no parts, is not stored.
            if each.sent - STORED_SECONDS <= changed or (is_passed_on and (not each.uid or "N0" in each.key)):
                continue
            equal, known = self.asked[each.scope, each.key], self.asked[f"{each.scope} {is_passed_on}", each.uid]
            # A list is as old as its oldest part.
            is_old = any(FRESH_SECONDS - 60 <= each.sent - other.sent < 2 * FRESH_SECONDS for other in equal)
            begun = each.sent - (SECONDS if self.connections == 2 else 0.0)  # it may have waited for a connection
            first = each.sent - (FRESH_SECONDS - 60 if each.uid else EMPTY_SECONDS)
            for other in known if not is_old else ():
                lost = any(other.returned - LEARNING_SECONDS <= at <= each.sent for at in self.exempt)
                assert lost or not first < other.returned < begun or not self.is_covered(each, other), (other, each)
            equal.append(each)
            known.append(each)

    def is_covered(self, each: Sent, other: Sent) -> bool:
        if not each.uid or each.key == other.key:
            return (each.key, each.place) == (other.key, other.place)
        ones = [
            f"supMultiMatch mpn={number}" for number, versions in self.versions.items() if len(versions[-1][1]) == 1
        ]
        is_only = other.key in ones and each.key == f"{other.key} manufacturer=Maker"
        return is_only or each.key.startswith("supParts")

    def check_answer(self, caller: Client, query: Query, answer: Answer) -> None:
        """An answer has the elements of its list, as they were fetched for this application and market within a day,
        with the fields of its features."""
        assert answer.result is not None
        application = caller.application
        found = [hit.uid for hit in answer.result.items[query.start - answer.first : query.end - answer.first]]
        if query.passed_on is not None:
            found = msgspec.json.decode(answer.result.details or b"")
        if query.root == "supParts":
            lists = [[], [str(query.criteria["id"]).removeprefix("id of ")]]
        else:
            number = next(number for number in LISTS if number in f"{query.key} {query.criteria}")
            end = 5 if query.passed_on else query.end
            lists = [version[query.start : end] for _, version in self.versions[number]]
        has_moved = len(lists) > 1 and not (query.passed_on or query.root == "supParts")
        assert answer.is_partial or found in lists or has_moved, (found, lists)
        assert all(not each or any(each in listed for listed in lists) for each in found)
        assert len({*found} - {""}) == len(list(filter(None, found)))
        assert answer.is_partial or b"null" not in answer.result.bodies
        most = STORED_SECONDS if answer.source == "stale" else FRESH_SECONDS
        for body in map(msgspec.json.decode, answer.result.bodies):
            if body is not None:
                assert body["slug"] == f"{application.credentials.client_id} {application.context.country}"
                assert self.world.clock.now() - body["at"] < most + 60.0
                assert {FIELDS[each] for each in answer.features if each in FIELDS} <= {*body["fields"]}


@pytest.mark.parametrize("seed", range(SEEDS))
async def test_random_runs(open_world: Any, seed: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    draw = random.Random(seed)
    address = str(tmp_path / "store.sqlite") if seed % 5 == 3 else ""
    if seed % 5 == 4:
        address = request.getfixturevalue("redis_server").url
    upstream = Upstream({number: list(uids) for number, uids in LISTS.items()})
    upstream.lacking = frozenset(draw.choice(((), ("TECH_SPECS",))))
    upstream.nullable, upstream.bills_refused, upstream.has_path = (draw.random() < 0.5 for _ in range(3))
    upstream.complex_from = draw.choice((1_000, 3))
    start = draw.choice((START, MONTH_END - 1.0, MONTH_END - 600.0, MONTH_END - 2 * HOUR))
    await Run(await open_world(upstream, start, address), draw, address).steps()
