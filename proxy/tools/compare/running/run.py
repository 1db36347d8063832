"""Comparison run: requests are sent to both sides, judged, saved and added up, until all are done or the run stops.

It stops before the budget is exceeded, on request, and after repeated failures of one side. Finished requests are
saved, and the same run resumes from there. Files of requests and reports are handled elsewhere.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
import structlog

from proxy import errors
from proxy.kit.clock import Clock
from proxy.redaction import Redaction
from proxy.tools.compare.judging import unknown_uids
from proxy.tools.compare.judging.findings import Comparison, Finding
from proxy.tools.compare.judging.judge import Judge, ResponsePair
from proxy.tools.compare.redaction import redact_comparison
from proxy.tools.compare.running import exchange as exchanging
from proxy.traffic import v3_response
from proxy.traffic.clients import SideName
from proxy.traffic.recording.recorder import RecordedExchange, Recorder
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse

IN_A_ROW = 10  # consecutive failures of one side that stop the run

log = structlog.get_logger()


class RunProgress(NamedTuple):
    """Progress of a run. `parts` is its cost so far, including that before an interruption."""

    done: int
    not_compared: int
    left_out: int
    parts: int


class RunOutcome(NamedTuple):
    """End of a run. `stopped` is the reason of an early end; `left_out` requests were not covered by the budget,
    `not_compared` ones failed, the first of them because of `failure`. `spent` parts are booked, including those that
    may have been billed.
    """

    stopped: str | None
    left_out: int
    not_compared: int
    spent: int = 0
    failure: str | None = None

    @property
    def complete(self) -> bool:
        """True if every request was sent."""
        return self.stopped is None and not self.left_out


class RunSinks(NamedTuple):
    """Outputs of a run; each may be absent. `tell` is called after every request."""

    note: Callable[[str, Comparison], None] | None = None
    add: Callable[[Comparison], None] | None = None
    recorder: Recorder | None = None
    tell: Callable[[RunProgress], None] = lambda _: None


class NameLookups:
    """Names of the objects that unknown uids denote, each looked up once in a run, free of charge, at the service that
    has the uid. `record` gets each look-up that had a response."""

    def __init__(
        self, exchanger: exchanging.Exchanger, record: Callable[[V3Request, exchanging.Exchange], None]
    ) -> None:
        self._exchanger = exchanger
        self._record = record
        self._names: dict[str, str] = {}
        self._lock = asyncio.Lock()  # requests in flight at the same time look up the same uids

    async def names(self, found: Sequence[Finding], client: str) -> dict[str, str]:
        """Return the names of the objects in findings of unknown uids, as far as the services have them. An empty name
        is that of a uid that its service does not know.
        """
        async with self._lock:
            for pair in unknown_uids.pairs([each.difference for each in found]):
                await self._look_up("candidate", pair.path, pair.candidate, client)
                if not pair.name:
                    await self._look_up("baseline", pair.path, pair.baseline, client)
        return self._names

    async def _look_up(self, side: SideName, path: str, uid: str, client: str) -> None:
        if uid in self._names:
            return
        request = V3Request(path + uid, client=client)
        exchange = await self._exchanger.look_up(side, request)
        response = exchange.baseline or exchange.candidate
        if response is None or response.failure:
            return
        self._record(request, exchange)
        name = _name(response)
        if name is not None:
            self._names[uid] = name


def _name(response: SideResponse) -> str | None:
    """Return the name in a response; empty for a 404, None where the response says nothing."""
    if response.status == 404:
        return ""
    try:
        body = v3_response.read_json(response.body).value if response.status == 200 else None
    except ValueError:
        return None
    name = body.get("name") if isinstance(body, dict) else None
    return name if isinstance(name, str) else None


class ComparisonRun:
    """Run with `at_once` requests in flight. Without a judge, responses are only recorded."""

    def __init__(
        self,
        exchanger: exchanging.Exchanger,
        judge: Judge | None,
        notes: RunSinks,
        *,
        redaction: Redaction,
        clock: Clock,
        at_once: int,
        spent: Callable[[], int],
    ) -> None:
        self._exchanger = exchanger
        self._lookups = NameLookups(exchanger, partial(self._record, lookup=True))
        self._judge = judge
        self._notes = notes
        self._redaction = redaction
        self._clock = clock
        self._at_once = at_once
        self._spent = spent
        self._counts: Counter[str] = Counter()
        self._in_a_row: Counter[int] = Counter()
        self._stopped: str | None = None
        self._failure: str | None = None

    async def run(self, requests: Sequence[V3Request], stop: asyncio.Event) -> RunOutcome:
        """Send all requests, no new one after `stop` is set. Raises ConfigError if the outputs cannot be written."""
        # All tasks draw from one iterator: whichever is free takes the next request.
        queue = iter(requests)
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(min(self._at_once, len(requests))):
                    group.create_task(self._work(queue, stop), name=f"requests to compare, {number + 1}")
        except* OSError as failures:
            words = getattr(failures.exceptions[0], "strerror", None) or "unknown disk error"
            raise errors.ConfigError(f"the results cannot be written: {words}") from None
        return RunOutcome(
            self._stopped, self._counts["left out"], self._counts["not_compared"], self._spent(), self._failure
        )

    async def _work(self, queue: Iterator[V3Request], stop: asyncio.Event) -> None:
        for request in queue:
            if stop.is_set():
                self._stopped = self._stopped or "interrupted"
            if self._stopped is not None:
                return
            await self._one(request)
            self._notes.tell(self._progress())

    async def _one(self, request: V3Request) -> None:
        at = self._clock.now()
        try:
            exchange = await self._exchanger.exchange(request)
        except exchanging.OutOfBudgetError:
            self._counts["left out"] += 1
            return
        self._failure = self._failure or exchange.failure
        self._stop_if_failing(exchange)
        self._counts["not_compared" if exchange.failure else "done"] += 1
        if exchange.failure is None:
            self._record(request, exchange)  # recorded first: a request that is saved as done is never sent again
        if self._judge is not None:
            self._note(request, await self._judged(request, at, exchange))

    async def _judged(self, request: V3Request, at: float, exchange: exchanging.Exchange) -> Comparison:
        comparison = self._compared(request, at, exchange)
        if comparison.unknown_uids:
            names = await self._lookups.names(comparison.unknown_uids, request.client)
            if any(unknown_uids.contradicted(each.difference, names) for each in comparison.unknown_uids):
                comparison = self._compared(request, at, exchange, names)
        return redact_comparison(msgspec.structs.replace(comparison, parts=exchange.cost), self._redaction)

    def _compared(
        self,
        request: V3Request,
        at: float,
        exchange: exchanging.Exchange,
        names: Mapping[str, str] = unknown_uids.NO_NAMES,
    ) -> Comparison:
        if (
            exchange.failure is not None
            or exchange.baseline is None
            or exchange.candidate is None
            or self._judge is None
        ):
            return Comparison(request, at, failure=exchange.failure)
        pair = ResponsePair(exchange.baseline, exchange.candidate)
        try:
            return self._judge.compare(request, at, pair, baseline_again=exchange.baseline_again, names=names)
        except Exception as error:  # one unexpected response must not end a run of thousands
            log.error("comparison failed", request_id=request.id, exc_info=error)
            return Comparison(request, at, failure=f"the two responses cannot be compared ({type(error).__name__})")

    def _note(self, request: V3Request, comparison: Comparison) -> None:
        """Save the comparison before counting it."""
        if self._notes.note is not None:
            self._notes.note(request.id, comparison)
        if self._notes.add is not None:
            self._notes.add(comparison)

    def _record(self, request: V3Request, exchange: exchanging.Exchange, *, lookup: bool = False) -> None:
        recorder = self._notes.recorder
        # A resumed run may repeat requests that an earlier run has recorded already.
        if recorder is None or request.id in recorder.known:
            return
        baseline = exchange.baseline_again or exchange.baseline
        recorder.keep(RecordedExchange(request, baseline, exchange.candidate, lookup))

    def _stop_if_failing(self, exchange: exchanging.Exchange) -> None:
        """Stop the run when a side fails repeatedly, because further requests would be paid for without a result."""
        # A recording that lacks responses does not stop a run: the other responses can still be compared.
        if exchange.failure is None:
            self._in_a_row.clear()
        elif exchange.of is not None and exchange.of.live:
            # Each side is counted by itself: alternating failures of both must not hide that one is down.
            side = id(exchange.of)
            self._in_a_row[side] += 1
            if self._in_a_row[side] >= IN_A_ROW:
                self._stopped = self._stopped or f"{exchange.failure}, {IN_A_ROW} times in a row"

    def _progress(self) -> RunProgress:
        counts = self._counts
        return RunProgress(counts["done"], counts["not_compared"], counts["left out"], self._spent())
