"""Queue of shadowing: samples and bounds requests, which tasks then process. Responses never wait for it.

A request that does not fit is dropped and counted. After repeated failures of the baseline or the judge, a circuit
breaker drops all requests for a cooldown. Switching off drops queued requests and cancels running ones.
"""

import asyncio
import random
from collections.abc import Mapping

import structlog

from proxy import config
from proxy.kit.clock import Clock
from proxy.kit.windows import Window, Windows
from proxy.shadow.job import ComparisonJob, JobRunner
from proxy.telemetry.metrics import Metrics
from proxy.upstream.policies import CircuitBreaker

BYTES_MAX = 64 * 2**20  # of response bodies in the queue

log = structlog.get_logger()


class ShadowQueue:
    """Bounded queue and its tasks. `shares` are the sampling rates by application; off until `switch` is called."""

    def __init__(
        self,
        settings: config.ShadowSettings,
        shares: Mapping[str, float],
        jobs: JobRunner,
        breaker: CircuitBreaker,
        *,
        clock: Clock,
        rng: random.Random,
        metrics: Metrics,
    ) -> None:
        self._at_once = settings.connections
        self._shares = dict(shares)
        self._jobs = jobs
        self._breaker = breaker
        self._rng = rng
        self._metrics = metrics
        self._rate = Windows((Window(settings.rate, 1.0),) if settings.rate else (), clock)
        self._queue: asyncio.Queue[ComparisonJob] = asyncio.Queue(settings.queue)
        self._bytes = 0
        self._tasks: list[asyncio.Task[None]] = []

    def wants(self, application: str) -> bool:
        """Decide by the application's sampling rate whether to shadow a request."""
        share = self._shares.get(application, 0.0)
        # Called for every request of the service: applications without a share draw no random number.
        return share > 0.0 and bool(self._tasks) and self._rng.random() < share

    def offer(self, job: ComparisonJob) -> None:
        """Queue a sampled request, or drop it."""
        reason = self._refusal(job)
        if reason is not None:
            self._metrics.shadow_dropped[job.application, reason] += 1
            return
        self._queue.put_nowait(job)
        self._waiting(len(job.response.body))

    async def switch(self, on: bool) -> None:
        """Switch on, or off: queued requests are dropped and running ones cancelled."""
        if on and not self._tasks:
            self._tasks = [
                asyncio.create_task(self._work(), name=f"shadow {number}") for number in range(self._at_once)
            ]
        elif not on and self._tasks:
            tasks, self._tasks = self._tasks, []
            for task in tasks:
                task.cancel()
            # Cancelled jobs settle their reservations before the queue is emptied.
            await asyncio.wait(tasks)
            while not self._queue.empty():
                self._metrics.shadow_dropped[self._next().application, "off"] += 1

    def _refusal(self, job: ComparisonJob) -> str | None:
        """Return the reason to drop a request; None if it fits."""
        # Checked before queueing, so that an outage does not fill the queue with requests that will fail.
        if self._breaker.refusal() is not None:
            return "breaker"
        if self._queue.full() or self._bytes + len(job.response.body) > BYTES_MAX:
            return "queue"
        return "rate" if self._rate.try_take() else None

    async def _work(self) -> None:
        while True:
            job = await self._queue.get()
            self._waiting(-len(job.response.body))
            try:
                await self._jobs.run(job)
            except Exception as error:  # an unexpected error must not end the task
                self._metrics.shadow_errors[job.application, "internal"] += 1
                log.error("shadow comparison failed", exc_info=error)

    def _next(self) -> ComparisonJob:
        job = self._queue.get_nowait()
        self._waiting(-len(job.response.body))
        return job

    def _waiting(self, size: int) -> None:
        self._bytes += size
        self._metrics.shadow_queue_length[()] = self._queue.qsize()
