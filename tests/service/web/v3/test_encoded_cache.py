"""Cache of encoded responses: what it holds is bounded, and bytes that ask for an entry find it while it lasts."""

import pytest

from proxy import config
from proxy.gateway.applications import Applications, Client
from proxy.gateway.response_metadata import ResponseMetadata
from proxy.kit.clock import ManualClock
from proxy.v3.encoding import EncodedBody
from proxy.web.v3 import encoded_cache
from proxy.web.v3.encoded_cache import EncodedResponse, EncodedResponseCache, RequestLabels

KEY = config.ApiKeySettings(config.digest("a-key"))
APPLICATION = config.ApplicationSettings(
    apikeys=(KEY,), client_id=config.ClientId("an-id"), client_secret=config.Secret("s3cret")
)

LABELS = RequestLabels("/v3/parts/match", "/v3/parts/match?apikey=…", "a-client/1.0", "192.0.2.1")


@pytest.fixture
def client() -> Client:
    return Applications({"demo": APPLICATION}).all[0]


def response(client: Client, until: float = 10.0, size: int = 100) -> EncodedResponse:
    metadata = ResponseMetadata(0.0)
    metadata.until = until
    return EncodedResponse(EncodedBody(b"x" * size, {}), "HTTP/1.1 200 OK\r\n", client, metadata)


def test_bytes_find_the_entry_that_they_ask_for_until_it_expires(client: Client) -> None:
    clock = ManualClock()
    cache = EncodedResponseCache(10_000, clock)
    entry = response(client, clock.monotonic() + 10)
    cache.store("/target", True, entry)
    cache.link(b"GET /target", "/target", True, LABELS)
    found = cache.find(b"GET /target")
    assert found is not None
    assert (found[0].labels, found[1]) == (LABELS, entry)
    assert cache.find(b"GET /other") is None
    assert cache.get("/target", False) is None
    clock.advance(11)
    assert cache.find(b"GET /target") is None


def test_evicted_entry_is_not_found_by_its_bytes(client: Client) -> None:
    clock = ManualClock()
    cache = EncodedResponseCache(2_000, clock)
    cache.store("/first", False, response(client, clock.monotonic() + 10))
    cache.link(b"first", "/first", False, LABELS)
    cache.store("/second", False, response(client, clock.monotonic() + 10, size=1_000))
    assert cache.find(b"first") is None


def test_number_of_known_request_heads_is_bounded(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoded_cache, "HEADS_MAX", 10)
    clock = ManualClock()
    cache = EncodedResponseCache(10_000, clock)
    cache.store("/target", False, response(client, clock.monotonic() + 10))
    for number in range(25):
        cache.link(b"%d" % number, "/target", False, LABELS)
    assert [number for number in range(25) if cache.find(b"%d" % number)] == list(range(15, 25))
