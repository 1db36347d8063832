"""Fixtures: gateways on one store, with a manual clock."""

import functools
from collections.abc import Callable

import pytest
from support import alert_gateway

from proxy.gateway.assembly import Gateway
from proxy.kit import clock
from proxy.stores.open import MemoryStore

MakeGateway = Callable[..., Gateway]


@pytest.fixture
def time() -> clock.ManualClock:
    return clock.ManualClock()


@pytest.fixture
def store(time: clock.ManualClock) -> MemoryStore:
    return MemoryStore(time)


@pytest.fixture
def make_gateway(time: clock.ManualClock, store: MemoryStore) -> MakeGateway:
    """Makes a gateway of one process; all of them have the same store."""
    return functools.partial(alert_gateway.make, time, store)
