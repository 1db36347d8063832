"""Steps are recorded with the steps within them, across tasks, and only while a trace is recorded."""

import asyncio

import pytest

from proxy import errors
from proxy.kit.clock import ManualClock
from proxy.telemetry import steps


@pytest.fixture
def time() -> ManualClock:
    return ManualClock()


@pytest.fixture
def root(time: ManualClock) -> steps.RecordedStep:
    return steps.RecordedStep("request", time)


def names(step: steps.RecordedStep) -> list[str]:
    return [each.name for each in step.steps]


def test_steps_are_recorded_within_the_step_that_is_open(root: steps.RecordedStep, time: ManualClock) -> None:
    with root:
        with steps.step("execute"):
            time.advance(1)
            with steps.step("send"):
                time.advance(2)
                steps.add(status=200)
            steps.add(operation="supParts")
        steps.lap("reply")
    (execute, reply) = root.steps
    assert (execute.name, names(execute), execute.facts) == ("execute", ["send"], {"operation": "supParts"})
    assert execute.steps[0].facts == {"status": 200}
    assert execute.ended is not None
    assert execute.ended - execute.began == 3
    assert (reply.began, reply.ended) == (execute.ended, execute.ended)


def test_a_lap_lasts_from_the_end_of_the_step_before(root: steps.RecordedStep, time: ManualClock) -> None:
    with root:
        time.advance(1)
        steps.lap("parse")
        time.advance(2)
        with steps.step("wait"):
            time.advance(4)
        time.advance(8)
        steps.lap("reply")
    assert [(each.name, (each.ended or 0) - each.began) for each in root.steps] == [
        ("parse", 1),
        ("wait", 4),
        ("reply", 8),
    ]


def test_an_error_ends_its_step_and_those_around_it(root: steps.RecordedStep) -> None:
    error = errors.UpstreamUnreachable("no connection")
    with pytest.raises(errors.UpstreamUnreachable), root, steps.step("execute"), steps.step("send"):
        raise error
    execute = root.steps[0]
    assert (root.failure, execute.failure, execute.steps[0].failure) == (error, error, error)


def test_a_step_without_an_exception_can_end_with_an_error(root: steps.RecordedStep) -> None:
    error = errors.UpstreamUnreadable("no JSON")
    with root:
        steps.lap("translate", error)
    assert (root.failure, root.steps[0].failure) == (None, error)


async def test_tasks_add_to_the_step_that_they_were_started_in(root: steps.RecordedStep) -> None:
    async def execute(name: str) -> None:
        with steps.step(name):
            await asyncio.sleep(0)
            with steps.step(f"send {name}"):
                await asyncio.sleep(0)

    with root, steps.step("both"):
        await asyncio.gather(execute("a"), execute("b"))
    (both,) = root.steps
    assert {each.name: names(each) for each in both.steps} == {"a": ["send a"], "b": ["send b"]}


def test_sources_of_queries_are_those_of_the_whole_request(root: steps.RecordedStep) -> None:
    with root:
        steps.add_source("memory", [0, 2])
        with steps.step("execute"):
            steps.add_source("upstream", [1])
            steps.add_source("stale", [1])  # the last one counts
    assert root.sources == {0: "memory", 1: "stale", 2: "memory"}


def test_nothing_is_recorded_without_a_trace(root: steps.RecordedStep) -> None:
    with root:
        pass
    assert not steps.is_recorded()
    with steps.step("execute") as nothing:
        steps.add(operation="supParts")
        steps.add_source("memory", [0])
        steps.lap("reply")
    assert nothing is None
    assert (root.steps, root.sources, root.facts) == ([], {}, {})
