"""Tests of clearing the response cache of all processes by a note in the store."""

from typing import Any

import pytest

from proxy import errors
from proxy.gateway.cache import clearing
from proxy.gateway.cache.lookup import QueryCache
from proxy.kit.clock import ManualClock
from proxy.stores.open import MemoryStore
from proxy.telemetry.metrics import Metrics


class _Cache(QueryCache):
    """Caches of a process that records what it clears."""

    def __init__(self, shared: Any = None) -> None:
        self.cleared: list[str | None] = []
        super().__init__(None, None, Metrics(), shared)

    def clear(self, application: str | None) -> None:
        self.cleared.append(application)


class _Worker(clearing.CacheClearing):
    """A process with such caches."""

    def __init__(self, store: Any) -> None:
        self.cache = _Cache()
        self.cleared = self.cache.cleared
        super().__init__(store, self.cache)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(ManualClock())


async def test_each_worker_clears_once_what_is_noted_after_its_start(store: MemoryStore) -> None:
    await clearing.note_clearing(store, "before")
    workers = _Worker(store), _Worker(store)
    for worker in workers:
        await worker.refresh()
    await clearing.note_clearing(store, "demo")
    await clearing.note_clearing(store, None)
    for worker in (*workers, *workers):
        await worker.refresh()
    assert [sorted(map(str, worker.cleared)) for worker in workers] == [["None", "demo"]] * 2
    await clearing.note_clearing(store, "demo")
    await workers[0].refresh()
    assert workers[0].cleared[-1] == "demo"


async def test_store_that_is_unavailable_at_the_start_clears_nothing_later(store: MemoryStore) -> None:
    class Away:
        is_away = True

        async def notes(self, kind: str) -> dict[str, str]:
            if self.is_away:
                raise errors.StoreUnavailable("away")
            return await store.notes(kind)

    await clearing.note_clearing(store, "demo")
    away = Away()
    worker = _Worker(away)
    await worker.start()
    away.is_away = False
    await worker.refresh()
    assert worker.cleared == []
    await clearing.note_clearing(store, "demo")
    await worker.refresh()
    assert worker.cleared == ["demo"]
    await worker.close()


async def test_what_was_refreshed_is_noted_once_the_shared_cache_has_it(store: MemoryStore) -> None:
    steps: list[Any] = []

    class Shared:
        async def flush(self) -> None:
            steps.append(dict(await store.notes(clearing.NOTES)))

    class Failing:
        async def put_note(self, kind: str, owner: str, text: str) -> None:
            raise errors.StoreUnavailable("away")

    cache = _Cache(Shared())
    cache.note_refresh("demo")
    with pytest.raises(errors.StoreUnavailable):
        await clearing.CacheClearing(Failing(), cache).refresh()  # type: ignore[arg-type]
    other = _Worker(store)
    await other.refresh()
    await clearing.CacheClearing(store, cache).refresh()
    assert steps == [{}, {}]
    await other.refresh()
    assert other.cleared == ["demo"]
    assert not cache.refreshed
