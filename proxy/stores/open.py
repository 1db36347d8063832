"""Opens the store that the setting `store` names."""

import os
from collections.abc import Mapping
from pathlib import Path

from proxy import config, errors
from proxy.kit.clock import Clock
from proxy.stores.memory import MemoryStore
from proxy.stores.protocols import Store
from proxy.stores.sqlite import SqliteStore


async def open_store(url: config.StoreUrl, clock: Clock, environ: Mapping[str, str] = os.environ) -> Store:
    """Open a store, to be closed by the caller. Raises ConfigError. Redis is connected to when it is first needed."""
    text = url.reveal()
    scheme, _, path = text.partition(":")
    if scheme == "memory":
        return MemoryStore(clock)
    if scheme == "sqlite":
        return await SqliteStore.open(Path(path) if path else default_file(environ), clock)
    try:
        from proxy.stores.redis import RedisStore
    except ImportError as error:
        raise errors.ConfigError("store: Redis needs another package: pip install 'v3bridge[redis]'") from error
    return RedisStore(text, clock)


def default_file(environ: Mapping[str, str]) -> Path:
    """Return where `sqlite` without a path keeps its file (XDG Base Directory Specification)."""
    home = environ.get("XDG_STATE_HOME", "")
    # the specification has a relative path ignored
    state = Path(home) if home.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".local" / "state"
    return state / "v3bridge" / "state.sqlite"
