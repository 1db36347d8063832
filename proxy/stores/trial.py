"""Trial of a store: whether the service could use it. Makes nothing, and takes back what it writes."""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from proxy import config, errors
from proxy.config import store_place
from proxy.kit.clock import Clock
from proxy.stores import cache_file, sqlite_schema

TRIES = 3  # transactions that are timed; the fastest counts


class Trial(NamedTuple):
    """What a store is, without credentials, and the seconds of a transaction. `problem` says why its content cannot be
    used. `settings` are those of Redis (INFO), `cache` is the file of the shared cache beside a file."""

    text: str
    seconds: float
    problem: str = ""
    settings: Mapping[str, Any] = {}
    cache: Path | None = None


async def try_out(url: config.StoreUrl, clock: Clock) -> Trial | None:
    """Try a store out that is not in memory; return None for a file that is not there yet. Raises ConfigError, and
    StoreUnavailable, whose cause is the error of sqlite3 or of the client of Redis."""
    file = store_place.file_of(url)
    return await _redis(url, clock) if file is None else await _file(file)


async def _file(file: Path) -> Trial | None:
    if sqlite3.sqlite_version_info < sqlite_schema.LIBRARY:
        needed = ".".join(map(str, sqlite_schema.LIBRARY))
        raise errors.ConfigError(f"SQLite {needed} or later is needed, this Python has {sqlite3.sqlite_version}")
    if not await asyncio.to_thread(file.exists):
        return None
    core = store_place.core_file(file)
    try:
        _, seconds = await _timed(lambda: asyncio.to_thread(sqlite_schema.try_out, file))
        version = await asyncio.to_thread(sqlite_schema.try_out, core) if core.exists() else 0
    except sqlite3.Error as error:
        raise errors.StoreUnavailable(f"{file} cannot be used: {error}") from error
    is_usable = version in (0, sqlite_schema.VERSION)
    problem = "" if is_usable else f"{core} {sqlite_schema.other_version(version)}"
    return Trial(str(file), seconds, problem, cache=cache_file.beside(core))


async def _redis(url: config.StoreUrl, clock: Clock) -> Trial:
    from proxy.stores.redis import RedisStore

    redis = RedisStore(url.reveal(), clock)
    try:
        info, seconds = await _timed(redis.try_out)
    finally:
        await redis.aclose()
    return Trial(f"{url.shown}: Redis {info.get('redis_version', '?')}", seconds, settings=info)


async def _timed(attempt: Callable[[], Awaitable[Any]]) -> tuple[Any, float]:
    """Return the result of an attempt, and the seconds of the fastest one."""
    seconds = []
    for _ in range(TRIES):
        began = time.monotonic()
        result = await attempt()
        seconds.append(time.monotonic() - began)
    return result, min(seconds)
