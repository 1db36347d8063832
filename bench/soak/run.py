"""The soak itself: ask everything once in peace, then at a steady rate under faults, then once more in peace; count.

Memory is measured between the halves of the load and after it, each time with nothing under way and all given back that
is not in use, so that what a busy machine lets pile up is no growth. Before that the caches are full.
"""

import asyncio
import math
import random
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yarl

from bench.soak import servers
from bench.soak.questions import Question, Witness
from bench.soak.replies import LATE, Judge, Reply

CALM = 8  # requests at once in peace
UNDER_WAY = 300  # requests at once under load, also where the machine is too slow for the rate: then the rate falls
REPLY_SECONDS = 60
SETTLE_SECONDS = 90  # for idle connections to be closed and the services to be well
MEMORY_GROWTH = 0.10  # in the second half of the load
DESCRIPTORS_MORE = 8
TASKS_MORE = 8
ANSWER_BYTES = 16_000  # of the cache for each question; a response to one has more
FEW = 5  # failed responses that are too few to count


@dataclass(frozen=True, slots=True)
class Plan:
    """How long, how often, and what is drawn."""

    seconds: float
    rate: float
    seed: int
    share: float

    @property
    def requests(self) -> int:
        """In all, under load."""
        return max(1, round(self.seconds * self.rate))

    @property
    def questions(self) -> int:
        """So many that each comes again and again: while its answer is kept, under way, and forgotten."""
        return min(250, max(40, self.requests // 8))

    @property
    def answer_bytes(self) -> int:
        """Bytes of the cache: fewer than the responses to all questions have, so that it is full before the load."""
        return ANSWER_BYTES * self.questions

    @property
    def unavailable(self) -> int:
        """So many responses under load may be a 503: a fifth of the upstream requests that would be struck if none
        were shared or kept."""
        return math.ceil(self.requests * self.share / 5) + FEW


@dataclass(slots=True)
class Outcome:
    """What came of it. `memory` in MB before the load, after its first half and after its second, with nothing under
    way; `answered` is how many requests of each kind got a 200 under load.

    `struck` and `asked` are upstream requests under load. `late` is how many of them ran out of time or stalled though
    no fault held them up, on a machine that is too slow: the sandbox takes such responses for read, the service has
    their parts as uncertain usage.
    """

    judge: Judge = field(default_factory=Judge)
    findings: list[str] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    rate: float = 0.0
    memory: list[float] = field(default_factory=list)
    asked: int = 0
    struck: int = 0
    descriptors: tuple[int, int, int] = (0, 0, 0)
    tasks: tuple[int, int, int] = (0, 0, 0)
    ledger: servers.Ledger = field(default_factory=lambda: servers.Ledger(0, 0, 0))
    totals: Any = None
    late: int = 0

    @property
    def wrong(self) -> list[str]:
        """Everything that is not as it should be."""
        return self.judge.findings + self.findings


async def run(plan: Plan) -> Outcome:
    """A whole soak, in processes and a folder of its own."""
    with tempfile.TemporaryDirectory() as name, servers.sandbox(Path(name), plan.seed) as shown:
        with servers.service(Path(name), shown, plan.answer_bytes) as process:
            async with aiohttp.ClientSession() as session:
                soak = _Soak(plan, process, servers.Upstream(shown["sandbox"], session))
                await soak.all()
            soak.stop()
        soak.outcome.ledger = await servers.ledger(Path(name))
    soak.compare()
    return soak.outcome


class _Soak:
    def __init__(self, plan: Plan, process: servers.Process, upstream: servers.Upstream) -> None:
        self._plan = plan
        self._process = process
        self._upstream = upstream
        self._rng = random.Random(plan.seed)
        self._witness = Witness(plan.seed)
        self._questions = self._witness.questions(plan.questions, self._rng)
        self.outcome = Outcome()

    async def all(self) -> None:
        """From the first answer in peace to the last."""
        async with self._client() as session:
            await self._each(lambda question: self._learn(session, question))
        if self.outcome.wrong:
            raise SystemExit("wrong before the first fault:\n" + "\n".join(self.outcome.wrong[:10]))
        before, tasks = self._process.descriptors(), servers.tasks(await self._metrics())
        calm = (await self._upstream.journal())["totals"]
        await self._upstream.declare(f"mixed share={self._plan.share}")
        async with self._client() as session:
            await self._load(session)
            await self._count(calm)
            await self._upstream.declare()
            await self._each(lambda question: self._recover(session, question))
        self.outcome.totals = (await self._upstream.journal())["totals"]
        most = self.outcome.descriptors[1]
        self.outcome.descriptors = before, most, await self._closed(before + DESCRIPTORS_MORE)
        self.outcome.tasks = tasks, self.outcome.tasks[1], servers.tasks(await self._metrics())

    def stop(self) -> None:
        """End the service as an operator would."""
        if not self._process.alive():
            self._find("the service has died")
        elif code := self._process.stop():
            self._find(f"the service ended with code {code}")
        self.outcome.findings.extend(self._process.complaints())

    def compare(self) -> None:
        """Both sides' books, and what is left of the load."""
        outcome, totals = self.outcome, self.outcome.totals
        used, doubtful, reserved = outcome.ledger
        read = totals["parts"] - totals["spoiled_parts"]
        if used > read or (used < read and not outcome.late):
            self._find(f"{used} parts are booked, the sandbox has returned {read} in answers that could be read")
        if doubtful < totals["parts"] - used:
            self._find(f"{doubtful} parts are in doubt, fewer than the {totals['parts'] - used} billed and not booked")
        if reserved:
            self._find(f"{reserved} parts are held by requests that are over")
        if outcome.judge.cost > used + doubtful:
            self._find(f"replies say that they cost {outcome.judge.cost} parts, {used} are booked, {doubtful} in doubt")
        if outcome.struck < self._plan.share * outcome.asked / 3:
            self._find(f"{outcome.struck} of {outcome.asked} upstream requests were struck, too few")
        outcome.findings.extend(outcome.judge.unexplained({**totals["faults"], LATE: outcome.late}))
        if silent := {question.kind for question in self._questions} - set(outcome.answered):
            self._find(f"nothing was answered under load of: {', '.join(sorted(silent))}")
        if outcome.judge.statuses[503] > self._plan.unavailable and not outcome.late:
            self._find(f"{outcome.judge.statuses[503]} responses are a 503, more than {self._plan.unavailable}")
        if outcome.judge.learned < self._plan.answer_bytes:
            self._find(f"the cache of {self._plan.answer_bytes} bytes was never full: {outcome.judge.learned} to keep")
        _, first, last = outcome.memory
        if last > first * (1 + MEMORY_GROWTH):
            self._find(f"memory has grown from {first:.0f} to {last:.0f} MB")
        if outcome.descriptors[2] > outcome.descriptors[0] + DESCRIPTORS_MORE:
            self._find(f"{outcome.descriptors[2]} descriptors are open, {outcome.descriptors[0]} were before the load")
        if outcome.tasks[2] > outcome.tasks[0] + TASKS_MORE:
            self._find(f"{outcome.tasks[2]} tasks are not done, {outcome.tasks[0]} were not before the load")

    async def _load(self, session: aiohttp.ClientSession) -> None:
        """As much at once as there may be, then two halves of a steady load."""
        first = self._plan.requests // 2
        await self._weigh()
        await self._steadily(session, UNDER_WAY, math.inf)
        seconds = await self._steadily(session, first, self._plan.rate)
        await self._weigh()
        seconds += await self._steadily(session, self._plan.requests - first, self._plan.rate)
        await self._weigh()
        self.outcome.rate = self._plan.requests / seconds

    async def _weigh(self) -> None:
        """Note the memory in use. The second reply comes after the signal, whatever the loop looks at first."""
        self._process.give_back()
        for _ in range(2):
            await self._metrics()
        self.outcome.memory.append(self._process.memory())

    async def _steadily(self, session: aiohttp.ClientSession, requests: int, rate: float) -> float:
        """A request each 1/rate seconds, whatever the replies do; gives the seconds in which they were sent."""
        loop, room = asyncio.get_running_loop(), asyncio.Semaphore(UNDER_WAY)
        start = loop.time()

        async def ask(question: Question) -> None:
            try:
                reply = await self._ask(session, question)
                self._see(question, reply)
                self.outcome.answered[question.kind] += reply is not None and reply.status == 200
            finally:
                room.release()

        async with asyncio.TaskGroup() as group:
            for number in range(requests):
                await asyncio.sleep(max(0.0, start + number / rate - loop.time()))
                await room.acquire()
                group.create_task(ask(self._rng.choice(self._questions)), name="a request of the load")
            seconds = loop.time() - start
            self.outcome.descriptors = 0, self._process.descriptors(), 0
            self.outcome.tasks = 0, servers.tasks(await self._metrics()), 0
        return seconds

    async def _count(self, calm: Any) -> None:
        """Both sides' counts of upstream requests under load; `calm` are the sandbox's before."""
        journal, metrics = await self._upstream.journal(), await self._metrics()
        totals = journal["totals"]
        self.outcome.asked = sum(totals["requests"].values()) - sum(calm["requests"].values())
        self.outcome.struck = sum(totals["faults"].values())
        slow = [each for each in journal["entries"] if each["service"] == "graphql" and "slow-loris" in each["faults"]]
        given_up = max(servers.given_up(metrics), servers.stalled(metrics))
        self.outcome.late = max(0, given_up - len(slow))

    async def _each(self, do: Callable[[Question], Awaitable[None]]) -> None:
        """Something with every question, a few at once."""
        waiting = iter(self._questions)

        async def some() -> None:
            for question in waiting:
                await do(question)

        async with asyncio.TaskGroup() as group:
            for _ in range(CALM):
                group.create_task(some(), name="questions in peace")

    async def _learn(self, session: aiohttp.ClientSession, question: Question) -> None:
        reply = await self._ask(session, question)
        body = None if reply is None else self.outcome.judge.learn(question.target, reply)
        if body is not None:
            self.outcome.judge.findings.extend(self._witness.complaints(question, body))

    async def _recover(self, session: aiohttp.ClientSession, question: Question) -> None:
        """Once more, until it is answered: what faults have left behind passes."""
        loop = asyncio.get_running_loop()
        end = loop.time() + SETTLE_SECONDS
        while True:
            reply = await self._ask(session, question)
            if reply is None or reply.status == 200 or loop.time() > end:
                break
            await asyncio.sleep(0.2)
        self._see(question, reply)
        if reply is not None and reply.status != 200:
            self._find(f"{question.target} is not answered {SETTLE_SECONDS} s after the last fault")

    async def _ask(self, session: aiohttp.ClientSession, question: Question) -> Reply | None:
        """The reply, or None where there was none."""
        try:
            async with session.get(yarl.URL(self._process.url + question.target, encoded=True)) as response:
                return Reply(response.status, response.headers, await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            self._find(f"{question.target} got no reply: {type(error).__name__}")
            return None

    def _see(self, question: Question, reply: Reply | None) -> None:
        if reply is not None:
            self.outcome.judge.see(question.target, reply)

    def _find(self, what: str) -> None:
        self.outcome.findings.append(what)

    async def _closed(self, most: int) -> int:
        """Descriptors once there are no more than `most`, or time is up."""
        loop = asyncio.get_running_loop()
        end = loop.time() + SETTLE_SECONDS
        while True:
            found = self._process.descriptors()
            if found <= most or loop.time() > end:
                return found
            await asyncio.sleep(0.2)

    async def _metrics(self) -> str:
        """The service's own numbers, over a connection that nothing else is said on."""
        async with self._client() as session, session.get(self._process.url + "/metrics") as response:
            return await response.text()

    def _client(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=REPLY_SECONDS),
            headers={"Accept-Encoding": "identity"},
        )
