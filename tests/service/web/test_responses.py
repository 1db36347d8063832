"""Cache of encoded responses: found until they expire, bounded by bytes."""

from types import SimpleNamespace
from typing import Any

import pytest
from multidict import CIMultiDict

from proxy import config
from proxy.gateway.core import Applications, Client, ResponseMetadata
from proxy.kit.clock import ManualClock
from proxy.v3.encoding import EncodedBody
from proxy.web.responses import ENTRY_BYTES, EncodedResponse, EncodedResponses

KEY = config.ApiKeySettings(config.digest("a-key"))
APPLICATION = config.ApplicationSettings(
    apikeys=(KEY,), client_id=config.ClientId("an-id"), client_secret=config.Secret("s3cret")
)


@pytest.fixture
def client() -> Client:
    return Applications({"demo": APPLICATION}).client("a-key")


def response(client: Client, until: float, size: int = 100, source: str = "hit") -> EncodedResponse:
    metadata = ResponseMetadata(0.0)
    metadata.until, metadata.source = until, source
    return EncodedResponse(EncodedBody(b"x" * size, {}), client, "/target", metadata)


def request(target: str = "/target", **headers: str) -> Any:
    sent = CIMultiDict({name.replace("_", "-"): headers[name] for name in headers})
    return SimpleNamespace(raw_path=target, headers=sent)


def test_response_is_found_until_it_expires_or_all_are_forgotten(client: Client) -> None:
    clock = ManualClock()
    cache = EncodedResponses(10_000, clock)
    stored = response(client, clock.monotonic() + 10)
    cache.add(request(), stored)
    assert cache.get(request()) == stored
    others = request("/other"), request(Accept_Encoding="gzip"), request(token="another-key")
    assert [cache.get(each) for each in (*others, request(Cache_Control="no-cache"))] == [None] * 4
    cache.clear()
    assert cache.get(request()) is None
    cache.add(request(), stored)
    clock.advance(11)
    assert cache.get(request()) is None


@pytest.mark.parametrize("source", ["miss", "shared", "stale", None])
def test_only_hits_are_stored(client: Client, source: str) -> None:
    cache = EncodedResponses(10_000, ManualClock())
    cache.add(request(), response(client, 1e9, source=source))
    assert cache.get(request()) is None


def test_least_recently_used_goes_where_bytes_are_exceeded(client: Client) -> None:
    clock = ManualClock()
    size = (ENTRY_BYTES + 1_007) * 5 // 2
    cache = EncodedResponses(size, clock)
    for number in range(3):
        cache.add(request(f"/{number}"), response(client, clock.monotonic() + 10, size=1_000))
        cache.get(request("/0"))
    cache.add(request("/too-long"), response(client, clock.monotonic() + 10, size=10_000))
    kept = [number for number in ("0", "1", "2", "too-long") if cache.get(request(f"/{number}"))]
    assert kept == ["0", "2"]
