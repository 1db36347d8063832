"""Comparison job: one answered request is sent to the other service, judged, and repeated where data may have
changed.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

import msgspec

from proxy import config, errors
from proxy.compare import requests
from proxy.compare.judging.settings import ClientKeys
from proxy.compare.requests import V3Request
from proxy.compare.responses import SideResponse
from proxy.compare.running import failures
from proxy.compare.shadow import messages
from proxy.compare.shadow.baseline_client import BaselineClient
from proxy.compare.shadow.daily_budget import DailyBudget
from proxy.gateway.applications import Applications
from proxy.telemetry.metrics import Metrics
from proxy.upstream.policies import CircuitBreaker


class ComparisonJob(NamedTuple):
    """Answered request and its response, as the web layer offers it.

    `target` is the request target as received, including the API key: it is held in memory only, until the comparison
    is done. `ask_candidate` is set where the old service has answered: it requests the candidate's response, None where
    that would come from the cache.
    """

    application: str
    target: str
    response: SideResponse
    at: float
    ask_candidate: Callable[[], Awaitable[SideResponse | None]] | None = None


# placeholder for the other side, which gets no request where the served response has failed
NOT_SENT = SideResponse(0, b"", 0.0)


class PairJudge(Protocol):
    """Interface of the judge. Raises ServerError if it is not available."""

    async def judge(self, job: messages.JudgePair) -> messages.PairVerdict:
        """Judge one pair."""


class JobRunner:
    """Runs comparison jobs. `keys` holds clients with a different name here or a different API key at the old service,
    by the digest of the key that they send.
    """

    def __init__(
        self,
        *,
        served: Applications,
        keys: Mapping[config.Digest, ClientKeys],
        baseline: BaselineClient,
        budget: DailyBudget,
        judge: PairJudge,
        breaker: CircuitBreaker,
        metrics: Metrics,
    ) -> None:
        self._served = served
        self._keys = keys
        self._baseline = baseline
        self._budget = budget
        self._judge = judge
        self._breaker = breaker
        self._metrics = metrics

    async def run(self, seen: ComparisonJob) -> None:
        """Compare one request. Failures are counted."""
        asked = self._read(seen)
        own = _checked(seen.response)
        other = NOT_SENT if own.failure is not None else await self._other(asked)
        if other is None:
            return
        baseline, candidate = (other, own) if seen.ask_candidate is None else (own, other)
        again = seen.ask_candidate is None and own.failure is None
        job = messages.JudgePair(
            asked.request, seen.at, baseline, candidate, may_ask_again=again, secrets=asked.secrets
        )
        try:
            await self._judged(job, asked)
        except errors.BridgeError:
            self._breaker.failed()
            self._metrics.shadow_errors[seen.application, "judge"] += 1

    def _read(self, seen: ComparisonJob) -> "_ParsedJob":
        target = seen.target.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        path, query, apikey = requests.parse_target(target)
        client = self._served.client(apikey)
        known = self._keys.get(config.digest(apikey or ""))
        name = known.name if known else client.accounts.key.name
        request = V3Request(path, query, name)
        return _ParsedJob(seen, request, apikey or "", known.baseline if known else None)

    async def _other(self, asked: "_ParsedJob") -> SideResponse | None:
        """Request the other side's response; None where the circuit breaker, the budget or the cache prevents it."""
        try:
            self._breaker.admit()
        except errors.CircuitBreakerOpen:
            self._dropped(asked, "breaker")
            return None
        response = await (self._ask_baseline(asked) if asked.seen.ask_candidate is None else self._ask_candidate(asked))
        if response is not None and response.failure is not None:
            self._breaker.failed()
        elif response is not None:
            self._breaker.succeeded()
        return response

    async def _ask_baseline(self, asked: "_ParsedJob") -> SideResponse:
        self._metrics.shadow_requests[asked.seen.application,] += 1
        return await self._baseline.ask(asked.seen.target, asked.baseline_key)

    async def _ask_candidate(self, asked: "_ParsedJob") -> SideResponse | None:
        """Request the candidate's response within the daily budget. A cancelled request may have been billed."""
        assert asked.seen.ask_candidate is not None  # noqa: S101 - the caller checks it
        claim = await self._budget.reserve(asked.request)
        if claim is None:
            self._dropped(asked, "parts")
            return None
        self._metrics.shadow_requests[asked.seen.application,] += 1
        response, over = None, False
        try:
            response = await asked.seen.ask_candidate()
            over = True
        finally:
            await self._budget.settle(claim, response, over)
        if response is None:
            self._dropped(asked, "kept answer")
        return None if response is None else _checked(response)

    def _dropped(self, asked: "_ParsedJob", reason: str) -> None:
        self._metrics.shadow_dropped[asked.seen.application, reason] += 1

    async def _judged(self, job: messages.JudgePair, asked: "_ParsedJob") -> None:
        verdict = await self._judge.judge(job)
        if verdict.outcome == "again":
            second = await self._ask_baseline(asked)
            job = msgspec.structs.replace(job, baseline_again=None if second.failure else second, may_ask_again=False)
            verdict = await self._judge.judge(job)
        if verdict.outcome == "failure":
            self._metrics.shadow_errors[asked.seen.application, verdict.side] += 1
        else:
            self._metrics.shadow_compared[asked.seen.application, verdict.outcome] += 1


class _ParsedJob(NamedTuple):
    """Parsed request of a job, with the key that the client sent and the key for the old service."""

    seen: ComparisonJob
    request: V3Request
    apikey: str
    baseline_key: config.Secret | None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Keys that may occur in either response and must not be stored."""
        return tuple(filter(None, (self.apikey, self.baseline_key.reveal() if self.baseline_key else "")))


def _checked(response: SideResponse) -> SideResponse:
    """Return the response, marked as failed if it is no valid v3 response."""
    try:
        failures.check_response(response)
    except failures.SideError as failure:
        return msgspec.structs.replace(response, failure=str(failure))
    return response
