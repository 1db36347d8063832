"""Fixtures: gateways that have what alerts read, on one store, with a manual clock."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from proxy import config
from proxy.gateway.assembly import Gateway
from proxy.kit import clock
from proxy.stores.memory import MemoryStore
from proxy.telemetry import metrics

MakeGateway = Callable[..., Gateway]


class QuietQuota:
    """Quotas of which nothing is to be said, until a test changes a field."""

    def __init__(self) -> None:
        self.store_available = True
        self.usage: list[Any] = []
        self.refusals: dict[Any, Any] = {}
        self.exhaustions: list[Any] = []

    def usages(self) -> list[Any]:
        return self.usage

    def refused(self, account: Any) -> Any:
        return self.refusals.get(account)

    def exhausted(self) -> list[Any]:
        return self.exhaustions


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture
def store(time: clock.ManualClock) -> MemoryStore:
    return MemoryStore(time)


@pytest.fixture
def make_gateway(time: clock.ManualClock, store: MemoryStore) -> MakeGateway:
    """A gateway of one process; `alerts` are settings, a second gateway has the same store."""

    def make(**alerts: Any) -> Gateway:
        fields = {
            "settings": config.Config(applications={}, alerts=config.AlertSettings(**alerts)),
            "clock": time,
            "metrics": metrics.Metrics(CollectorRegistry(), time),
            "store": store,
            "quota": QuietQuota(),
            "applications": SimpleNamespace(applications={}),
            "services": SimpleNamespace(tokens=None),
        }
        return cast(Gateway, SimpleNamespace(**fields))

    return make
