"""Cache of encoded responses: found until they expire, bounded by bytes."""

import pytest

from proxy import config
from proxy.gateway.core import Applications, Client, ResponseMetadata
from proxy.kit.clock import ManualClock
from proxy.v3.encoding import EncodedBody
from proxy.web.v3.encoded_cache import ENTRY_BYTES, EncodedResponse, EncodedResponseCache

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
    return EncodedResponse(EncodedBody(b"x" * size, {}), client, metadata)


def test_response_is_found_until_it_expires_or_all_are_forgotten(client: Client) -> None:
    clock = ManualClock()
    cache = EncodedResponseCache(10_000, clock)
    stored = response(client, clock.monotonic() + 10)
    cache.add("/target", True, stored)
    assert (cache.get("/target", True), cache.get("/target", False), cache.get("/other", True)) == (stored, None, None)
    cache.clear()
    assert (cache.get("/target", True), cache.usage()) == (None, (0, 0))
    cache.add("/target", True, stored)
    clock.advance(11)
    assert (cache.get("/target", True), cache.usage()) == (None, (0, 0))


@pytest.mark.parametrize("source", ["miss", "shared", "stale", None])
def test_only_hits_are_stored(client: Client, source: str) -> None:
    cache = EncodedResponseCache(10_000, ManualClock())
    cache.add("/target", True, response(client, 1e9, source=source))
    assert cache.get("/target", True) is None


def test_least_recently_used_goes_where_bytes_are_exceeded(client: Client) -> None:
    clock = ManualClock()
    size = (ENTRY_BYTES + 1_000) * 5 // 2
    cache = EncodedResponseCache(size, clock)
    for number in range(3):
        cache.add(f"/{number}", False, response(client, clock.monotonic() + 10, size=1_000))
        cache.get("/0", False)
    cache.add("/too long", False, response(client, clock.monotonic() + 10, size=10_000))
    kept = [number for number in ("0", "1", "2", "too long") if cache.get(f"/{number}", False)]
    assert kept == ["0", "2"]
    assert cache.usage() == (2, 2 * (ENTRY_BYTES + 1_000))
