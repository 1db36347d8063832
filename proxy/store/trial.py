"""Trial of a store: whether the service could use it. Makes nothing, and takes back what it writes."""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from proxy import config, errors
from proxy.config import store_place
from proxy.store import sqlite_file

R = TypeVar("R")

TRIES = 3  # transactions that are timed; the fastest counts


class Trial(NamedTuple):
    """What a store is, without credentials, and the seconds of a transaction. `problem` says why its content cannot be
    used. `settings` are those of Redis (INFO)."""

    text: str
    seconds: float
    problem: str = ""
    settings: Mapping[str, Any] = {}


async def try_out(url: config.StoreUrl) -> Trial | None:
    """Try a store out that is not in memory; return None for a file that is not there yet. Raises ConfigError, and
    StoreUnavailable, whose cause is the error of sqlite3 or of the client of Redis."""
    file = store_place.file_of(url)
    if file is None:
        from proxy.store import redis

        info, seconds = await _timed(lambda: redis.try_out(url.reveal()))
        return Trial(f"{url.shown}: Redis {info.get('redis_version', '?')}", seconds, settings=info)
    if not await asyncio.to_thread(file.exists):
        return None
    try:
        version, seconds = await _timed(lambda: asyncio.to_thread(sqlite_file.try_out, file))
    except sqlite3.Error as error:
        raise errors.StoreUnavailable(f"{file} cannot be used: {error}") from error
    return Trial(str(file), seconds, "" if version else f"{file} has other tables than the store's")


async def is_current(file: Path) -> bool:
    """Return whether a file can be used as it is: to open one of another version would convert it, perhaps under a
    service that is running."""
    with contextlib.suppress(sqlite3.Error):
        return await asyncio.to_thread(sqlite_file.try_out, file) == sqlite_file.VERSION
    return False


async def _timed(attempt: Callable[[], Awaitable[R]]) -> tuple[R, float]:
    """Return the result of an attempt, and the seconds of the fastest one."""
    seconds = []
    for _ in range(TRIES):
        began = time.monotonic()
        result = await attempt()
        seconds.append(time.monotonic() - began)
    return result, min(seconds)
