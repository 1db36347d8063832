"""What is sent again, and the circuit breaker, with a manual clock."""

import io
import json
import random
from typing import Any

import pytest

from proxy import errors
from proxy import metrics as metering
from proxy.kit import clock as clocks
from proxy.upstream import sending


@pytest.mark.parametrize(
    "error, is_safe",
    [
        (errors.UpstreamUnreachable("no connection"), True),
        (errors.TooManyRequests("slow down"), True),
        (errors.TokenLimit("wait"), True),
        (errors.UpstreamUnreachable("no answer", may_be_billed=True), False),
        (errors.UpstreamUnreadable("of the identity service"), False),
        (errors.QuotaExhausted("spent", retry_after=1), False),
        (errors.CircuitBreakerOpen("open", retry_after=1), False),
        (errors.StoreUnavailable("away"), False),
        (errors.ServerError("a mistake in the program"), False),
    ],
)
def test_only_unbilled_requests_are_retryable(error: Any, is_safe: bool) -> None:
    assert sending.is_retryable(error) is is_safe


def is_open(breaker: sending.CircuitBreaker) -> bool:
    try:
        breaker.admit()
    except errors.CircuitBreakerOpen:
        return True
    return False


def test_circuit_breaker_opens_after_failures_in_a_row(
    make_breaker: Any, clock: clocks.ManualClock, metrics: metering.Metrics
) -> None:
    breaker = make_breaker(failures=3)
    for report in (breaker.failed, breaker.failed, breaker.succeeded, breaker.failed, breaker.failed):
        report()
    assert (is_open(breaker), breaker.state) == (False, sending.CLOSED)
    breaker.failed()
    assert (is_open(breaker), breaker.state) == (True, sending.OPEN)
    assert 'v3bridge_circuit_breaker_state{service="graphql"} 1.0' in metrics.text().decode()
    clock.advance(1.5)
    breaker.failed()  # of a request that was in flight: it does not extend the cooldown
    with pytest.raises(errors.CircuitBreakerOpen) as found:
        breaker.admit()
    assert found.value.message == "the GraphQL service is not asked for the moment: it failed 4 times in a row"
    assert (found.value.status, found.value.retry_after, found.value.may_be_billed) == (503, 4, False)


def test_open_circuit_breaker_admits_one_request_a_cooldown_until_one_succeeds(
    make_breaker: Any, clock: clocks.ManualClock, metrics: metering.Metrics, log_output: io.StringIO
) -> None:
    breaker = make_breaker(failures=2)
    assert [is_open(breaker) for _ in range(2)] == [False, False]
    breaker.failed()
    breaker.failed()
    for ends in (breaker.failed, lambda: None, breaker.succeeded):  # one that was cancelled reports nothing
        clock.advance(5)
        assert [is_open(breaker) for _ in range(3)] == [False, True, True]
        assert breaker.state == sending.OPEN
        ends()
        assert is_open(breaker) is (ends != breaker.succeeded)
    assert breaker.state == sending.CLOSED
    assert 'v3bridge_circuit_breaker_state{service="graphql"} 0.0' in metrics.text().decode()
    events = [json.loads(line)["event"] for line in log_output.getvalue().splitlines()]
    assert events == ["circuit breaker opened", "circuit breaker closed"]


def test_cooldowns_are_spread_by_jitter(make_breaker: Any, clock: clocks.ManualClock) -> None:
    breakers = [make_breaker(failures=1, rng=random.Random(seed)) for seed in range(100)]
    for breaker in breakers:
        breaker.failed()
    clock.advance(5)
    assert all(map(is_open, breakers))
    clock.advance(1.25)
    assert 30 < sum(map(is_open, breakers)) < 70
    clock.advance(1.25 + 5 * 1.5)
    assert not any(map(is_open, breakers))
