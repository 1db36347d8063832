"""Known, under way, asked for: where an answer comes from, and what becomes of a failure."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import msgspec
import prometheus_client
import pytest

from proxy import config, errors, model
from proxy.gateway.cache.entries import Answer, Question, Reading, ResponseCache
from proxy.gateway.cache.lookup import Answers, Inquiry
from proxy.gateway.load_shedding import LoadShedding
from proxy.gateway.receipt import Receipt
from proxy.kit import clock
from proxy.planning.operations import QueryResult
from proxy.telemetry.metrics import Metrics


class Source:
    """Says of each number a part of that number, when it is let go."""

    def __init__(self, reading: Reading, time: clock.ManualClock, shares: bool = True, seconds: float = 60) -> None:
        settings = config.CacheSettings(seconds=seconds, stale_seconds=600)
        self.metrics = Metrics(prometheus_client.CollectorRegistry())
        calm = LoadShedding(config.OverloadSettings(), self.metrics)
        self.answers = Answers(ResponseCache(settings, time) if seconds else None, shares, calm, self.metrics)
        self.reading = reading
        self.asked: list[list[str]] = []
        self.failing: dict[str, errors.BridgeError | str] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def get(self, *numbers: str) -> tuple[list[Answer], Receipt]:
        receipt = Receipt(0.0)
        here = model.MappingContext("US", "USD")
        questions = [Question(("demo", number), here) for number in numbers]

        async def ask(positions: list[int]) -> list[QueryResult]:
            self.asked.append([numbers[n] for n in positions])
            await self.gate.wait()
            return [self._outcome(numbers[n]) for n in positions]

        return await self.answers.to(Inquiry(questions, self.reading, ask, receipt)), receipt

    def _outcome(self, number: str) -> QueryResult:
        failing = self.failing.get(number)
        if isinstance(failing, errors.BridgeError):
            return QueryResult([], 0, failing.message, failing)
        if failing:
            return QueryResult([], 0, failing)
        records = msgspec.convert([{"mpn": number}], list[self.reading.part.record])  # type: ignore[name-defined]
        return QueryResult(records if number != "none" else [], 1)


class Picky(Reading):
    """Cannot translate a part that is called "broken"."""

    def items(self, records: list[Any], context: model.MappingContext) -> bytes:
        if any(record.mpn == "broken" for record in records):
            raise errors.UpstreamUnreadable("cannot be translated")
        return super().items(records, context)


@pytest.fixture
def source(reading: Callable[..., Reading], time: clock.ManualClock) -> Source:
    return Source(reading("mpn"), time)


def numbers(answers: list[Answer]) -> list[Any]:
    return [[part["mpn"] for part in json.loads(answer.items)] for answer in answers]


async def test_only_what_is_new_is_asked_for(source: Source) -> None:
    _, first = await source.get("a", "b")
    answers, second = await source.get("b", "c", "a")
    assert numbers(answers) == [["b"], ["c"], ["a"]]
    assert source.asked == [["a", "b"], ["c"]]
    assert (first.source, second.source) == ("miss", "miss")
    _, third = await source.get("a", "b", "c")
    assert (third.source, len(source.asked)) == ("hit", 2)


async def test_a_receipt_says_how_long_a_reply_may_be_given_again(source: Source, time: clock.ManualClock) -> None:
    await source.get("a")
    time.advance(20)
    _, receipt = await source.get("a", "b")
    assert receipt.until == time.monotonic() + 40
    source.failing = {"c": "no"}
    _, receipt = await source.get("a", "c")
    assert receipt.until == 0.0


async def test_that_there_is_nothing_is_an_answer_too(source: Source) -> None:
    for _ in range(2):
        answers, _ = await source.get("none")
        assert numbers(answers) == [[]]
    assert source.asked == [["none"]]


async def test_equal_questions_under_way_are_asked_once(source: Source) -> None:
    source.gate.clear()
    first = asyncio.create_task(source.get("a", "a"))
    await asyncio.sleep(0)
    second = asyncio.create_task(source.get("b", "a"))
    await asyncio.sleep(0)
    source.gate.set()
    (ones, _), (others, receipt) = await asyncio.gather(first, second)
    assert (numbers(ones), numbers(others)) == ([["a"], ["a"]], [["b"], ["a"]])
    assert source.asked == [["a"], ["b"]]
    assert receipt.source == "miss"
    assert (source.metrics.queries["miss",], source.metrics.queries["shared",]) == (2, 2)


async def test_an_answer_that_somebody_else_asked_for_is_shared(source: Source) -> None:
    source.gate.clear()
    tasks = []
    for _ in range(2):
        tasks.append(asyncio.create_task(source.get("a")))
        await asyncio.sleep(0)
    source.gate.set()
    assert [receipt.source for _, receipt in await asyncio.gather(*tasks)] == ["miss", "shared"]


async def test_without_sharing_and_keeping_each_asks_for_itself(
    reading: Callable[..., Reading], time: clock.ManualClock
) -> None:
    alone = Source(reading("mpn"), time, shares=False, seconds=0)
    answers, receipt = await alone.get("a", "a")
    assert numbers(answers) == [["a"], ["a"]]
    assert (alone.asked, receipt.source, receipt.until) == ([["a", "a"]], "miss", 0.0)


async def test_a_questions_own_error_is_not_kept(source: Source) -> None:
    source.failing = {"a": "no such maker"}
    answers, _ = await source.get("a", "b")
    assert [(answer.error, answer.failure) for answer in answers] == [("no such maker", None), (None, None)]
    source.failing = {}
    answers, _ = await source.get("a", "b")
    assert numbers(answers) == [["a"], ["b"]]
    assert source.asked == [["a", "b"], ["a"]]


async def test_an_old_answer_stands_in_while_the_service_is_in_trouble(source: Source, time: clock.ManualClock) -> None:
    await source.get("a")
    time.advance(100)
    trouble = source.failing["a"] = source.failing["b"] = errors.UpstreamUnreachable("gone")
    answers, receipt = await source.get("a", "b")
    assert numbers(answers) == [["a"], []]
    assert [answer.failure for answer in answers] == [None, trouble]
    assert (receipt.source, receipt.until, source.metrics.queries["stale",]) == ("stale", 0.0, 1)
    time.advance(600)
    answers, _ = await source.get("a")
    assert answers[0].failure is trouble


async def test_an_old_answer_does_not_hide_that_a_budget_is_spent(source: Source, time: clock.ManualClock) -> None:
    await source.get("a")
    time.advance(100)
    source.failing["a"] = errors.QuotaExhausted("spent", retry_after=10)
    answers, _ = await source.get("a")
    assert answers[0].failure is source.failing["a"]


async def test_a_failure_is_everybodys_and_is_not_kept(source: Source) -> None:
    source.failing["a"] = errors.UpstreamUnreachable("gone")
    source.gate.clear()
    tasks = [asyncio.create_task(source.get("a")) for _ in range(3)]
    await asyncio.sleep(0)
    source.gate.set()
    assert [answers[0].error for answers, _ in await asyncio.gather(*tasks)] == ["gone"] * 3
    source.failing = {}
    answers, _ = await source.get("a")
    assert (numbers(answers), len(source.asked)) == ([["a"]], 2)


async def test_an_answer_that_cannot_be_translated_fails_alone_and_the_others_are_kept(source: Source) -> None:
    source.reading = Picky("picky", source.reading.part)
    answers, receipt = await source.get("a", "broken", "b")
    assert numbers(answers) == [["a"], [], ["b"]]
    assert [answer.error for answer in answers] == [None, "cannot be translated", None]
    assert (type(answers[1].failure), receipt.until) == (errors.UpstreamUnreadable, 0.0)
    answers, _ = await source.get("a", "b")
    assert numbers(answers) == [["a"], ["b"]]
    assert source.asked == [["a", "broken", "b"]]


async def test_a_kept_answer_that_cannot_be_translated_for_another_view_fails_alone_and_never_stands_in(
    source: Source, time: clock.ManualClock
) -> None:
    await source.get("a", "broken")
    source.reading = Picky("picky", source.reading.part)
    answers, _ = await source.get("a", "broken")
    assert numbers(answers) == [["a"], []]
    assert isinstance(answers[1].failure, errors.UpstreamUnreadable)
    assert len(source.asked) == 1
    time.advance(100)
    gone = source.failing["broken"] = errors.UpstreamUnreachable("gone")
    answers, _ = await source.get("a", "broken")
    assert [answer.failure for answer in answers] == [None, gone]


async def test_that_somebody_elses_budget_is_spent_is_nobody_elses_failure(source: Source) -> None:
    source.gate.clear()
    source.failing["a"] = errors.QuotaExhausted("spent by another key", retry_after=10)
    first = asyncio.create_task(source.get("a"))
    await asyncio.sleep(0)
    second = asyncio.create_task(source.get("a", "b"))
    third = asyncio.create_task(source.get("a"))
    await asyncio.sleep(0)
    source.gate.set()
    refused, _ = await first
    source.failing = {}
    answers, receipt = await second
    assert isinstance(refused[0].failure, errors.QuotaExhausted)
    assert numbers(answers) == [["a"], ["b"]]
    assert numbers((await third)[0]) == [["a"]]
    assert source.asked[:3] == [["a"], ["b"], ["a"]]
    assert receipt.source == "miss"
