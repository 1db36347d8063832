"""Tests of opening a store from its setting."""

import sys
from pathlib import Path

import pytest

from proxy import config, errors
from proxy.kit import clock
from proxy.stores import open as opening
from proxy.stores.open import MemoryStore
from proxy.stores.redis import RedisStore
from proxy.stores.sqlite import SqliteStore


@pytest.mark.parametrize("url", ["redis://localhost:1/0", "rediss://:word@localhost:1/0", "unix:///nowhere.sock"])
async def test_redis_url_opens_without_a_request(url: str, manual_clock: clock.ManualClock) -> None:
    store = await opening.open_store(config.StoreUrl(url), manual_clock)
    assert isinstance(store, RedisStore)
    await store.aclose()


async def test_memory_and_sqlite_stores_are_opened(tmp_path: Path, manual_clock: clock.ManualClock) -> None:
    assert isinstance(await opening.open_store(config.StoreUrl("memory:"), manual_clock), MemoryStore)
    store = await opening.open_store(config.StoreUrl(f"sqlite:{tmp_path}/own.sqlite"), manual_clock)
    assert isinstance(store, SqliteStore)
    await store.aclose()
    assert (tmp_path / "own.sqlite.core").exists()


async def test_missing_redis_package_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, manual_clock: clock.ManualClock
) -> None:
    monkeypatch.setitem(sys.modules, "proxy.stores.redis", None)
    with pytest.raises(errors.ConfigError, match=r"pip install '\.\[redis\]'"):
        await opening.open_store(config.StoreUrl("redis://localhost"), manual_clock)
