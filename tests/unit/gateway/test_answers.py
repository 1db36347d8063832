"""Answers that are kept for seconds, and calls under way that share (ARCHITECTURE.md, decisions)."""

import asyncio

import pytest

from proxy.gateway import answers
from proxy.kit import clock

KEY, OTHER = ("demo", b"1"), ("other", b"1")


class Source:
    """Counts how often it is asked, and answers when it is let go."""

    def __init__(self) -> None:
        self.asked = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def ask(self) -> str:
        self.asked += 1
        await self.gate.wait()
        if self.error:
            raise self.error
        return f"answer {self.asked}"


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture
def kept(time: clock.ManualClock) -> answers.Answers:
    return answers.Answers(60, 2, time)


async def test_an_answer_is_known_for_its_seconds(
    kept: answers.Answers, source: Source, time: clock.ManualClock
) -> None:
    assert kept.known(KEY) is None
    assert await kept.get(KEY, source.ask) == "answer 1"
    time.advance(59)
    assert kept.known(KEY) == "answer 1"
    time.advance(1)
    assert kept.known(KEY) is None


async def test_applications_do_not_see_each_others_answers(kept: answers.Answers, source: Source) -> None:
    await kept.get(KEY, source.ask)
    assert kept.known(OTHER) is None


async def test_the_oldest_goes_when_there_are_too_many(kept: answers.Answers, source: Source) -> None:
    keys = [("demo", bytes([number])) for number in range(3)]
    for key in keys:
        await kept.get(key, source.ask)
    assert [kept.known(key) for key in keys] == [None, "answer 2", "answer 3"]


@pytest.mark.parametrize("seconds, entries", [(0, 10), (60, 0)])
async def test_nothing_is_kept_when_it_is_switched_off(
    seconds: float, entries: int, source: Source, time: clock.ManualClock
) -> None:
    off = answers.Answers(seconds, entries, time)
    assert [await off.get(KEY, source.ask) for _ in range(2)] == ["answer 1", "answer 2"]
    assert off.known(KEY) is None


@pytest.mark.parametrize("seconds", [0, 60])
async def test_calls_under_way_share_in_any_case(seconds: float, source: Source, time: clock.ManualClock) -> None:
    shared = answers.Answers(seconds, 10, time)
    source.gate.clear()
    waiting = [asyncio.create_task(shared.get(KEY, source.ask)) for _ in range(5)]
    apart = asyncio.create_task(shared.get(OTHER, source.ask))
    await asyncio.sleep(0)
    source.gate.set()
    assert len(set(await asyncio.gather(*waiting))) == 1
    await apart
    assert source.asked == 2


async def test_a_failure_is_shared_and_not_kept(kept: answers.Answers, source: Source) -> None:
    source.error = ValueError("no")
    source.gate.clear()
    waiting = [asyncio.create_task(kept.get(KEY, source.ask)) for _ in range(3)]
    await asyncio.sleep(0)
    source.gate.set()
    failed = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(error) for error in failed] == ["no"] * 3
    assert (source.asked, kept.known(KEY)) == (1, None)
    source.error = None
    assert await kept.get(KEY, source.ask) == "answer 2"


async def test_who_waits_is_answered_although_the_first_has_gone(kept: answers.Answers, source: Source) -> None:
    source.gate.clear()
    first, second = [asyncio.create_task(kept.get(KEY, source.ask)) for _ in range(2)]
    await asyncio.sleep(0)
    first.cancel()
    source.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert (await second).startswith("answer")
    assert kept.known(KEY) == await second
