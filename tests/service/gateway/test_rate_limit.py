"""Tests of the rate limit of an API key: exact, and divided between workers."""

import random
from typing import Any

import pytest

from proxy import config, errors
from proxy.gateway import applications
from proxy.gateway.process import ProcessState
from proxy.kit import clock
from proxy.metrics import Metrics

KEYS = ("a", "b")


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock()


def state(time: clock.ManualClock, workers: int = 1) -> ProcessState:
    store: Any = None
    return ProcessState(store, time, random.Random(1), Metrics(time), workers)


@pytest.fixture
def served() -> Any:
    apikeys = tuple(config.ApiKeySettings(config.digest(key), rate=3) for key in KEYS)
    return applications.Applications({"demo": config.ApplicationSettings(apikeys=apikeys)})


def test_api_key_is_limited_in_any_second(served: Any, time: clock.ManualClock) -> None:
    limits, client = state(time), served.client("a")
    for _ in range(3):
        limits.admit(client)
        time.advance(0.2)
    with pytest.raises(errors.TooManyRequests, match="demo/1 may make no more than 3 requests") as refused:
        limits.admit(client)
    assert refused.value.retry_after == 1
    limits.admit(served.client("b"))
    time.advance(0.4)
    limits.admit(client)


@pytest.mark.parametrize("workers, admitted", [(2, 2), (3, 1), (9, 1)])
def test_each_worker_admits_its_part(served: Any, time: clock.ManualClock, workers: int, admitted: int) -> None:
    limits = state(time, workers)
    for _ in range(admitted):
        limits.admit(served.client("a"))
    with pytest.raises(errors.TooManyRequests):
        limits.admit(served.client("a"))
