"""What the shadow's rooms are tested with: a clock that stands, a store in memory, the metrics of a process."""

import pytest
from prometheus_client import CollectorRegistry

from proxy.kit.clock import ManualClock
from proxy.stores.memory import MemoryStore
from proxy.telemetry.metrics import Metrics


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(clock):
    return MemoryStore(clock)


@pytest.fixture
def metrics(clock):
    return Metrics(CollectorRegistry(), clock)
