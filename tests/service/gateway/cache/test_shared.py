"""Tests of the shared cache on a store that can fail and hang: look-ups, claims, isolation and bounds."""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from support import running_proxy

from proxy import config, errors, model
from proxy.gateway.applications import Application
from proxy.gateway.cache import shared
from proxy.gateway.cache.cached_records import CachedRecords
from proxy.gateway.cache.entries import CacheKey
from proxy.gateway.cache.shared_keys import namespace
from proxy.kit import clock
from proxy.stores.protocols import CacheLookup, CacheRecord, CacheUsage
from proxy.telemetry import metrics
from proxy.upstream.auth import identity

FIELDS = frozenset({"mpn:mpn"})
CONTEXT = model.MappingContext("US", "USD")
SETTINGS = config.CacheSettings(seconds=60, stale_seconds=600)


def application(
    name: str = "demo", id_: str = "an-id", secret: str = "a-secret", country: str = "US", plan: Iterable[str] = ()
) -> Application:
    credentials = identity.Credentials(name, config.ClientId(id_), config.Secret(secret))
    return Application(name, credentials, model.MappingContext(country, "USD"), frozenset(plan))


def query(*parts: Any) -> CacheKey:
    return CacheKey(("demo", *parts), CONTEXT)


def records(stored: float, content: bytes = b'[{"mpn":"X"}]', details: Any = None) -> list[CachedRecords]:
    return [CachedRecords(FIELDS, content, 7, details, stored)]


class DictionaryCache:
    """A cache store in a dictionary, one for several workers. `away`: every operation fails; `hanging`: none ends."""

    def __init__(self) -> None:
        self.entries: dict[bytes, CacheRecord] = {}
        self.claims: dict[bytes, DictionaryCache] = {}
        self.operations: list[str] = []
        self.released: list[bytes] = []
        self.renewed: list[bytes] = []
        self.away = self.hanging = False

    async def _operate(self, name: str) -> None:
        self.operations.append(name)
        await asyncio.sleep(3600 if self.hanging else 0)
        if self.away:
            raise errors.StoreUnavailable("the store is away")

    async def look_up(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> list[CacheLookup]:
        await self._operate("look_up")
        found = []
        for key in keys:
            entry = self.entries.get(key)
            is_fresh = entry is not None and entry.stored >= fresh_from
            claimed = claim and not is_fresh and self.claims.setdefault(key, self) is self
            found.append(CacheLookup(entry and entry.content, claimed))
        return found

    def look_up_now(self, keys: Sequence[bytes], fresh_from: float, claim: bool) -> None:
        return None

    async def renew(self, keys: Sequence[bytes]) -> None:
        self.renewed += keys

    async def put(self, records: Sequence[CacheRecord]) -> None:
        await self._operate("put")
        self.entries |= {record.key: record for record in records}
        await self.release([record.key for record in records])

    async def release(self, keys: Sequence[bytes]) -> None:
        if self.away:
            raise errors.StoreUnavailable("the store is away")
        self.released += keys
        for key in keys:
            if self.claims.get(key) is self:
                del self.claims[key]

    async def cache_usage(self) -> list[CacheUsage]:
        return []

    async def clear(self, application: str | None) -> int:
        return 0

    async def aclose(self) -> None:
        self.operations.append("aclose")

    def another(self) -> "DictionaryCache":
        """The same store, as another worker sees it."""
        other = DictionaryCache()
        other.entries, other.claims = self.entries, self.claims
        return other


@pytest.fixture
def store() -> DictionaryCache:
    return DictionaryCache()


@pytest.fixture
def counts(time: clock.ManualClock) -> metrics.Metrics:
    return metrics.Metrics(time)


Opens = Callable[..., shared.SharedCache]


@pytest.fixture
async def open_cache(counts: metrics.Metrics) -> AsyncIterator[Opens]:
    opened: list[shared.SharedCache] = []

    def open_(store: DictionaryCache, scope: bytes = b"scope", *, claims: bool = True) -> shared.SharedCache:
        opened.append(shared.SharedCache(store, SETTINGS, scope, claims=claims, metrics=counts))
        return opened[-1]

    yield open_
    for each in opened:
        await each.close()


@pytest.fixture
def cache(open_cache: Opens, store: DictionaryCache) -> shared.SharedCache:
    return open_cache(store)


def key_of(cache: shared.SharedCache, *parts: object) -> bytes:
    key = cache.key(application(), query(*parts))
    assert key is not None
    return key


async def stored(store: DictionaryCache, *keys: bytes) -> None:
    async with asyncio.timeout(10):
        while not store.entries.keys() >= set(keys) or store.claims:
            await asyncio.sleep(0.005)


async def test_cancelled_look_up_leaves_no_claim(
    cache: shared.SharedCache, store: DictionaryCache, open_cache: Opens
) -> None:
    key = key_of(cache, 1)
    task = asyncio.create_task(cache.look_up([key]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(10):
        while not store.released:
            await asyncio.sleep(0.005)
    assert (await open_cache(store.another()).look_up([key]))[0].claimed


async def test_failing_store_is_left_alone_and_reported_once(
    cache: shared.SharedCache,
    store: DictionaryCache,
    time: clock.ManualClock,
    counts: metrics.Metrics,
    log_output: io.StringIO,
) -> None:
    store.away, key = True, key_of(cache, 1)
    for _ in range(3):
        assert await cache.look_up([key]) == [shared.NOTHING]
    cache.put(application(), key_of(cache, 1), records(time.now()))
    assert store.operations == ["look_up"]
    time.advance(shared.COOLDOWN)
    await cache.look_up([key])
    store.away = False
    time.advance(shared.COOLDOWN)
    assert (await cache.look_up([key]))[0].claimed
    assert store.operations == ["look_up"] * 3
    failures = counts.registry.get_sample_value("v3bridge_shared_cache_failures_total", {"operation": "look_up"})
    assert failures == 2
    events = [json.loads(line)["event"] for line in log_output.getvalue().splitlines()]
    assert events == ["shared cache suspended", "shared cache resumed"]


async def test_hanging_store_delays_one_group_of_requests(
    cache: shared.SharedCache, store: DictionaryCache, monkeypatch: pytest.MonkeyPatch, log_output: io.StringIO
) -> None:
    monkeypatch.setattr(shared, "LOOK_UP_TIMEOUT", 0.01)
    store.hanging = True
    for number in range(20):
        assert await cache.look_up([key_of(cache, number)]) == [shared.NOTHING]
    assert store.operations == ["look_up"]
    assert log_output.getvalue().count("shared cache suspended") == 1


HUGE = b"\x28\xb5\x2f\xfd\xe0" + (1 << 50).to_bytes(8, "little") + b"\x01\x00\x00"  # zstd that states 1 PiB


@pytest.mark.parametrize("content", [b"", b"no zstd", b"\x28\xb5\x2f\xfd\x00", HUGE])
async def test_unreadable_entry_is_a_miss(
    cache: shared.SharedCache, store: DictionaryCache, time: clock.ManualClock, content: bytes, log_output: io.StringIO
) -> None:
    key = key_of(cache, 1)
    store.entries[key] = CacheRecord(key, "demo", time.now(), time.now() + 60, content)
    assert await cache.look_up([key]) == [shared.NOTHING]  # and not busy: nobody executes it
    assert (await cache.look_up([key], claim_fresh=True))[0].claimed
    assert "shared cache entry ignored" in log_output.getvalue()


async def test_damaged_entry_is_never_read_as_another(
    cache: shared.SharedCache, store: DictionaryCache, time: clock.ManualClock
) -> None:
    key, prices = key_of(cache, 1), b",".join(b'{"price":%d.%d}' % (n * 37, n) for n in range(20))
    cache.put(application(), key_of(cache, 1), records(time.now(), b"[" + prices + b"]"))
    await stored(store, key)
    entry = store.entries[key]
    for position in range(len(entry.content)):
        damaged = bytearray(entry.content)
        damaged[position] ^= 1
        store.entries[key] = entry._replace(content=bytes(damaged))
        assert (await cache.look_up([key]))[0].records in ([], records(time.now(), b"[" + prices + b"]"))


async def test_writes_that_fail_while_look_ups_succeed_are_reported_once(
    cache: shared.SharedCache,
    store: DictionaryCache,
    time: clock.ManualClock,
    log_output: io.StringIO,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a full disk."""

    async def put(_: Sequence[CacheRecord]) -> None:
        raise errors.StoreUnavailable("the disk is full")

    async def store_one(number: int) -> None:
        await cache.look_up([key_of(cache, number)])
        cache.put(application(), key_of(cache, number), records(time.now()))
        await stored(store)
        time.advance(shared.COOLDOWN)

    with monkeypatch.context() as patch:
        patch.setattr(store, "put", put)
        for number in range(3):
            await store_one(number)
    await store_one(4)
    await stored(store, key_of(cache, 4))
    events = [json.loads(line)["event"] for line in log_output.getvalue().splitlines()]
    assert events == ["shared cache suspended", "shared cache resumed"]


async def test_entries_that_are_not_stored_in_time_leave_no_claim(
    cache: shared.SharedCache, store: DictionaryCache, time: clock.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "WRITE_TIMEOUT", 0.01)
    await cache.look_up([key_of(cache, 1)])
    store.hanging = True
    cache.put(application(), key_of(cache, 1), records(time.now()))
    await stored(store)
    assert store.released == [key_of(cache, 1)]


async def test_waiting_entries_are_bounded(
    cache: shared.SharedCache, store: DictionaryCache, time: clock.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared, "QUEUE_MAX", 1000)
    content = json.dumps(["x" * 400]).encode()
    for number in range(10):
        cache.put(application(), key_of(cache, number), records(time.now(), content))
    await cache.close()
    assert set(store.entries) == {key_of(cache, 0), key_of(cache, 1)}


async def test_result_that_cannot_be_encoded_leaves_no_claim(
    cache: shared.SharedCache, store: DictionaryCache, time: clock.ManualClock
) -> None:
    keys = [key_of(cache, number) for number in (1, 2)]
    await cache.look_up(keys)
    cache.put(application(), key_of(cache, 1), records(time.now(), details=object()))
    cache.put(application(), key_of(cache, 2), records(time.now()))
    await stored(store, keys[1])
    assert list(store.entries) == [keys[1]]


async def test_lease_of_a_claim_is_renewed_while_its_owner_works(
    cache: shared.SharedCache, store: DictionaryCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But not for ever, because a request may hang."""
    monkeypatch.setattr(shared, "RENEW_SECONDS", 0.01)
    monkeypatch.setattr(shared, "RENEWALS_MAX", 5)
    keys = [key_of(cache, number) for number in range(2)]
    cache.start()
    await cache.look_up(keys)
    cache.release(keys[1:])
    async with asyncio.timeout(10):
        while store.renewed.count(keys[0]) < 5:
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)
    assert store.renewed.count(keys[0]) == 5 > store.renewed.count(keys[1])


def test_upstreams_have_separate_entries() -> None:
    def scope(**changes: Any) -> bytes:
        upstream = config.UpstreamSettings(
            **{"graphql_url": "https://one/graphql", "token_url": "https://one", **changes}
        )
        return namespace(running_proxy.settings("https://one/graphql", "https://one"), upstream)

    others = [{}, {"graphql_url": "https://two/graphql"}, {"site": "altium"}, {"scope": "other.domain"}]
    assert len({scope(**each) for each in others}) == len(others)


APPLICATIONS = st.builds(
    application,
    name=st.sampled_from(["demo", "other"]),
    id_=st.sampled_from(["id", "id\0", "i"]),
    secret=st.sampled_from(["", "d", "secret"]),
    country=st.sampled_from(["US", "DE"]),
    plan=st.sets(st.sampled_from(["TECH_SPECS", "DATASHEETS"])),
)
QUERIES = st.lists(st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.text('ab"\\,', max_size=3)), max_size=4)


@given(pairs=st.lists(st.tuples(APPLICATIONS, QUERIES, st.sampled_from([b"one", b"two"])), min_size=2, max_size=2))
@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_keys_are_equal_only_for_the_same_application_and_query(
    open_cache: Opens, pairs: list[tuple[Application, list[Any], bytes]]
) -> None:
    identities, keys = [], []
    for app, parts, scope in pairs:
        cache = open_cache(DictionaryCache(), scope)
        keys.append(cache.key(app, CacheKey(tuple(parts), CONTEXT)))
        secret = app.credentials.client_secret
        identities.append(
            (
                *(app.name, app.credentials.client_id, secret and secret.reveal()),
                *(app.context, app.features, json.dumps(parts), scope),
            )
        )
    assert (keys[0] == keys[1]) == (identities[0] == identities[1])


async def test_key_of_text_that_json_cannot_hold_is_none(cache: shared.SharedCache) -> None:
    assert cache.key(application(), query("\udc80")) is None


async def test_peek_finds_what_was_flushed_and_claims_nothing(
    cache: shared.SharedCache, store: DictionaryCache, time: clock.ManualClock
) -> None:
    await cache.flush()  # nothing to store
    known, unknown = key_of(cache, "known"), key_of(cache, "unknown")
    cache.put(application(), known, records(time.now()))
    await cache.flush()
    assert list(store.entries) == [known]
    found, missing = await cache.peek([known, unknown])
    assert [len(found), missing] == [1, []]
    assert store.claims == {}
    assert await cache.peek([]) == []


async def test_peek_tries_a_store_again_that_has_just_failed(
    cache: shared.SharedCache, store: DictionaryCache, time: clock.ManualClock
) -> None:
    known = key_of(cache, "known")
    cache.put(application(), known, records(time.now()))
    await cache.flush()
    store.away = True
    assert await cache.peek([known]) == [[]]
    store.away = False
    assert len((await cache.peek([known]))[0]) == 1


async def test_close_stores_what_waits_until_the_end_of_its_oldest_selection(
    cache: shared.SharedCache, store: DictionaryCache, time: clock.ManualClock
) -> None:
    cache.start()
    key, now = key_of(cache, 1), time.now()
    cache.put(application(), key, [*records(now), *records(now - 50)])
    await cache.close()
    assert [(entry.stored, entry.until) for entry in store.entries.values()] == [(now, now - 50 + SETTINGS.lifetime)]
    assert store.operations[-1] == "aclose"
