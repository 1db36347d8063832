"""Tests of the bounded state of wrong API keys, for any number of addresses."""

import ipaddress
import random
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from proxy import config, errors
from proxy.gateway import Applications
from proxy.gateway.process import ADDRESSES_MAX, ProcessState
from proxy.gateway.recording import SeenRequests
from proxy.kit.clock import ManualClock
from proxy.metrics import Metrics
from proxy.web import authentication, middleware

KEY = "the-right-key"
TRUSTED = (ipaddress.ip_network("127.0.0.1"),)


@pytest.fixture
def keys() -> Any:
    served = Applications({"demo": config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.digest(KEY)),))})
    clock, listen = ManualClock(), SimpleNamespace(failed_auth_per_minute=1)
    # Without `admit`: no request is counted against a rate of 0.
    gateway: Any = SimpleNamespace(
        applications=served,
        metrics=Metrics(clock),
        clock=clock,
        settings=SimpleNamespace(listen=listen),
        process=ProcessState(mock.Mock(), clock, random.Random(1), Metrics(clock)),
        admit=None,
    )
    nowhere: Any = None
    return authentication.Authenticator(gateway, SeenRequests(nowhere)), clock


def request(address: str) -> Any:
    origin = middleware.client_address(TRUSTED, "127.0.0.1", address)
    return SimpleNamespace(headers={}, origin=origin, added={})


def use(guarded: authentication.Authenticator, address: str) -> None:
    sent = request(address)
    guarded.admit(sent, guarded.client(sent, KEY))


def test_flood_from_many_addresses_replaces_those_that_were_counted_first(keys: Any) -> None:
    guarded, _ = keys

    def guess(network: int, error: type[Exception]) -> None:
        with pytest.raises(error):
            guarded.client(request(f"2001:db8:{network:x}::1"), "wrong")

    guess(0, errors.ForbiddenKey)
    guess(0, errors.TooManyRequests)
    for network in range(1, ADDRESSES_MAX + 1):
        guess(network, errors.ForbiddenKey)
    guess(network, errors.TooManyRequests)
    guess(0, errors.ForbiddenKey)


def test_right_end_of_a_long_header_is_read() -> None:
    assert request("1.1.1.1, " * 1500 + "192.0.2.1").origin.address == "192.0.2.1"


def test_used_key_is_remembered_for_a_limited_time(keys: Any) -> None:
    guarded, clock = keys
    use(guarded, "192.0.2.1")
    for number, works in enumerate((True, True, False)):
        with pytest.raises(errors.ForbiddenKey):
            guarded.client(request("192.0.2.1"), "wrong")
        if works:
            use(guarded, "192.0.2.1")
        else:
            with pytest.raises(errors.TooManyRequests):
                use(guarded, "192.0.2.1")
        for more in range(1 + number):  # the first time it is still in use afterwards
            clock.advance(authentication.RECENT_SECONDS)
            use(guarded, f"192.0.2.{10 * number + more + 10}")
