"""Tests of the bounded state of wrong API keys, for any number of addresses."""

from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from proxy import config, errors
from proxy.gateway.core import Applications
from proxy.kit.clock import ManualClock
from proxy.metrics import Metrics
from proxy.seen import SeenRequests
from proxy.web import authentication, routing

KEY = "the-right-key"


@pytest.fixture
def keys() -> Any:
    served = Applications({"demo": config.ApplicationSettings(apikeys=(config.ApiKeySettings(config.digest(KEY)),))})
    clock = ManualClock()
    return authentication.Authenticator(served, 1, Metrics(clock), SeenRequests()), clock


@pytest.fixture
def addresses() -> routing.ClientAddressResolver:
    return routing.ClientAddressResolver(["127.0.0.1"])


def request(address: Any, addresses: Any) -> Any:
    class Transport:
        def get_extra_info(self, name: Any, default: Any = None) -> Any:
            return ("127.0.0.1", 1) if name == "peername" else default

    sent = make_mocked_request("GET", "/", headers={"X-Forwarded-For": address}, transport=Transport())
    sent[routing.STATE] = routing.RequestState(addresses.from_request(sent))
    return sent


def test_flood_from_many_addresses_replaces_those_that_were_counted_first(keys: Any, addresses: Any) -> None:
    guarded, _ = keys

    def guess(network: int, error: type[Exception]) -> None:
        with pytest.raises(error):
            guarded.client(request(f"2001:db8:{network:x}::1", addresses), "wrong")

    guess(0, errors.ForbiddenKey)
    guess(0, errors.TooManyRequests)
    for network in range(1, authentication.ADDRESSES_MAX + 1):
        guess(network, errors.ForbiddenKey)
    guess(network, errors.TooManyRequests)
    guess(0, errors.ForbiddenKey)


def test_right_end_of_a_long_header_is_read(addresses: Any) -> None:
    origin = request("1.1.1.1, " * 1500 + "192.0.2.1", addresses)[routing.STATE].origin
    assert origin.address == "192.0.2.1"


def test_used_key_is_remembered_for_a_limited_time(keys: Any, addresses: Any) -> None:
    guarded, clock = keys
    guarded.client(request("192.0.2.1", addresses), KEY)
    for number, works in enumerate((True, True, False)):
        with pytest.raises(errors.ForbiddenKey):
            guarded.client(request("192.0.2.1", addresses), "wrong")
        if works:
            assert guarded.client(request("192.0.2.1", addresses), KEY)
        else:
            with pytest.raises(errors.TooManyRequests):
                guarded.client(request("192.0.2.1", addresses), KEY)
        for more in range(1 + number):  # the first time it is still in use afterwards
            clock.advance(authentication.RECENT_SECONDS)
            guarded.client(request(f"192.0.2.{10 * number + more + 10}", addresses), KEY)
