"""Fixtures for tests of shadowing: a manual clock, a store in memory, the metrics of a process."""

from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from proxy.kit.clock import ManualClock
from proxy.stores.open import MemoryStore
from proxy.telemetry.metrics import Metrics


@pytest.fixture
def clock() -> Any:
    return ManualClock()


@pytest.fixture
def store(clock: Any) -> Any:
    return MemoryStore(clock)


@pytest.fixture
def metrics(clock: Any) -> Any:
    return Metrics(CollectorRegistry(), clock)
