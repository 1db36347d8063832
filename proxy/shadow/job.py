"""Comparison job: one served request is sent to the other service, judged, and repeated where data may have
changed.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import msgspec

from proxy import config, errors
from proxy.gateway.applications import Applications
from proxy.redaction import Redaction
from proxy.shadow import messages
from proxy.shadow.baseline_client import BaselineClient
from proxy.shadow.daily_budget import DailyBudget
from proxy.shadow.judge_client import JudgeClient
from proxy.telemetry.metrics import Metrics
from proxy.traffic import failures, v3_request
from proxy.traffic.sources.clients import ClientKeys
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse
from proxy.upstream.policies import CircuitBreaker


class ComparisonJob(NamedTuple):
    """Served request and its response, as the web layer offers it.

    `target` is the request target as received, including the API key: it is held in memory only, until the comparison
    is done. `request_candidate` is set where the old service has served it: it fetches the candidate's response, None
    where that would come from the cache.
    """

    application: str
    target: str
    response: SideResponse
    at: float
    request_candidate: Callable[[], Awaitable[SideResponse | None]] | None = None


# placeholder for the response of the baseline, which gets no request where the served response has failed
NOT_SENT = SideResponse(0, b"", 0.0)


class JobRunner:
    """Runs comparison jobs. `keys` holds clients with a different name here or a different API key at the old service,
    by the digest of the key that they send."""

    def __init__(
        self,
        *,
        served: Applications,
        keys: Mapping[config.Digest, ClientKeys],
        baseline: BaselineClient,
        budget: DailyBudget,
        judge: JudgeClient,
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

    async def run(self, job: ComparisonJob) -> None:
        """Compare one request. Failures are counted."""
        parsed = self._read(job)
        served = _checked(job.response)
        shadowed = NOT_SENT if served.failure is not None else await self._request_other_side(parsed)
        if shadowed is None:
            return
        by_candidate = job.request_candidate is None
        baseline, candidate = (shadowed, served) if by_candidate else (served, shadowed)
        # A request repeated on the candidate would cost parts, so only the baseline is asked a second time.
        may_repeat = by_candidate and served.failure is None
        pair = messages.JudgePair(
            parsed.request, job.at, baseline, candidate, may_repeat=may_repeat, secrets=parsed.secrets
        )
        try:
            await self._judge_pair(pair, parsed)
        except errors.BridgeError:
            self._breaker.failed()
            self._metrics.shadow_errors[job.application, "judge"] += 1

    def _read(self, job: ComparisonJob) -> "_ParsedJob":
        target = job.target.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        path, query, apikey = v3_request.parse_target(target)
        client = self._served.client(apikey)
        settings = self._keys.get(config.digest(apikey or ""))
        name = settings.name if settings else client.accounts.key.name
        request = V3Request(path, query, name)
        keys = Redaction(is_key=self._served.is_key).keys(target)
        return _ParsedJob(job, request, frozenset({apikey or "", *keys}), settings.baseline if settings else None)

    async def _request_other_side(self, parsed: "_ParsedJob") -> SideResponse | None:
        """Request the response of the side that did not serve the client; None where the circuit breaker, the budget
        or the cache prevents it."""
        try:
            self._breaker.admit()
        except errors.CircuitBreakerOpen:
            self._count_dropped(parsed, "breaker")
            return None
        if parsed.job.request_candidate is None:
            response: SideResponse | None = await self._request_baseline(parsed)
        else:
            response = await self._request_candidate(parsed)
        if response is not None and response.failure is not None:
            self._breaker.failed()
        elif response is not None:
            self._breaker.succeeded()
        return response

    async def _request_baseline(self, parsed: "_ParsedJob") -> SideResponse:
        self._metrics.shadow_requests[parsed.job.application,] += 1
        return await self._baseline.fetch(parsed.job.target, parsed.baseline_key)

    async def _request_candidate(self, parsed: "_ParsedJob") -> SideResponse | None:
        """Request the candidate's response within the daily budget. A cancelled request may have been billed."""
        assert parsed.job.request_candidate is not None  # noqa: S101 - the caller checks it
        reservation = await self._budget.reserve(parsed.request)
        if reservation is None:
            self._count_dropped(parsed, "parts")
            return None
        self._metrics.shadow_requests[parsed.job.application,] += 1
        response, completed = None, False
        try:
            response = await parsed.job.request_candidate()
            completed = True
        finally:
            await self._budget.settle(reservation, response, completed)
        if response is None:
            self._count_dropped(parsed, "cache hit")
        return None if response is None else _checked(response)

    def _count_dropped(self, parsed: "_ParsedJob", reason: str) -> None:
        self._metrics.shadow_dropped[parsed.job.application, reason] += 1

    async def _judge_pair(self, pair: messages.JudgePair, parsed: "_ParsedJob") -> None:
        verdict = await self._judge.judge(pair)
        if verdict.outcome == "repeat":
            second = await self._request_baseline(parsed)
            pair = msgspec.structs.replace(pair, baseline_again=None if second.failure else second, may_repeat=False)
            verdict = await self._judge.judge(pair)
        if verdict.outcome == "failure":
            self._metrics.shadow_errors[parsed.job.application, verdict.side] += 1
        else:
            self._metrics.shadow_compared[parsed.job.application, verdict.outcome] += 1


class _ParsedJob(NamedTuple):
    """Parsed request of a job, with the API keys in it and the key for the old service."""

    job: ComparisonJob
    request: V3Request
    keys: frozenset[str]
    baseline_key: config.Secret | None

    @property
    def secrets(self) -> tuple[str, ...]:
        """Keys that may occur in either response and must not be stored."""
        return tuple(filter(None, (*self.keys, self.baseline_key.reveal() if self.baseline_key else "")))


def _checked(response: SideResponse) -> SideResponse:
    """Return the response, marked as failed if it is no valid v3 response."""
    try:
        failures.check_response(response)
    except failures.SideError as failure:
        return msgspec.structs.replace(response, failure=str(failure))
    return response
