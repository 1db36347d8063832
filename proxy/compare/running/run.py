"""The run itself: call after call asked of both sides, judged, noted and added up, until it is through or stopped.

It stops before its budget is exceeded, when it is told to, and when a side only has trouble; whatever it has done by
then is noted, and the same run goes on from there. Knows neither files of requests nor reports.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec
import structlog

from proxy import errors
from proxy.compare.judging.findings import Comparison
from proxy.compare.judging.judge import ResponsePair
from proxy.compare.recording.recorder import RecordedExchange, Recorder
from proxy.compare.redaction import Redaction, redact_comparison
from proxy.compare.requests import V3Request
from proxy.compare.responses import SideResponse
from proxy.compare.running import exchange as exchanging
from proxy.kit.clock import Clock
from proxy.upstream.replay import ResponseRecorder

IN_A_ROW = 10  # calls that one side has trouble with, until the run gives up

log = structlog.get_logger()


class ResponseJudge(exchanging.DifferenceFinder, Protocol):
    """What makes a comparison of answers; judging.py does."""

    def asks_twice(self, call: V3Request) -> bool:
        """Whether the old side is asked twice, whatever comes of it."""

    def compare(
        self,
        call: V3Request,
        at: float,
        pair: ResponsePair,
        *,
        old_again: SideResponse | None = None,
        new_again: SideResponse | None = None,
    ) -> Comparison:
        """Judged, with causes."""


class RunProgress(NamedTuple):
    """How far a run is. `parts` are spent by it, also before it was interrupted."""

    done: int
    troubled: int
    left_out: int
    parts: int


class RunOutcome(NamedTuple):
    """How a run ended. `stopped` is why it did before its end; `left_out` calls were not covered by the budget,
    `troubled` ones could not be compared. `spent` parts are booked, what may have been paid unseen included.
    """

    stopped: str | None
    left_out: int
    troubled: int
    spent: int = 0

    @property
    def complete(self) -> bool:
        """Whether every call was asked."""
        return self.stopped is None and not self.left_out


class RunSinks(NamedTuple):
    """Where a run writes what it does; each may be absent. `application` gives the name of the application that
    serves a client, `tell` is told after every call."""

    note: Callable[[str, Comparison], None] | None = None
    add: Callable[[Comparison], None] | None = None
    recorder: Recorder | None = None
    tape: ResponseRecorder | None = None
    application: Callable[[str], str | None] = lambda _: None
    tell: Callable[[RunProgress], None] = lambda _: None


class ComparisonRun:
    """One run, `at_once` of its calls under way. Without a judge answers are recorded only."""

    def __init__(
        self,
        exchanger: exchanging.Exchanger,
        judge: ResponseJudge | None,
        notes: RunSinks,
        *,
        redaction: Redaction,
        clock: Clock,
        at_once: int,
        spent: Callable[[], int],
    ) -> None:
        self._exchanger = exchanger
        self._judge = judge
        self._notes = notes
        self._redaction = redaction
        self._clock = clock
        self._at_once = at_once
        self._spent = spent
        self._counts: Counter[str] = Counter()
        self._in_a_row: Counter[int] = Counter()
        self._stopped: str | None = None

    async def go(self, calls: Sequence[V3Request], stop: asyncio.Event) -> RunOutcome:
        """Ask all of them; no new one once `stop` is set. Raises ConfigError where notes cannot be written."""
        queue = iter(calls)
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(min(self._at_once, len(calls))):
                    group.create_task(self._work(queue, stop), name=f"calls to compare, {number + 1}")
        except* OSError as found:
            words = getattr(found.exceptions[0], "strerror", None) or "the disk is in trouble"
            raise errors.ConfigError(f"what was found cannot be written down: {words}") from None
        return RunOutcome(self._stopped, self._counts["left out"], self._counts["troubled"], self._spent())

    async def _work(self, queue: Iterator[V3Request], stop: asyncio.Event) -> None:
        for call in queue:
            if stop.is_set():
                self._stopped = self._stopped or "interrupted"
            if self._stopped is not None:
                return
            await self._one(call)
            self._notes.tell(self._standing())

    async def _one(self, call: V3Request) -> None:
        twice = self._judge is not None and self._judge.asks_twice(call)
        at = self._clock.now()
        try:
            found = await self._exchanger.exchange(call, twice=twice)
        except exchanging.OutOfBudgetError:
            self._counts["left out"] += 1
            return
        self._look(found)
        self._counts["troubled" if found.trouble else "done"] += 1
        if found.trouble is None:
            self._record(call, found)  # first: what is noted as done is never asked again
        if self._judge is not None:
            self._note(call, self._judged(call, at, found))

    def _judged(self, call: V3Request, at: float, found: exchanging.Exchange) -> Comparison:
        made = self._compared(call, at, found)
        return redact_comparison(msgspec.structs.replace(made, parts=found.cost), self._redaction)

    def _compared(self, call: V3Request, at: float, found: exchanging.Exchange) -> Comparison:
        if found.trouble is not None or found.old is None or found.new is None or self._judge is None:
            return Comparison(call, at, trouble=found.trouble)
        pair = ResponsePair(found.old, found.new)
        try:
            return self._judge.compare(call, at, pair, old_again=found.old_again, new_again=found.new_again)
        except Exception as error:  # one odd answer is not to end a run of thousands
            log.error("comparison failed", request_id=call.id, exc_info=error)
            return Comparison(call, at, trouble=f"the two answers cannot be compared ({type(error).__name__})")

    def _note(self, call: V3Request, comparison: Comparison) -> None:
        """First what lasts, then what is added up."""
        if self._notes.note is not None:
            self._notes.note(call.id, comparison)
        if self._notes.add is not None:
            self._notes.add(comparison)

    def _record(self, call: V3Request, found: exchanging.Exchange) -> None:
        recorder, tape = self._notes.recorder, self._notes.tape
        if recorder is None or call.id in recorder.known:
            return
        old, new = found.freshest
        application = self._notes.application(call.client)
        answers = RecordedExchange(call, old, new, found.notes, application)
        recorder.keep(answers, tape.take_shared() if tape else ())

    def _look(self, found: exchanging.Exchange) -> None:
        """Give up on a side that only has trouble: calls that cannot be compared are not to be spent."""
        if found.trouble is None:
            self._in_a_row.clear()
        elif found.of is not None and found.of.live:
            side = id(found.of)
            self._in_a_row[side] += 1
            if self._in_a_row[side] >= IN_A_ROW:
                self._stopped = self._stopped or f"{found.trouble}, {IN_A_ROW} times in a row"

    def _standing(self) -> RunProgress:
        counts = self._counts
        return RunProgress(counts["done"], counts["troubled"], counts["left out"], self._spent())
