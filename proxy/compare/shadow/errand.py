"""What becomes of one call: read, asked of the other side, judged, and once more where data may only have moved."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import msgspec

from proxy import config, errors
from proxy.compare import calls, troubles
from proxy.compare.calls import Call
from proxy.compare.replies import Reply
from proxy.compare.settings import Key
from proxy.compare.shadow import messages
from proxy.compare.shadow.day_budget import DayBudget
from proxy.compare.shadow.old_service import OldService
from proxy.compare.shadow.seen import Seen
from proxy.gateway.applications import Applications
from proxy.telemetry.metrics import Metrics
from proxy.upstream.policies import Breaker

NOT_ASKED = Reply(0, b"", 0.0)  # the side that is left alone, because the other had no answer


class Judge(Protocol):
    """Whoever judges pairs. Raises ServerError where it cannot."""

    async def judge(self, job: messages.Job) -> messages.Verdict:
        """What came of it."""


class Errands:
    """`keys` are of clients that have another name here, or another key at the old service, by the key they send."""

    def __init__(
        self,
        *,
        served: Applications,
        keys: Mapping[config.Digest, Key],
        old: OldService,
        budget: DayBudget,
        judge: Judge,
        breaker: Breaker,
        metrics: Metrics,
    ) -> None:
        self._served = served
        self._keys = keys
        self._old = old
        self._budget = budget
        self._judge = judge
        self._breaker = breaker
        self._metrics = metrics

    async def run(self, seen: Seen) -> None:
        """Compare one call. Whatever goes wrong is counted."""
        asked = self._read(seen)
        own = _checked(seen.reply)
        other = NOT_ASKED if own.trouble is not None else await self._other(asked)
        if other is None:
            return
        old, new = (other, own) if seen.ask_new is None else (own, other)
        again = seen.ask_new is None and own.trouble is None
        job = messages.Job(asked.call, seen.at, old, new, may_ask_again=again, secrets=asked.secrets)
        try:
            await self._judged(job, asked)
        except errors.BridgeError:
            self._breaker.failed()
            self._metrics.shadow_errors[seen.application, "judge"] += 1

    def _read(self, seen: Seen) -> "_Asked":
        target = seen.target.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        path, query, apikey = calls.read_target(target)
        client = self._served.client(apikey)
        known = self._keys.get(config.digest(apikey or ""))
        name = known.name if known else client.accounts.key.name
        call = Call(path, query, name)
        return _Asked(seen, call, apikey or "", known.old if known else None)

    async def _other(self, asked: "_Asked") -> Reply | None:
        """The other side's answer; None where there is none to be had."""
        try:
            self._breaker.admit()
        except errors.CircuitBreakerOpen:
            self._dropped(asked, "breaker")
            return None
        reply = await (self._ask_old(asked) if asked.seen.ask_new is None else self._ask_new(asked))
        if reply is not None and reply.trouble is not None:
            self._breaker.failed()
        elif reply is not None:
            self._breaker.succeeded()
        return reply

    async def _ask_old(self, asked: "_Asked") -> Reply:
        self._metrics.shadow_requests[asked.seen.application,] += 1
        return await self._old.ask(asked.seen.target, asked.old_key)

    async def _ask_new(self, asked: "_Asked") -> Reply | None:
        """Within the day's parts. What is cut off half-way may have been billed."""
        assert asked.seen.ask_new is not None  # noqa: S101 - that is what was asked before
        claim = await self._budget.reserve(asked.call)
        if claim is None:
            self._dropped(asked, "parts")
            return None
        self._metrics.shadow_requests[asked.seen.application,] += 1
        reply, over = None, False
        try:
            reply = await asked.seen.ask_new()
            over = True
        finally:
            await self._budget.settle(claim, reply, over)
        if reply is None:
            self._dropped(asked, "kept answer")
        return None if reply is None else _checked(reply)

    def _dropped(self, asked: "_Asked", reason: str) -> None:
        self._metrics.shadow_dropped[asked.seen.application, reason] += 1

    async def _judged(self, job: messages.Job, asked: "_Asked") -> None:
        verdict = await self._judge.judge(job)
        if verdict.outcome == "again":
            second = await self._ask_old(asked)
            job = msgspec.structs.replace(job, old_again=None if second.trouble else second, may_ask_again=False)
            verdict = await self._judge.judge(job)
        if verdict.outcome == "trouble":
            self._metrics.shadow_errors[asked.seen.application, verdict.side] += 1
        else:
            self._metrics.shadow_compared[asked.seen.application, verdict.outcome] += 1


class _Asked(NamedTuple):
    """A call that was seen, read. The key that the client sent, and the one that the old service knows it by."""

    seen: Seen
    call: Call
    apikey: str
    old_key: config.Secret | None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What may stand in either answer and is to be in nothing that is kept."""
        return tuple(filter(None, (self.apikey, self.old_key.reveal() if self.old_key else "")))


def _checked(reply: Reply) -> Reply:
    """With its trouble, where it is not v3's way to answer."""
    try:
        troubles.check(reply)
    except troubles.TroubleError as trouble:
        return msgspec.structs.replace(reply, trouble=str(trouble))
    return reply
