"""Tests of request coalescing: one execution by the first caller, and one retry if it stalls."""

import asyncio
from collections.abc import Sequence

import pytest

from proxy.gateway.cache.coalescing import Claim, Coalescing, SecondAttempt, StalledWork


class Text(str):
    """Result of an attempt."""

    __slots__ = ()

    @property
    def has_failed(self) -> bool:
        return self in ("refused", "failed")

    @property
    def was_refused(self) -> bool:
        return self == "refused"


REFUSED, FAILED = Text("refused"), Text("failed")


class Stalled:
    """Allows repetitions or does not."""

    def __init__(self, several: bool = False, allowed: bool = True) -> None:
        self.is_batch = several
        self.allowed = allowed

    def allow_retry(self) -> bool:
        return self.allowed


class Worker:
    """Executes work when released, as the pipeline does. Attempts are numbered from 0; their results can be set."""

    def __init__(self) -> None:
        self.coalescing: Coalescing[str, Caller, Text] = Coalescing()
        self.tasks: set[asyncio.Task[None]] = set()
        self.done: list[list[str]] = []
        self.told: list[asyncio.Future[str | None]] = []
        self.claims: list[Claim[str, Caller, Text] | None] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None
        self.substitutes: dict[str, str] = {}

    async def want(self, *keys: str) -> tuple[list[Text], int]:
        """Return the result of every key, and how many of them another caller executed."""
        caller = Caller(keys)
        results: dict[int, Text] = {}
        left, joined = list(range(len(keys))), 0
        while left:
            share = self.coalescing.join({n: keys[n] for n in left}, caller)
            if share.stalled is not None:
                self.replace(share.stalled)
            with share:
                if share.claim is not None:
                    share.finish(await self.work(caller, share.claim.positions, share.claim))
            found, abandoned = await share.wait()
            results |= found
            joined += len(left) - len(share.claim.positions if share.claim else ()) - len(abandoned)
            left = abandoned
        return [results[n] for n in range(len(keys))], joined

    def replace(self, stalled: StalledWork[str, "Caller", Text]) -> None:
        for wait in stalled.waits:
            substitute = self.substitutes.get(wait.caller.keys[wait.position])
            if substitute is not None:
                wait.resolve(Text(substitute))
        self.start_attempts(stalled.second_attempts())

    def start_attempts(self, attempts: Sequence[SecondAttempt[str, "Caller", Text]]) -> None:
        for attempt in attempts:
            task = asyncio.create_task(self.repeat(attempt), context=attempt.context)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def repeat(self, attempt: SecondAttempt[str, "Caller", Text]) -> None:
        try:
            results = await self.work(attempt.caller, attempt.positions, None)
        except Exception as error:
            attempt.fail(error)
        else:
            self.start_attempts(attempt.finish(results))

    async def work(
        self, caller: "Caller", positions: list[int], claim: Claim[str, "Caller", Text] | None
    ) -> list[Text]:
        keys = [caller.keys[n] for n in positions]
        self.done.append(keys)
        self.claims.append(claim)
        self.told.append(asyncio.get_running_loop().create_future())
        told = await self.told[-1] if not self.gate.is_set() else None
        if self.error:
            raise self.error
        return [Text(told or key.upper()) for key in keys]

    async def close(self) -> None:
        """Wait for second attempts."""
        while self.tasks:
            await asyncio.wait(self.tasks)

    async def start(self, *keys: str) -> "asyncio.Task[tuple[list[Text], int]]":
        """A caller that is on its way."""
        task = asyncio.create_task(self.want(*keys))
        await asyncio.sleep(0)
        return task

    async def stall(self, attempt: int, stall: Stalled | None = None) -> None:
        """An attempt stalls."""
        claim = self.claims[attempt]
        assert claim is not None
        self.replace(claim.stalled(stall or Stalled(), claim.positions))
        await asyncio.sleep(0)

    async def tell(self, attempt: int, result: str | None = None) -> None:
        """An attempt has this result for all of its keys; without one, the usual."""
        self.told[attempt].set_result(result)
        for _ in range(4):
            await asyncio.sleep(0)


class Caller:
    """One caller, with its keys."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.keys = keys


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def held(worker: Worker) -> Worker:
    """Its attempts wait until they are told."""
    worker.gate.clear()
    return worker


async def test_a_lone_caller_executes_all_keys_at_once(worker: Worker) -> None:
    assert await worker.want("a", "b") == (["A", "B"], 0)
    assert worker.done == [["a", "b"]]


async def test_a_key_that_is_joined_twice_is_executed_once(worker: Worker) -> None:
    assert await worker.want("a", "b", "a") == (["A", "B", "A"], 1)
    assert worker.done == [["a", "b"]]


async def test_keys_in_flight_are_awaited_and_the_others_executed(held: Worker) -> None:
    first = await held.start("a", "b")
    second = await held.start("c", "b", "a")
    third = await held.start("a")
    await held.tell(1)
    await held.tell(0)
    assert list(await asyncio.gather(first, second, third)) == [(["A", "B"], 0), (["C", "B", "A"], 2), (["A"], 1)]
    assert held.done == [["a", "b"], ["c"]]


async def test_nothing_is_kept_after_execution(worker: Worker) -> None:
    await worker.want("a")
    await worker.want("a")
    assert worker.done == [["a"], ["a"]]


async def test_an_error_is_shared_and_the_next_caller_executes_again(held: Worker) -> None:
    held.error = ValueError("no")
    callers = [await held.start("a") for _ in range(3)]
    await held.tell(0)
    failed = await asyncio.gather(*callers, return_exceptions=True)
    assert [str(error) for error in failed] == ["no"] * 3
    held.error = None
    held.gate.set()
    assert await held.want("a") == (["A"], 0)
    assert held.done == [["a"], ["a"]]


async def test_a_waiting_caller_takes_over_from_a_cancelled_one(held: Worker) -> None:
    first = await held.start("a", "b")
    second = await held.start("c", "a")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    held.gate.set()
    await held.tell(1)
    assert await second == (["C", "A"], 0)
    assert held.done == [["a", "b"], ["c"], ["a"]]


async def test_cancelling_a_waiting_caller_does_not_affect_others(held: Worker) -> None:
    first, second, third = [await held.start("a") for _ in range(3)]
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    await held.tell(0)
    assert list(await asyncio.gather(first, third)) == [(["A"], 0), (["A"], 1)]


async def test_waiting_callers_and_the_leader_share_one_second_attempt(held: Worker) -> None:
    callers = [await held.start("a", "b"), await held.start("b", "a"), await held.start("a")]
    await held.stall(0)
    callers.append(await held.start("a"))
    assert held.done == [["a", "b"], ["a", "b"]]
    await held.tell(1)
    assert [outcome for outcome, _ in await asyncio.gather(*callers)] == [["A", "B"], ["B", "A"], ["A"], ["A"]]
    assert not [task for task in callers if task.cancelling()]
    assert len(held.done) == 2
    await held.close()


async def test_no_second_attempt_without_waiting_callers(held: Worker) -> None:
    caller = await held.start("a", "a")
    await held.stall(0)
    assert len(held.done) == 1
    await held.tell(0)
    assert await caller == (["A", "A"], 1)


async def test_a_stalled_batch_gives_its_leader_a_second_attempt(held: Worker) -> None:
    caller = await held.start("a", "b")
    await held.stall(0, Stalled(several=True))
    assert held.done == [["a", "b"], ["a", "b"]]
    await held.tell(1)
    assert await caller == (["A", "B"], 0)


async def test_a_new_caller_starts_the_second_attempt_if_none_waits(held: Worker) -> None:
    first = await held.start("a", "b")
    await held.stall(0)
    second = await held.start("a")
    assert held.done == [["a", "b"]]
    await asyncio.sleep(0)
    assert held.done == [["a", "b"], ["a"]]
    await held.tell(1)
    assert await second == (["A"], 1)
    assert not first.done()
    await held.tell(0, FAILED)
    assert await first == (["A", FAILED], 0)


async def test_a_substitute_is_given_to_waiting_callers_but_not_to_the_leader(held: Worker) -> None:
    held.substitutes["a"] = "old"
    first, second = await held.start("a", "a"), await held.start("a")
    await held.stall(0)
    third = await held.start("a")
    assert [await second, await third] == [(["old"], 1)] * 2
    assert held.done == [["a"]]
    await held.tell(0)
    assert await first == (["A", "A"], 1)


async def test_stalled_work_that_ends_first_is_shared(held: Worker) -> None:
    first, second = await held.start("a"), await held.start("a")
    await held.stall(0)
    await held.tell(0, "first")
    assert [await first, await second] == [(["first"], 0), (["first"], 1)]
    await held.tell(1, "second")
    await held.close()
    assert len(held.done) == 2


async def test_a_failed_second_attempt_leaves_callers_waiting_for_the_first(held: Worker) -> None:
    first, second = await held.start("a"), await held.start("a")
    await held.stall(0)
    await held.tell(1, FAILED)
    third = await held.start("a")
    assert not any(task.done() for task in (first, second, third))
    await held.tell(0)
    assert [await first, await second, await third] == [(["A"], 0), (["A"], 1), (["A"], 1)]
    assert len(held.done) == 2


async def test_a_failed_first_attempt_leaves_callers_waiting_for_the_second(held: Worker) -> None:
    first, second = await held.start("a"), await held.start("a")
    await held.stall(0)
    await held.tell(0, FAILED)
    assert (await first, second.done()) == (([FAILED], 0), False)
    await held.tell(1)
    assert await second == (["A"], 1)


async def test_callers_go_on_waiting_without_retry_budget(held: Worker) -> None:
    first, second = await held.start("a"), await held.start("a")
    await held.stall(0, Stalled(allowed=False))
    assert len(held.done) == 1
    await held.tell(0)
    assert [await first, await second] == [(["A"], 0), (["A"], 1)]


async def test_a_refused_second_attempt_passes_to_the_next_caller(held: Worker) -> None:
    first, second, third = [await held.start("a") for _ in range(3)]
    await held.stall(0, Stalled(several=True))
    await held.tell(1, REFUSED)
    await held.tell(2, REFUSED)
    await held.tell(3, REFUSED)
    assert len(held.done) == 4
    fourth = await held.start("a")
    await asyncio.sleep(0)
    await held.tell(4)
    assert [outcome for outcome, _ in await asyncio.gather(first, second, third, fourth)] == [["A"]] * 4


async def test_cancelling_the_leader_does_not_affect_the_second_attempt(held: Worker) -> None:
    first, second = await held.start("a"), await held.start("a")
    await held.stall(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await held.tell(1)
    assert await second == (["A"], 1)
    assert first.cancelled()
    assert len(held.done) == 2


async def test_the_leader_gets_the_second_attempt_of_a_cancelled_caller(held: Worker) -> None:
    first, second = await held.start("a"), await held.start("a")
    await held.stall(0)
    second.cancel()
    await held.tell(1)
    assert await first == (["A"], 0)


async def test_no_second_attempt_for_a_cancelled_caller(held: Worker) -> None:
    first, second = await held.start("a"), await held.start("a")
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    await held.stall(0)
    assert len(held.done) == 1
    await held.tell(0)
    assert await first == (["A"], 0)


async def test_an_error_of_the_second_attempt_is_not_raised(held: Worker) -> None:
    first, second = await held.start("a"), await held.start("a")
    await held.stall(0)
    held.error = ValueError("no")
    await held.tell(1)
    held.error = None
    await held.tell(0)
    assert [await first, await second] == [(["A"], 0), (["A"], 1)]


async def test_results_go_to_those_that_wait_before_the_rest_is_there() -> None:
    worker = Worker()
    share = worker.coalescing.join({0: "a", 1: "b", 2: "c"}, Caller(("a", "b", "c")))
    first, second, third = (worker.coalescing.join({0: key}, Caller((key,))) for key in "abc")
    assert share.claim is not None
    share.claim.finish_early({0: Text("result"), 1: FAILED})
    assert await first.wait() == ({0: "result"}, [])
    # Neither is the finished work repeated if the rest stalls, nor what has not stalled.
    (attempt,) = share.claim.stalled(Stalled(), [0, 2]).second_attempts()
    assert attempt.finish([Text("second result")]) == []
    assert await third.wait() == ({0: "second result"}, [])
    share.finish([*map(Text, ("result", "late result", "first result"))])
    assert await second.wait() == ({0: "late result"}, [])
    assert await share.wait() == ({0: "result", 1: "late result", 2: "first result"}, [])
