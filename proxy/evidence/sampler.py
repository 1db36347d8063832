"""Sample of the live upstream exchanges of a worker, judged some at a time in a process that ends with its work.

Checks take milliseconds of CPU: in the worker, in any thread, they would delay responses. What the process has taken
decides when the next one may start, of any worker on the same store, so that all together are never more than CPU_SHARE
of a core in the long run.
"""

import asyncio
import importlib.util
import random

import structlog

from proxy import errors
from proxy.evidence import messages, records
from proxy.kit import child_process, extras
from proxy.kit.clock import Clock
from proxy.kit.periodic import PeriodicTask
from proxy.kit.wording import rfc3339
from proxy.stores.protocols import Store
from proxy.upstream.http_post import HttpResponse

COMMAND = child_process.command("proxy.tools.conform.judge_process")
SAMPLES_MAX = 200  # that wait to be judged; what comes then is left out
BYTES_MAX = 8 * 2**20  # of their bodies
ROUND_SECONDS = 60.0
CPU_SHARE = 0.008  # of one core, for all processes on one store together
TURN = "evidence turn"  # lock
JUDGE_SECONDS = 60.0  # time limit of the process

log = structlog.get_logger()


class EvidenceSampler:
    """Takes a `share` of the GraphQL responses without error, and all other responses. `service` is the name that its
    evidence is kept under, `owner` identifies this process."""

    def __init__(
        self,
        share: float,
        service: str,
        *,
        store: Store,
        owner: str,
        clock: Clock,
        rng: random.Random,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        self._share = share
        self._service = service
        self._store = store
        self._owner = owner
        self._clock = clock
        self._rng = rng
        self._command = command
        self._samples: list[messages.SampledExchange] = []
        self._bytes = 0
        self._due = clock.monotonic()
        self._unsaved = records.TrafficEvidence()
        self._working = PeriodicTask(
            "evidence", self._round, ROUND_SECONDS, delay=ROUND_SECONDS, logged=errors.StoreUnavailable
        )

    def start(self) -> None:
        """Begin to judge. Raises ConfigError without the libraries that this needs."""
        if importlib.util.find_spec("jmespath") is None:
            raise errors.ConfigError(
                f"evidence.share: the package jmespath is not installed; {extras.install_line('conform')}"
            )
        self._working.start()

    async def close(self) -> None:
        """Stop; what waits to be judged is left out."""
        await self._working.close()

    def offer(self, request: bytes, reply: HttpResponse) -> None:
        """Take an exchange into the sample, or leave it out. `request` is empty for a token request."""
        if request and reply.status == 200 and self._rng.random() >= self._share:
            return
        size = len(request) + len(reply.body)
        if len(self._samples) >= SAMPLES_MAX or self._bytes + size > BYTES_MAX:
            return
        self._bytes += size
        headers = {name.lower(): value for name, value in reply.headers.items()}
        self._samples.append(
            messages.SampledExchange(rfc3339(self._clock.now()), request, reply.status, headers, reply.body)
        )

    async def judge(self) -> None:
        """Judge the sample if it is this process's turn, and add what it says to the store. Raises StoreUnavailable; it
        is added later then."""
        if self._samples and await self._store.lock(TURN, self._owner, JUDGE_SECONDS):
            samples, self._samples, self._bytes = self._samples, [], 0
            rest = JUDGE_SECONDS / CPU_SHARE
            try:
                async with asyncio.timeout(JUDGE_SECONDS):
                    judged = await self._judged(samples)
            except (OSError, ValueError) as error:  # TimeoutError is a subclass of OSError
                log.warning("evidence not judged", exchanges=len(samples), error=type(error).__name__)
            else:
                rest = judged.cpu_seconds / CPU_SHARE
                self._unsaved = records.merge(self._unsaved, judged.evidence)
            self._due = self._clock.monotonic() + rest
            await self._store.lock(TURN, self._owner, rest)
        new = {self._service: self._unsaved}
        if await records.add(self._store, self._owner, new, self._clock.now()):
            self._unsaved = records.TrafficEvidence()

    async def _round(self) -> None:
        if self._clock.monotonic() >= self._due:
            await self.judge()

    async def _judged(self, samples: list[messages.SampledExchange]) -> messages.JudgedSample:
        process = await child_process.start(self._command)
        try:
            content, _ = await process.communicate(messages.encode(samples))
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return messages.decode_judged(content)
