"""Tests of batching: lone queries, batches of a turn, the connection limit, and callers affected by a failure."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from proxy import errors
from proxy.kit.slices import Slices
from proxy.model import PARTS_MAX
from proxy.telemetry.metrics import Metrics
from proxy.upstream import batching
from proxy.upstream.auth.identity import Credentials

ME, OTHER = Credentials("demo", "id", None), Credentials("other", "id-2", None)


@dataclass(frozen=True)
class Words:
    """A query for words; its result has them in capitals."""

    words: tuple[str, ...]
    batch_key: str | None = "key"
    each: int = 3

    @property
    def parts_max(self) -> int:
        return self.each * len(self.words)

    @property
    def positions(self) -> range:
        return range(len(self.words))

    @property
    def operation(self) -> Any:
        return self.words

    def merged(self, others: Sequence["Words"]) -> "Words":
        return Words(tuple(word for submit in (self, *others) for word in submit.words), self.batch_key, self.each)

    def read(self, data: Any) -> list[str]:
        return list(data)

    def decoded(self, results: list[str]) -> Slices[list[str]]:
        yield
        return results


class _Service:
    """In place of the GraphQL client. Requests wait until `let_go`; words in `refused` spoil theirs."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, ...]] = []
        self.since: list[float] = []
        self.waiting: list[asyncio.Event] = []
        self.refused: set[str] = set()
        self.error: Exception | None = None
        self.held = True
        self.ended = 0
        self.seconds = 60.0

    def remaining(self, since: float) -> float:
        return self.seconds - since

    async def execute(
        self,
        words: tuple[str, ...],
        credentials: Credentials,
        since: float,
        watches: object,
    ) -> list[str]:
        self.requests.append(words)
        self.since.append(since)
        if self.held:
            self.waiting.append(asyncio.Event())
            try:
                await self.waiting[-1].wait()
            except asyncio.CancelledError:
                self.ended += 1
                raise
        if self.error:
            raise self.error
        if self.refused & set(words):
            raise errors.QueryRefused(f"no {self.refused & set(words)}")
        return [word.upper() for word in words]

    def let_go(self, *numbers: int) -> None:
        """Respond to these requests, or to all, and all that come."""
        self.held = bool(numbers)
        for number in numbers or range(len(self.waiting)):
            self.waiting[number].set()


@pytest.fixture
def service() -> _Service:
    return _Service()


def batcher(service: _Service, metrics: Metrics, enabled: bool = True, connections: int = 100) -> batching.Batcher:
    return batching.Batcher(service, enabled, connections, metrics)  # type: ignore[arg-type]


async def submit(batches: batching.Batcher, *queries: Words, who: Credentials = ME) -> "list[asyncio.Task[list[str]]]":
    tasks = [asyncio.create_task(batches.execute(each, who, 0.0)) for each in queries]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


def of(*letters: str) -> list[Words]:
    return [Words((letter,)) for letter in letters]


def batched(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("v3bridge_batched_requests_total")


async def test_lone_query_is_sent_at_once(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    service.let_go()
    assert [await batches.execute(each, ME, 0.0) for each in of("a", "b")] == [["A"], ["B"]]
    assert (service.requests, batched(metrics)) == ([("a",), ("b",)], 0)


async def test_queries_of_one_turn_of_the_event_loop_are_sent_together(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    tasks = await submit(batches, *of("a", "b", "c"), Words(("d", "e")))
    assert service.requests == [("a", "b", "c", "d", "e")]
    service.let_go()
    assert await asyncio.gather(*tasks) == [["A"], ["B"], ["C"], ["D", "E"]]
    assert batched(metrics) == 4


async def test_queries_of_successive_turns_are_sent_together(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    tasks = []
    for letter in of("a", "b", "c"):
        tasks.append(asyncio.create_task(batches.execute(letter, ME, 0.0)))
        await asyncio.sleep(0)
    service.let_go()
    await asyncio.gather(*tasks)
    assert service.requests == [("a", "b", "c")]


async def test_queries_of_every_turn_delay_a_batch_for_a_few_turns_only(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    tasks = []
    service.let_go()
    for number in range(3 * batching.TURNS_MAX):
        tasks.append(asyncio.create_task(batches.execute(Words((f"w{number}",), each=1), ME, 0.0)))
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert 1 < len(service.requests) <= 4
    assert max(map(len, service.requests)) <= batching.TURNS_MAX + 2


async def test_query_of_a_later_turn_does_not_wait(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    tasks = [*await submit(batches, *of("a")), *await submit(batches, *of("b")), *await submit(batches, *of("c"))]
    assert service.requests == [("a",), ("b",), ("c",)]
    service.let_go()
    assert (await asyncio.gather(*tasks), batched(metrics)) == ([["A"], ["B"], ["C"]], 0)


async def test_queries_that_wait_for_a_connection_are_sent_together(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics, connections=2)
    tasks = [task for letter in of("a", "b", "c", "d", "e") for task in await submit(batches, letter)]
    assert service.requests == [("a",), ("b",)]
    service.let_go(1)
    assert await tasks[1] == ["B"]
    await asyncio.sleep(0)
    assert service.requests == [("a",), ("b",), ("c", "d", "e")]
    service.let_go()
    assert await asyncio.gather(*tasks) == [["A"], ["B"], ["C"], ["D"], ["E"]]


async def test_connection_is_free_while_a_response_is_decoded(service: _Service, metrics: Metrics) -> None:
    class Large(Words):
        """Words whose results are decoded until another request is sent."""

        def decoded(self, results: list[str]) -> Slices[list[str]]:
            while len(service.requests) < 2:
                yield
            return results

    batches = batcher(service, metrics, connections=1)
    tasks = [task for each in (Large(("a",)), Words(("b",))) for task in await submit(batches, each)]
    service.let_go()
    async with asyncio.timeout(10):
        assert await asyncio.gather(*tasks) == [["A"], ["B"]]


async def test_batches_get_connections_in_the_order_of_their_first_queries(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics, connections=1)
    queries = Words(("a",)), Words(("b",), "other"), Words(("c",)), Words(("d",), None), Words(("e",), "other")
    tasks = [task for each in queries for task in await submit(batches, each)]
    service.let_go()
    await asyncio.gather(*tasks)
    assert service.requests == [("a",), ("b", "e"), ("c",), ("d",)]


async def test_caller_waits_for_a_connection_within_its_own_time_limit(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics, connections=1)
    (first,) = await submit(batches, *of("a"))
    late = [
        asyncio.create_task(batches.execute(Words((word,)), ME, since)) for word, since in (("b", 59.999), ("c", 0.0))
    ]
    with pytest.raises(errors.DeadlineExceeded, match="all 1 connections were in use") as caught:
        await late[0]
    assert not caught.value.may_be_billed
    service.let_go()
    assert [await first, await late[1]] == [["A"], ["C"]]
    assert service.requests == [("a",), ("c",)]


async def test_caller_of_a_sent_batch_keeps_its_own_time_limit(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics, connections=1)
    (first,) = await submit(batches, *of("a"))
    tasks = [
        asyncio.create_task(batches.execute(Words((word,)), ME, since)) for word, since in (("b", 59.9), ("c", 0.0))
    ]
    for _ in range(3):
        await asyncio.sleep(0)
    service.let_go(0)
    await first
    with pytest.raises(errors.DeadlineExceeded) as caught:
        await tasks[0]
    assert (service.requests, caught.value.may_be_billed) == ([("a",), ("b", "c")], True)
    service.let_go()
    assert await tasks[1] == ["C"]


async def test_connection_of_a_cancelled_caller_goes_to_the_next_batch(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics, connections=1)
    tasks = [
        *await submit(batches, *of("a")),
        *await submit(batches, Words(("b",), "other")),
        *await submit(batches, *of("c")),
    ]
    service.let_go(0)
    while not tasks[0].done():
        await asyncio.sleep(0)
    tasks[1].cancel()  # it has been given the connection, and has not used it yet
    service.let_go()
    assert await tasks[2] == ["C"]
    assert service.requests in ([("a",), ("c",)], [("a",), ("b",), ("c",)])


async def test_batch_has_the_time_limit_of_its_latest_caller(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    began = {"a": 1.0, "b": 3.0, "c": 2.0}
    tasks = [asyncio.create_task(batches.execute(Words((word,)), ME, since)) for word, since in began.items()]
    for _ in range(3):
        await asyncio.sleep(0)
    service.let_go()
    await asyncio.gather(*tasks)
    assert service.since == [3.0]


async def test_caller_of_a_batch_sent_at_once_keeps_its_own_time_limit(service: _Service, metrics: Metrics) -> None:
    """A request that has waited elsewhere is sent together with one that has just begun."""
    batches = batcher(service, metrics)
    service.remaining = lambda since: since + 0.02  # type: ignore[method-assign]
    began = {"a": 0.0, "b": 60.0}
    tasks = [asyncio.create_task(batches.execute(Words((word,)), ME, since)) for word, since in began.items()]
    with pytest.raises(errors.DeadlineExceeded, match=r"in time$") as caught:
        async with asyncio.timeout(20):
            await tasks[0]
    assert (service.requests, caught.value.may_be_billed) == ([("a", "b")], True)
    service.let_go()
    assert await tasks[1] == ["B"]


async def test_batch_is_full_at_100_parts(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    tasks = await submit(batches, *[Words((f"w{n}",)) for n in range(40)])
    service.let_go()
    await asyncio.gather(*tasks)
    assert [len(words) for words in service.requests] == [33, 7]
    assert all(3 * len(words) <= PARTS_MAX for words in service.requests)


async def test_batch_is_full_at_100_queries_without_parts(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    tasks = await submit(batches, *[Words((f"w{n}",), each=0) for n in range(150)])
    assert [len(words) for words in service.requests] == [100, 50]
    service.let_go()
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("apart", ["application", "batch key", "no batch key", "switched off"])
async def test_different_batch_keys_are_not_batched(service: _Service, metrics: Metrics, apart: str) -> None:
    batches = batcher(service, metrics, enabled=apart != "switched off")
    key = {"batch key": "another", "no batch key": None}.get(apart, "key")
    first = batches.execute(Words(("a",), None if apart == "no batch key" else "key"), ME, 0.0)
    second = batches.execute(Words(("b",), key), OTHER if apart == "application" else ME, 0.0)
    service.let_go()
    assert list(await asyncio.gather(first, second)) == [["A"], ["B"]]
    assert service.requests == [("a",), ("b",)]


async def test_refused_batch_is_sent_separately_for_each_caller(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    tasks = await submit(batches, *of("a", "b", "bad", "c"))
    service.refused = {"bad"}
    service.let_go()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [found[0], found[1], found[3]] == [["A"], ["B"], ["C"]]
    assert isinstance(found[2], errors.QueryRefused)
    assert service.requests == [("a", "b", "bad", "c"), ("a",), ("b",), ("bad",), ("c",)]


async def test_refused_batch_is_not_sent_again_for_a_cancelled_caller(service: _Service, metrics: Metrics) -> None:
    """Its parts would be billed, and nobody would get them."""
    batches = batcher(service, metrics)
    tasks = await submit(batches, *of("a", "gone", "bad"))
    tasks[1].cancel()
    service.refused = {"bad"}
    service.let_go()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert service.requests == [("a", "gone", "bad"), ("a",), ("bad",)]


async def test_failure_affects_only_callers_of_its_batch(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    tasks = [*await submit(batches, *of("a")), *await submit(batches, *of("b", "c"))]
    service.let_go(0)
    assert await tasks[0] == ["A"]
    service.error = errors.UpstreamUnreachable("gone")
    service.let_go()
    found = await asyncio.gather(*tasks[1:], return_exceptions=True)
    assert [type(each) for each in found] == [errors.UpstreamUnreachable] * 2
    service.error = None
    assert await batches.execute(Words(("d",)), ME, 0.0) == ["D"]


async def test_cancelled_caller_does_not_affect_the_others(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    tasks = [asyncio.create_task(batches.execute(each, ME, 0.0)) for each in of("a", "b", "c", "d")]
    await asyncio.sleep(0)
    tasks[0].cancel()  # the batch has not been sent yet
    while not service.requests:
        await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(*tasks[:2], return_exceptions=True)
    service.let_go()
    assert await asyncio.gather(*tasks[2:]) == [["C"], ["D"]]
    assert service.requests == [("b", "c", "d")]


async def test_last_caller_of_a_batch_sends_it(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    tasks = [asyncio.create_task(batches.execute(each, ME, 0.0)) for each in of("a", "b")]
    await asyncio.sleep(0)
    tasks[0].cancel()
    service.let_go()
    assert await tasks[1] == ["B"]
    assert (service.requests, batched(metrics)) == ([("b",)], 0)


async def test_batch_without_callers_is_cancelled(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics, connections=2)
    tasks = [*await submit(batches, *of("a")), *await submit(batches, *of("b", "c"))]
    tasks[1].cancel()
    await asyncio.wait(tasks[1:2])
    assert service.ended == 0
    tasks[2].cancel()
    await batches.close()
    assert (service.requests, service.ended) == ([("a",), ("b", "c")], 1)
    service.let_go()
    assert await tasks[0] == ["A"]
    assert await batches.execute(Words(("d",)), ME, 0.0) == ["D"]


async def test_response_with_too_few_results_fails_all_callers(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    service.execute = lambda *_, **__: asyncio.sleep(0, ["B", "C"])  # type: ignore[method-assign]
    tasks = await submit(batches, Words(("b", "c")), Words(("d",)))
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(each) for each in found] == ["the upstream did not answer every query"] * 2


async def test_close_waits_for_batches(service: _Service, metrics: Metrics) -> None:
    batches = batcher(service, metrics)
    tasks = await submit(batches, *of("a", "b", "c"))
    service.let_go()
    await batches.close()
    assert all(task.done() for task in await asyncio.sleep(0, tasks))
