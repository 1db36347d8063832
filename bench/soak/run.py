"""The soak itself: ask everything once in peace, then at a steady rate under faults, then once more in peace; count.

Memory is measured between the halves of the load and after it, each time with nothing under way, idle connections
closed and all given back that is not in use: what a busy machine lets pile up is no growth. The caches are full before.
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
from bench.soak.outcome import DESCRIPTORS_MORE, Outcome, Plan, findings
from bench.soak.questions import Question, Witness
from bench.soak.replies import Reply

CALM = 8  # requests at once in peace
UNDER_WAY = 300  # requests at once under load, also where the machine is too slow for the rate: then the rate falls
REPLY_SECONDS = 60
SETTLE_SECONDS = 90  # for idle connections to be closed and the services to be well


async def run(plan: Plan) -> Outcome:
    """A whole soak, in processes and a folder of its own."""
    with tempfile.TemporaryDirectory() as name, servers.sandbox(Path(name), plan.seed) as shown:
        with servers.service(Path(name), shown, plan.answer_bytes) as process:
            async with aiohttp.ClientSession() as session:
                soak = _Soak(plan, process, servers.SandboxControl(shown["sandbox"], session))
                await soak.all()
            soak.stop()
        soak.outcome.ledger = await servers.ledger(Path(name))
    kinds = {question.kind for question in soak.questions}
    soak.outcome.findings.extend(findings(plan, soak.outcome, kinds))
    return soak.outcome


class _Soak:
    def __init__(self, plan: Plan, process: servers.Process, upstream: servers.SandboxControl) -> None:
        self._plan = plan
        self._process = process
        self._upstream = upstream
        self._rng = random.Random(plan.seed)
        self._witness = Witness(plan.seed)
        self.questions = self._witness.questions(plan.questions, self._rng)
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
        await self._load(before)
        await self._count(calm)
        await self._upstream.declare()
        async with self._client() as session:
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

    async def _load(self, descriptors: int) -> None:
        """As much at once as there may be, then two halves of a steady load; so many `descriptors` were open before."""
        first, seconds = self._plan.requests // 2, 0.0
        await self._weigh(descriptors)
        async with self._client() as session:
            await self._steadily(session, UNDER_WAY, math.inf)
            seconds += await self._steadily(session, first, self._plan.rate)
        await self._weigh(descriptors)
        async with self._client() as session:
            seconds += await self._steadily(session, self._plan.requests - first, self._plan.rate)
        await self._weigh(descriptors)
        self.outcome.rate = self._plan.requests / seconds

    async def _weigh(self, descriptors: int) -> None:
        """Note the memory in use once idle connections are closed."""
        await self._closed(descriptors + DESCRIPTORS_MORE)
        self._process.give_back()
        for _ in range(2):  # the second reply comes after the signal, whatever the loop looks at first
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
                if reply is not None and reply.status == 200:
                    self.outcome.answered[question.kind] += 1
            finally:
                room.release()

        async with asyncio.TaskGroup() as group:
            for number in range(requests):
                await asyncio.sleep(max(0.0, start + number / rate - loop.time()))
                await room.acquire()
                group.create_task(ask(self._rng.choice(self.questions)), name="a request of the load")
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
        waiting = iter(self.questions)

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
