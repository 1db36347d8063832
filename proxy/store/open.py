"""Opens the store that the setting `store` names: `memory:`, `sqlite`, `sqlite:PATH` or an address of Redis."""

from proxy import config, errors, kit
from proxy.kit.clock import Clock
from proxy.store.sqlite import SqliteStore
from proxy.store.store import Store


async def open_store(url: config.StoreUrl, clock: Clock, *, worker: str, cache_bytes: int) -> Store:
    """Open a store, to be closed by the caller. `worker`: a name that no other process has at the same time;
    `cache_bytes`: that results and parts may have. Raises ConfigError, and StartError where it cannot be used now."""
    try:
        file = url.file
        if file is not None or url.reveal() == "memory:":
            return await SqliteStore.open(file, clock, worker, cache_bytes)
        # Imported here only: the package is an extra (redis).
        from proxy.store.redis import RedisStore

        return await RedisStore.open(url.reveal(), clock, worker, cache_bytes)
    except errors.StoreUnavailable as error:
        raise errors.StartError(f"store: {error}") from error
    except ImportError as error:
        raise errors.ConfigError(f"store: Redis needs another package; {kit.install_line('redis')}") from error
