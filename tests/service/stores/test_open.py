"""Tests of opening a store from its setting."""

import sys
from pathlib import Path
from typing import Any

import pytest

from proxy import config, errors
from proxy.config import store_place
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
    assert (tmp_path / "own.sqlite").exists()


async def test_sqlite_without_path_is_in_the_state_directory(tmp_path: Path, manual_clock: clock.ManualClock) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    await (await opening.open_store(config.StoreUrl("sqlite"), manual_clock, environ)).aclose()
    assert (tmp_path / "state" / "v3bridge" / "state.sqlite").exists()
    modes = [(tmp_path / folder).stat().st_mode & 0o777 for folder in ("state", "state/v3bridge")]
    assert modes == [0o700, 0o700]


async def test_missing_folder_of_an_own_path_is_refused_with_the_command_that_makes_it(
    tmp_path: Path, manual_clock: clock.ManualClock
) -> None:
    url = config.StoreUrl(f"sqlite:{tmp_path}/not mounted/state.sqlite")
    with pytest.raises(errors.ConfigError, match=f"mkdir -p '{tmp_path}/not mounted'$"):
        await opening.open_store(url, manual_clock)
    with pytest.raises(errors.ConfigError, match="mkdir -p"):
        opening.open_cache(url, 2**20, 0.0, manual_clock)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("state", [{}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}])
def test_state_directory_defaults_to_home(state: Any) -> None:
    assert store_place.state_folder({"HOME": "/ada", **state}) == Path("/ada/.local/state/v3bridge")


async def test_missing_redis_package_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, manual_clock: clock.ManualClock
) -> None:
    monkeypatch.setitem(sys.modules, "proxy.stores.redis", None)
    with pytest.raises(errors.ConfigError, match=r"pip install '\.\[redis\]'"):
        await opening.open_store(config.StoreUrl("redis://localhost"), manual_clock)
