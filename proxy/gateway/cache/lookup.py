"""Known answer? What the service said to each query a while ago, and what is being asked right now.

By query, not by call: of a BOM that overlaps another only the new lines are asked for. Answers are short-lived, in
memory, and can be switched off (the vendor's terms limit storing). Nothing here knows what an answer means.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import NamedTuple

import structlog

from proxy import errors
from proxy.gateway.cache.coalescing import SharedWork, Stall
from proxy.gateway.cache.entries import Answer, Question, Reading, ResponseCache
from proxy.gateway.load_shedding import LoadShedding
from proxy.gateway.receipt import Receipt
from proxy.planning.operations import QueryResult
from proxy.telemetry.metrics import Metrics
from proxy.upstream import stalls

log = structlog.get_logger()


class Inquiry(NamedTuple):
    """One request's questions, how their answers are read, and who asks them of the service: `ask` is given the
    positions of those that nobody knows an answer to."""

    questions: Sequence[Question]
    reading: Reading
    ask: Callable[[list[int]], Awaitable[Sequence[QueryResult]]]
    receipt: Receipt


class Answers:
    """Answers by question. Without `kept` none are kept; unless it `shares`, equal questions are asked apart."""

    def __init__(self, kept: ResponseCache | None, shares: bool, load: LoadShedding, metrics: Metrics) -> None:
        self._kept = kept
        self._load = load
        self._under_way: SharedWork[Hashable, Answer] | None = SharedWork() if shares else None
        self._metrics = metrics

    async def close(self) -> None:
        """Wait for what is asked a second time."""
        if self._under_way is not None:
            await self._under_way.close()

    async def to(self, inquiry: Inquiry) -> list[Answer]:
        """An answer to every question, in order."""
        if self._kept is None and self._under_way is None:
            inquiry.receipt.until = 0.0
            return await self.ask(inquiry, list(range(len(inquiry.questions))))
        known = self._known(inquiry)
        missing = [n for n in range(len(inquiry.questions)) if n not in known]
        if missing:
            known.update(zip(missing, await self._missing(inquiry, missing), strict=True))
        answers = [known[n] for n in range(len(inquiry.questions))]
        inquiry.receipt.until = min([inquiry.receipt.until, *(answer.until for answer in answers)])
        return answers

    def _known(self, inquiry: Inquiry) -> dict[int, Answer]:
        if self._kept is None:
            return {}
        found = {n: self._kept.get(question, inquiry.reading) for n, question in enumerate(inquiry.questions)}
        known = {n: answer for n, answer in found.items() if answer is not None}
        if known:
            self._count(inquiry, "hit", len(known))
        return known

    async def _missing(self, inquiry: Inquiry, missing: list[int]) -> list[Answer]:
        """Asked for at most once, however many want it. Whose budget is spent fails alone: others may have another."""
        if (refusal := self._load.refusal()) is not None:
            return [self._answer(inquiry, n, QueryResult([], 0, failure=refusal)) for n in missing]
        if self._under_way is None:
            return await self.ask(inquiry, missing)
        answers: dict[int, Answer] = {}
        left = missing
        while left:
            asked, found = await self._shared(inquiry, left)
            left = [n for n in left if n not in asked and isinstance(found[n].failure, errors.QuotaExhausted)]
            answers |= found
            if joined := len(found) - len(asked) - len(left):
                self._count(inquiry, "shared", joined)
        return [answers[n] for n in missing]

    async def _shared(self, inquiry: Inquiry, positions: list[int]) -> tuple[set[int], dict[int, Answer]]:
        """The positions that this inquiry had to ask for itself, and the answers to all."""
        assert self._under_way is not None  # noqa: S101 - who calls has looked
        job = _Job(self, inquiry, positions)
        keys = [(inquiry.questions[n].key, inquiry.reading.key) for n in positions]
        answers, _ = await self._under_way.run(keys, job)
        return job.asked, dict(zip(positions, answers, strict=True))

    async def ask(self, inquiry: Inquiry, positions: list[int]) -> list[Answer]:
        """Answers to the questions at these positions, from the service."""
        self._count(inquiry, "miss", len(positions))
        outcomes = await inquiry.ask(positions)
        began = self._metrics.clock.monotonic()
        answers = [self._answer(inquiry, n, outcome) for n, outcome in zip(positions, outcomes, strict=True)]
        self._metrics.observe_stage("translate", began)
        return answers

    def _answer(self, inquiry: Inquiry, position: int, outcome: QueryResult) -> Answer:
        """What the service said, or an answer of a while ago where the service is in trouble."""
        question, reading = inquiry.questions[position], inquiry.reading
        if outcome.failure is not None:
            return self._instead(inquiry, question, outcome.failure) or Answer.failed(outcome.failure)
        if outcome.error is not None:
            return Answer(b"[]", 0, outcome.error)
        try:
            items = reading.items(outcome.parts, question.context)
        except errors.UpstreamUnreadable as failure:  # of this one: what else was asked for is paid for, too
            log.warning("response translation failed", exc_info=failure)
            return self._instead(inquiry, question, failure) or Answer.failed(failure)
        answer = Answer(items, outcome.hits, beside=outcome.details)
        return answer if self._kept is None else self._kept.keep(question, reading, outcome.parts, answer)

    def _instead(self, inquiry: Inquiry, question: Question, failure: errors.BridgeError) -> Answer | None:
        """Not where a budget is spent: that a client must be told."""
        if not isinstance(failure, errors.ServerError):
            return None
        stale = self.stale(inquiry, question)
        if stale is not None:
            log.warning("stale response served", exc_info=failure)
        return stale

    def stale(self, inquiry: Inquiry, question: Question) -> Answer | None:
        """The entry for a question, however old, if there is one."""
        stale = None if self._kept is None else self._kept.get(question, inquiry.reading, stale=True)
        if stale is not None:
            self._count(inquiry, "stale", 1)
        return stale

    def _count(self, inquiry: Inquiry, source: str, number: int) -> None:
        inquiry.receipt.saw(source, number)
        self._metrics.queries[source,] += number


class _Job:
    """One request's questions at `positions`, as work that is shared; `asked` are those that it had to ask itself."""

    def __init__(self, answers: Answers, inquiry: Inquiry, positions: list[int]) -> None:
        self._answers = answers
        self._inquiry = inquiry
        self._positions = positions
        self.asked: set[int] = set()

    async def work(self, positions: list[int], stalled: Callable[[Stall], None] | None) -> list[Answer]:
        mine = [self._positions[n] for n in positions]
        self.asked.update(mine)
        before = stalls.WATCHES.set(() if stalled is None else (stalled,))
        try:
            return await self._answers.ask(self._inquiry, mine)
        finally:
            stalls.WATCHES.reset(before)

    def substitute(self, position: int) -> Answer | None:
        return self._answers.stale(self._inquiry, self._inquiry.questions[self._positions[position]])

    def has_failed(self, outcome: Answer) -> bool:
        return outcome.failure is not None

    def was_refused(self, outcome: Answer) -> bool:
        return isinstance(outcome.failure, errors.QuotaExhausted)
