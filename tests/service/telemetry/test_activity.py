"""Recent activity of a process: the last requests and operations, the slowest operations of the last hour, and texts of
clients that are safe to store and to show."""

import asyncio
import random
from typing import Any

from proxy import redaction
from proxy.kit import clock
from proxy.telemetry import activity


def _values(number: int, at: float = 1.0) -> activity.RequestValues:
    route = "/v3/parts/match"
    return (at, str(number), "GET", route, route, 200, 1.0, "", "", None, None, None, None, None, 0, 0, ())


def _operation(ms: float, at: float = 0.0, **fields: Any) -> activity.OperationRecord:
    return activity.OperationRecord(at, "supMultiMatch", "demo", ms, **fields)


async def test_only_the_last_requests_are_held() -> None:
    recent = activity.Activity()
    for number in range(activity.REQUESTS_MAX + 3):
        recent.add_request(_values(number))
    requests = (await recent.recent()).requests
    assert [requests[-1].id, requests[0].id] == ["3", str(activity.REQUESTS_MAX + 2)]


async def test_values_of_a_request_are_read_as_a_record() -> None:
    recent = activity.Activity()
    values = (1.0, "a", "GET", "/v3", "/v3", 200, 0.31415, "127.0.0.1", "curl", "demo", "erp", 0, "hit", None, 3, 0, ())
    recent.add_request(values)
    (record,) = (await recent.recent()).requests
    assert (record.key, record.cache, record.error, record.ms) == ("erp", "hit", None, 0.3)


async def test_slowest_operations_are_those_of_the_last_hour() -> None:
    """The slowest at any time are those that sorting all operations of the hour would give, to a span of time."""
    time = clock.ManualClock()
    recent, random_source = activity.Activity(time), random.Random(7)
    operations = []
    for _ in range(4_000):
        time.advance(random_source.random() * 4)
        operations.append(_operation(random_source.random() * 1_000, time.now()))
        recent.add_operation(operations[-1])
    assert time.now() - operations[0].at > 2 * activity.SLOWEST_SECONDS
    last_hour = [each for each in operations if each.at >= time.now() - activity.SLOWEST_SECONDS]
    expected = sorted(last_hour, key=lambda each: -each.ms)[: activity.SLOWEST_MAX]
    assert (await recent.recent()).slowest == expected
    assert (await recent.recent()).operations == operations[: -activity.OPERATIONS_MAX - 1 : -1]
    time.advance(activity.SLOWEST_SECONDS + 1)
    assert (await recent.recent()).slowest == []


async def test_activity_of_several_processes_is_one() -> None:
    processes = [activity.Activity(clock.ManualClock()) for _ in range(2)]
    for number in range(300):
        processes[number % 2].add_request(_values(number, at=float(number)))
        processes[number % 2].add_operation(_operation(number % 7, clock.ManualClock().now() + number))
    merged = activity.merged([await each.recent() for each in processes])
    assert [each.id for each in merged.requests] == [str(n) for n in range(299, 99, -1)]
    assert len(merged.operations) == activity.OPERATIONS_MAX
    assert {each.ms for each in merged.slowest} == {6, 5}
    assert len(merged.slowest) == activity.SLOWEST_MAX


def test_user_agent_is_shown_as_text() -> None:
    def shown(value: str) -> str:
        return activity.shown(redaction.Redaction(), "/v3/parts/match", value)[1]

    assert shown("curl/7.88.1") == "curl/7.88.1"
    assert shown("a\x1b[31m\udcffb") == "a\ufffd[31m\ufffdb"
    assert len(shown("x" * 10_000)) == activity.USER_AGENT_MAX


async def test_other_tasks_run_while_long_targets_are_read() -> None:
    recent, turns = activity.Activity(), 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    for number in range(activity.REQUESTS_MAX):
        recent.add_request(_values(number))
    counting = asyncio.create_task(count())
    await recent.recent()
    first = turns
    await recent.recent()  # what was hidden is kept
    counting.cancel()
    assert (first >= activity.REQUESTS_MAX - 1, turns - first) == (True, 0)
