"""Opens the store that the setting `store` names: `memory:`, `sqlite`, `sqlite:PATH` or an address of Redis."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from proxy import errors
from proxy.kit import extras
from proxy.kit.clock import Clock
from proxy.store.protocol import Store
from proxy.store.sqlite import SqliteStore


async def open_store(
    url: str,
    clock: Clock,
    *,
    worker: str,
    cache_bytes: int,
    config_file: Path,
    environ: Mapping[str, str] = os.environ,
) -> Store:
    """Open a store, to be closed by the caller. `worker`: a name that no other process has at the same time;
    `cache_bytes`: that results and parts may have. Raises ConfigError."""
    try:
        if url.startswith(("redis:", "rediss:", "unix:")):
            return await _open_redis(url, clock, worker, cache_bytes)
        return await SqliteStore.open(_file(url, config_file, environ), clock, worker, cache_bytes)
    except errors.StoreUnavailable as error:
        raise errors.ConfigError(f"store: {error}") from error


async def _open_redis(url: str, clock: Clock, worker: str, cache_bytes: int) -> Store:
    try:
        # Imported here only: the package is an extra (redis).
        from proxy.store.redis import RedisStore
    except ImportError as error:
        raise errors.ConfigError(f"store: Redis needs another package; {extras.install_line('redis')}") from error
    return await RedisStore.open(url, clock, worker, cache_bytes)


def default_file(config_file: Path, environ: Mapping[str, str]) -> Path:
    """Return the file of `sqlite` without a path: systemd's state directory, else beside the configuration file, with
    its name."""
    folder = environ.get("STATE_DIRECTORY", "").partition(":")[0]
    return Path(folder or config_file.parent, config_file.name).with_suffix(".sqlite")


def _file(url: str, config_file: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the file of a store, whose folder exists; None for a store in memory. Raises ConfigError."""
    scheme, _, path = url.partition(":")
    if scheme == "memory":
        return None
    file = Path(path) if path else default_file(config_file, environ)
    if not file.parent.is_dir():
        # A mistyped path, or a disk that is not mounted: a new store would know no usage.
        command = f"mkdir -p {shlex.quote(str(file.parent))}"
        raise errors.ConfigError(f"store: the folder of {file} does not exist; mount its disk, or make it: {command}")
    return file
