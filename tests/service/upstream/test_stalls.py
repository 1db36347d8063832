"""Detection of stalled requests, their watches, and retries from the budget."""

import asyncio
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from proxy import config
from proxy.kit.aiohttp_internals import connector
from proxy.telemetry import metrics as metering
from proxy.upstream import http_post, policies, stalls


class Watcher:
    """Watches for stalls."""

    def __init__(self) -> None:
        self.watch: stalls.StallWatch[None] = stalls.StallWatch(asyncio.Queue(), None)

    @property
    def reported(self) -> list[stalls.ActiveRequest]:
        """The stalled requests that were reported to it, each once."""
        waiting = [self.watch.queue.get_nowait() for _ in range(self.watch.queue.qsize())]
        for stall in waiting:
            self.watch.queue.put_nowait(stall)
        return [stall.request for stall in waiting]


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
async def requests(metrics: metering.Metrics) -> stalls.StallDetector:
    """A request may take a second."""
    return stalls.StallDetector(1.0, policies.RetryBudget(), metrics)


def begin(requests: stalls.StallDetector, *watchers: Watcher) -> stalls.ActiveRequest:
    """A request that was just sent and has no response yet."""
    sending = requests.begin("op", [watcher.watch for watcher in watchers])
    assert sending is not None
    sending.attempt = connector.Attempt(0.0)
    return sending


def receive(sending: stalls.ActiveRequest, received: int) -> None:
    attempt: Any = sending.attempt
    attempt.content = SimpleNamespace(total_bytes=received)


async def test_request_without_response_stalls_after_the_setting_and_is_reported_once(
    requests: stalls.StallDetector, watcher: Watcher, metrics: metering.Metrics
) -> None:
    sending = begin(requests, watcher)
    requests.check(0.9)
    assert watcher.reported == []
    requests.check(0.1)
    requests.check(5.0)
    assert watcher.reported == [sending]
    assert metrics.registry.get_sample_value("v3bridge_upstream_stalls_total", {"operation": "op"}) == 1


async def test_default_leaves_slow_requests_of_a_service_that_bills_them_alone(
    watcher: Watcher, metrics: metering.Metrics
) -> None:
    requests = stalls.StallDetector(config.CoalescingSettings().stall_seconds, policies.RetryBudget(), metrics)
    sending = begin(requests, watcher)
    requests.check(9.0)
    assert watcher.reported == []
    requests.check(1.0)  # and leaves most of the time to the second attempt
    assert watcher.reported == [sending]


async def test_request_without_watches_is_not_registered(requests: stalls.StallDetector) -> None:
    assert requests.begin("op", ()) is None
    requests.end("op", 0.1, None)


async def test_ended_request_never_stalls(requests: stalls.StallDetector, watcher: Watcher) -> None:
    sending = begin(requests, watcher)
    requests.end("op", 0.5, sending)
    requests.check(5.0)
    assert watcher.reported == []


async def test_silent_response_stalls_even_if_the_operation_is_slow(
    requests: stalls.StallDetector, watcher: Watcher
) -> None:
    for _ in range(50):
        requests.end("op", 3.0, None)
    sending = begin(requests, watcher)
    requests.check(2.0)
    for received in (0, 10, 20):
        receive(sending, received)
        requests.check(0.5)
    assert watcher.reported == []
    requests.check(0.5)
    requests.check(0.5)
    assert watcher.reported == [sending]


async def test_slow_response_stalls_far_beyond_the_typical_duration(
    requests: stalls.StallDetector, watcher: Watcher
) -> None:
    for _ in range(50):
        requests.end("op", 3.0, None)
    limit = requests.limit("op")
    assert 6.0 <= limit < 7.0
    sending = begin(requests, watcher)
    for received in range(1, 14):
        assert watcher.reported == []
        receive(sending, received)
        requests.check(0.5)
    requests.check(0.5)
    assert watcher.reported == [sending]


async def test_one_long_request_changes_the_typical_duration_briefly(requests: stalls.StallDetector) -> None:
    for _ in range(50):
        requests.end("op", 0.1, None)
    assert requests.limit("op") == 1.0
    requests.end("op", 60.0, None)
    assert requests.limit("op") < 6.0
    for _ in range(20):
        requests.end("op", 0.1, None)
    assert requests.limit("op") == 1.0


async def test_no_stall_if_most_requests_are_late(requests: stalls.StallDetector, watcher: Watcher) -> None:
    sent = [begin(requests, watcher) for _ in range(5)]
    requests.check(1.5)
    assert watcher.reported == []
    for sending in sent[2:]:
        requests.end("op", 0.1, sending)
    requests.check(0.1)
    assert set(watcher.reported) == set(sent[:2])


async def test_waiting_for_a_connection_is_no_stall(requests: stalls.StallDetector, watcher: Watcher) -> None:
    sending = begin(requests, watcher)
    assert sending.attempt is not None
    sending.attempt.sent = False
    requests.check(30.0)
    sending.attempt.sent = True
    requests.check(0.9)
    assert watcher.reported == []
    requests.check(0.2)
    assert watcher.reported == [sending]


async def test_stalled_request_takes_one_retry_from_the_budget(metrics: metering.Metrics, watcher: Watcher) -> None:
    budget = policies.RetryBudget()
    while budget.withdraw():
        pass
    requests = stalls.StallDetector(1.0, budget, metrics)
    sending = begin(requests, watcher, Watcher())
    assert sending.is_batch
    assert not sending.allow_retry()
    for _ in range(6):
        budget.deposit()
    assert sending.allow_retry()
    assert sending.allow_retry()
    assert not begin(requests, watcher).allow_retry()
    labels = {"operation": "op", "reason": "Stalled"}
    assert metrics.registry.get_sample_value("v3bridge_upstream_retries_total", labels) == 1


class CountingDetector(stalls.StallDetector):
    """Counts its checks."""

    count = 0

    def check(self, passed: float) -> None:
        self.count += 1
        super().check(passed)


async def test_time_of_a_blocked_event_loop_does_not_count(metrics: metering.Metrics, watcher: Watcher) -> None:
    """The responses may be there and unread."""
    requests = CountingDetector(0.4, policies.RetryBudget(), metrics)
    begin(requests, watcher)
    time.sleep(0.5)
    while not requests.count:
        await asyncio.sleep(0)
    assert watcher.reported == []
    async with asyncio.timeout(60):
        while not watcher.reported:
            await asyncio.sleep(0.01)
    assert requests.count >= 3


async def test_timer_runs_only_while_requests_are_in_flight(metrics: metering.Metrics, watcher: Watcher) -> None:
    requests = CountingDetector(0.04, policies.RetryBudget(), metrics)
    first, second = begin(requests, watcher), begin(requests, watcher)
    requests.end("op", 0.01, first)
    async with asyncio.timeout(60):
        while requests.count < 3:
            await asyncio.sleep(0.01)
    requests.end("op", 0.01, second)
    await asyncio.sleep(0.05)
    count = requests.count
    await asyncio.sleep(0.05)
    assert requests.count == count


async def test_received_bytes_of_a_response_are_known(
    serve: Any, open_session: Callable[..., aiohttp.ClientSession]
) -> None:
    go_on = asyncio.Event()

    async def respond(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "8"})
        await response.prepare(request)
        await response.write(b"four")
        await go_on.wait()
        await response.write(b"more")
        return response

    sending = stalls.ActiveRequest("op", (), lambda _: True, 0.0)
    async with serve(respond) as url, open_session() as session:
        request = http_post.HttpRequest(url, "the service", b"{}", {}, True)
        task = asyncio.create_task(http_post.post(session, request, sending))
        async with asyncio.timeout(60):
            while sending.attempt is None or sending.attempt.received < 4:
                await asyncio.sleep(0.005)
        assert sending.attempt.answered
        go_on.set()
        assert (await task).body == b"fourmore"
        assert sending.attempt.received == 8
