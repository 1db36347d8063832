"""Opens the store that the setting `store` names, and the shared cache beside it."""

import os
from collections.abc import Mapping
from pathlib import Path

from proxy import config, errors
from proxy.kit import extras
from proxy.kit.clock import Clock
from proxy.stores import cache_ring
from proxy.stores.cache_file import CacheFile
from proxy.stores.memory import MemoryStore
from proxy.stores.protocols import CacheStore, Store
from proxy.stores.sqlite import SqliteStore

REDIS_MISSING = f"store: Redis needs another package; {extras.install_line('redis')}"


async def open_store(url: config.StoreUrl, clock: Clock, environ: Mapping[str, str] = os.environ) -> Store:
    """Open a store, to be closed by the caller. Raises ConfigError. Redis is connected to when it is first needed."""
    text = url.reveal()
    if text == "memory:":
        return MemoryStore(clock)
    if (file := file_of(url, environ)) is not None:
        return await SqliteStore.open(file, clock)
    try:
        # Imported here only: the package is an extra (redis).
        from proxy.stores.redis import RedisStore
    except ImportError as error:
        raise errors.ConfigError(REDIS_MISSING) from error
    return RedisStore(text, clock)


def open_cache(
    url: config.StoreUrl, size: int, lease: float, clock: Clock, environ: Mapping[str, str] = os.environ
) -> CacheStore | None:
    """Open the shared cache of `size` bytes, to be closed by the caller; None for a store in memory, which nobody
    shares. Files and Redis are used when first needed; `lease`: seconds that a claim outlives its owner at most."""
    text = url.reveal()
    if text == "memory:":
        return None
    if (file := file_of(url, environ)) is not None:
        return CacheFile(cache_ring.beside(file), size, clock)
    try:
        from proxy.stores.redis import RedisCache
    except ImportError as error:
        raise errors.ConfigError(REDIS_MISSING) from error
    return RedisCache(text, size, lease, clock)


def has_machines(url: config.StoreUrl) -> bool:
    """Return whether several machines can use the store: those in memory and in a file have one."""
    return url.reveal() != "memory:" and file_of(url) is None


def default_file(environ: Mapping[str, str]) -> Path:
    """Return where `sqlite` without a path keeps its file (XDG Base Directory Specification)."""
    home = environ.get("XDG_STATE_HOME", "")
    # the specification has a relative path ignored
    state = Path(home) if home.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".local" / "state"
    return state / "v3bridge" / "state.sqlite"


def file_of(url: config.StoreUrl, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file of an SQLite store; None for another store."""
    scheme, _, path = url.reveal().partition(":")
    if scheme != "sqlite":
        return None
    return Path(path) if path else default_file(environ)
