"""Comparison run: requests are sent to both sides within the budget, judged and added up.

The baseline is first: it is free, and if it fails or refuses the API key, nothing is spent. Then the candidate; then
the baseline again, where a price or stock differs, which may have changed meanwhile. What an earlier run has recorded
is not sent again. A run stops on request, and after repeated failures of one side.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import msgspec
import structlog

from proxy import errors
from proxy.kit import counted
from proxy.redaction import Redaction
from proxy.tools.compare import sides
from proxy.tools.compare.judging import json_values, known, unknown_uids
from proxy.tools.compare.judging.findings import Comparison
from proxy.tools.compare.judging.judge import Judge, LookedUp
from proxy.tools.compare.judging.result import Tally
from proxy.tools.compare.sides import Sides
from proxy.traffic import reading
from proxy.traffic.recordings import Recorder, SideResponse
from proxy.traffic.v3_request import SideName, V3Request, redact_request

IN_A_ROW = 10  # consecutive failures of one side that stop the run
AT_ONCE = 2 * sides.AT_ONCE  # requests
LINKED = 100  # parts whose links are asked for in one request

log = structlog.get_logger()


@dataclass
class Budget:
    """Budget in parts."""

    limit: int
    spent: int = 0
    _reserved: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def fetch(self, send: Callable[[], Awaitable[SideResponse]], most: int) -> SideResponse | None:
        """Return a response that costs `most` parts at most; None, and nothing is sent, where the rest of the budget
        cannot cover them. Waits while requests in flight may yet cost less than they have reserved.

        Of a response that states no cost, and of one that is cancelled in flight, the maximum is booked, because it may
        have been billed."""
        async with self._changed:
            while most and self.spent + self._reserved + most > self.limit:
                if not self._reserved or self.spent + most > self.limit:
                    return None
                await self._changed.wait()
            self._reserved += most
        cost = most
        try:
            response = await send()
            if response.parts is not None:
                cost = response.parts
            elif 400 <= response.status < 500:
                cost = 0
            return response
        finally:
            async with self._changed:
                self._reserved -= most
                self.spent += cost
                self._changed.notify_all()


@dataclass(eq=False)
class Failed(Exception):  # noqa: N818 (named by what has happened)
    """A request cannot be compared: the reason, and the service that is down, if one is."""

    reason: str
    side: SideName | None


@dataclass
class ComparisonRun:
    """One run. Without a judge, responses are only recorded."""

    sides: Sides
    budget: Budget
    tally: Tally
    redaction: Redaction
    judge: Judge | None = None
    recorder: Recorder | None = None
    _done: int = 0
    _left_out: int = 0
    _stopped: str | None = None
    _in_a_row: Counter[SideName | None] = field(default_factory=Counter)
    _looked_up: LookedUp = field(default_factory=lambda: LookedUp({}, {}))
    _linked: set[str] = field(default_factory=set)
    _lookups: asyncio.Lock = field(default_factory=asyncio.Lock)  # those in flight look up the same uids

    async def run(self, requests: Sequence[V3Request], stop: asyncio.Event, tell: Callable[[int], None]) -> list[str]:
        """Send all requests, no new one after `stop` is set; `tell` gets the number of those done. Returns why the run
        is not complete, if so. Raises ConfigError if the recording cannot be written."""
        # All tasks draw from one iterator: whichever is free takes the next request.
        queue = iter(requests)
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(min(AT_ONCE, len(requests))):
                    group.create_task(self._work(queue, stop, tell), name=f"requests to compare, {number + 1}")
        except* OSError as failures:
            words = getattr(failures.exceptions[0], "strerror", None) or "unknown disk error"
            raise errors.ConfigError(f"the recording cannot be written: {words}") from None
        reasons = [f"the run was stopped: {self._stopped}"] if self._stopped else []
        if self._left_out:
            left_out = counted(self._left_out, "request was", "requests were")
            reasons.append(f"{left_out} left out: the budget does not cover what they may cost")
        return reasons

    async def _work(self, queue: Iterator[V3Request], stop: asyncio.Event, tell: Callable[[int], None]) -> None:
        for request in queue:
            if stop.is_set():
                self._stopped = self._stopped or "interrupted"
            if self._stopped is not None:
                return
            try:
                await self._one(request)
                self._in_a_row.clear()
            except Failed as failed:
                self.tally.fail(request, self.redaction.text(failed.reason))
                # Each side is counted by itself: alternating failures of both must not hide that one is down, and that
                # further requests would be paid for without a result.
                self._in_a_row[failed.side] += 1
                if failed.side and self._in_a_row[failed.side] >= IN_A_ROW:
                    stopped = self.redaction.text(f"{failed.reason}, {IN_A_ROW} times in a row")
                    self._stopped = self._stopped or stopped
            self._done += 1
            tell(self._done)

    async def _one(self, request: V3Request) -> None:
        earlier = self.recorder.earlier if self.recorder else None
        recorded = earlier.response(request) if earlier else None
        baseline = self._checked("baseline", request, recorded or await self.sides.baseline.fetch(request))
        problem = json_values.parse(baseline).problem if self.judge and baseline.status < 400 else None
        if problem:  # the baseline is the reference and must be readable; an unreadable candidate is a difference
            raise Failed(f"the baseline sent {problem}", None)
        candidate = None
        if self.sides.candidate is not None:
            # Without a baseline response the candidate's parts would be spent for nothing.
            worst = reading.worst_case_parts(request)
            sent = await self.budget.fetch(partial(self.sides.candidate.fetch, request), worst)
            if sent is None:
                self._left_out += 1
                return
            candidate = self._checked("candidate", request, sent)
        if self.judge and candidate:
            self.tally.add(
                await self._judged(self.judge, request, baseline, candidate, is_recorded=recorded is not None)
            )
        elif self.recorder and not recorded:
            self.recorder.keep(request, baseline)

    def _checked(self, side: SideName, request: V3Request, response: SideResponse) -> SideResponse:
        """Return the redacted response. Raises Failed for one that proves nothing."""
        response = self._redacted(request, response)
        if reason := sides.failure(response, request.client):
            # A refused key is the client's failure: the side still serves other clients. A recording lacks a response.
            is_down = response.status not in sides.KEY_STATUSES and isinstance(
                getattr(self.sides, side), sides.HttpSide
            )
            raise Failed(f"the {side} {reason}", side if is_down else None)
        return response

    def _redacted(self, request: V3Request, response: SideResponse) -> SideResponse:
        """Redact a response: sides may echo the API key, which is no difference and must not be stored."""
        hidden = self.redaction.including(request.target())
        return msgspec.structs.replace(response, body=hidden.body(response.body))

    async def _judged(
        self, judge: Judge, request: V3Request, baseline: SideResponse, candidate: SideResponse, *, is_recorded: bool
    ) -> Comparison:
        """Compare two responses: again with a second one of the baseline where a price or stock differs, and after
        looking up unknown uids and links. What the baseline has sent last is recorded, also if this fails."""
        again = None
        compare = partial(judge.compare, request, (baseline, candidate), looked_up=self._looked_up)
        try:
            found = compare()
            if found.may_have_moved and not is_recorded:
                again = self._redacted(request, await self.sides.baseline.fetch(request))
                again = None if sides.failure(again, request.client) else again
            has_links = known.CLICK_LINK in found.ignored
            if found.unknown_uids or has_links:
                async with self._lookups:
                    await self._look_up(found, request.client)
                    if has_links:
                        await self._look_up_links(candidate, request.client)
            if again or found.unknown_uids or has_links:
                found = compare(baseline_again=again)
        except Exception as error:  # one unexpected response must not end a run of thousands
            log.error("comparison failed", request_id=request.id, exc_info=error)
            reason = f"the two responses cannot be compared ({type(error).__name__})"
            raise Failed(reason, None) from error
        finally:
            if self.recorder and not is_recorded:
                self.recorder.keep(request, again or baseline)
        return msgspec.structs.replace(found, request=redact_request(request, self.redaction))

    async def _look_up(self, comparison: Comparison, client: str) -> None:
        """Look up the names of the objects that unknown uids denote, each once in a run, free of charge, at the service
        that has the uid. An empty name is that of a uid that its service does not know."""
        for pair in unknown_uids.pairs([each.difference for each in comparison.unknown_uids]):
            for uid, side in ((pair.candidate, self.sides.candidate), (pair.baseline, self.sides.baseline)):
                is_baseline = side is self.sides.baseline
                if side is None or uid in self._looked_up.names or (is_baseline and pair.name):
                    continue
                request = V3Request(pair.path + uid, client=client)
                response = self._redacted(request, await side.fetch(request))
                body = json_values.parse(response).value if response.status == 200 else None
                name = "" if response.status == 404 else body.get("name") if isinstance(body, dict) else None
                if isinstance(name, str):
                    self._looked_up.names[uid] = name
                    if self.recorder and is_baseline:
                        self.recorder.keep(request, response)

    async def _look_up_links(self, shown: SideResponse, client: str) -> None:
        """Look up which offers the links of parts lead to, of each part once in a run. A part that the candidate has
        just sent costs nothing more; as it might, its cost is reserved."""
        offers = known.offers(json_values.parse(shown).value)
        uids = sorted({str(part) for _, (part, *_) in offers} - self._linked)
        self._linked.update(uids)
        for some in (uids[start : start + LINKED] for start in range(0, len(uids), LINKED)):
            if self.sides.candidate:
                sent = await self.budget.fetch(partial(self.sides.candidate.fetch_links, some, client), len(some))
                for link, offer in known.owners_of(json_values.parse(sent).value if sent else None):
                    self._looked_up.owners.setdefault(link, set()).add(offer)
