"""Stage store: whether the state of workers and restarts can be kept where the configuration says.

A file that is missing is not made, and what is written is taken back in the same transaction.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from proxy import errors
from proxy.config import store_place
from proxy.doctor.findings import CheckResult, found, passed
from proxy.doctor.inspection import Inspection
from proxy.stores import cache_file, sqlite_schema

SLOW_SECONDS = 0.25
TRIES = 3  # transactions that are timed; the fastest counts
_SQLITE = {
    "SQLITE_NOTADB": "store_damaged",
    "SQLITE_CORRUPT": "store_damaged",
    "SQLITE_BUSY": "store_busy",
    "SQLITE_LOCKED": "store_busy",
    "SQLITE_FULL": "store_disk_failed",
}
# By name: only proxy.stores.redis imports the package. The specific ones come first, because the client wraps them.
_REDIS = {
    "AuthenticationError": "redis_refused",
    "AuthorizationError": "redis_refused",
    "NoPermissionError": "redis_refused",
    "ReadOnlyError": "redis_read_only",
    "ConnectionError": "redis_unreachable",
    "InvalidResponse": "redis_unreachable",  # another program, such as a web server
    "TimeoutError": "redis_unreachable",
}


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Try the store out, and the file of the shared cache beside it."""
    settings = inspection.settings
    file = store_place.file_of(settings.store, inspection.environ)
    if file is not None:
        for finding in await asyncio.to_thread(lambda: list(_file(file, inspection.environ))):
            yield finding
    elif settings.store.reveal() == "memory:":
        yield _memory(inspection)
    else:
        for finding in await _redis(inspection):
            yield finding


def _memory(inspection: Inspection) -> CheckResult:
    if inspection.is_embedded:
        return passed("store_memory", "in memory, because the embedded sandbox loses its state, too")
    return found("store_volatile", "usage and tokens are lost when the service stops")


def _file(file: Path, environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check the file of an SQLite store, or the place where it will be made."""
    if sqlite3.sqlite_version_info < sqlite_schema.LIBRARY:
        needed = ".".join(map(str, sqlite_schema.LIBRARY))
        yield found("sqlite_old", f"SQLite {needed} or later is needed, this Python has {sqlite3.sqlite_version}")
    elif os.path.isdir(file):
        yield found("store_unwritable", f"{file} is a folder", advice="name a file in it with store: sqlite:PATH")
    elif not os.path.exists(file):
        yield _place(file, environ)
    else:
        yield from _existing(file)
        cache = cache_file.beside(file)
        if os.path.exists(cache) and not os.access(cache, os.R_OK | os.W_OK):
            yield found(
                "cache_file_unwritable", f"{cache} cannot be read and written: nothing is shared between workers"
            )
        elif os.path.exists(cache):
            yield passed("cache_file", f"{cache}: the shared cache, {cache.stat().st_size / 1e6:.1f} MB")


def _place(file: Path, environ: Mapping[str, str]) -> CheckResult:
    if (missing := store_place.missing_folder(file, environ)) is not None:
        advice = f"correct the path, mount the disk, or make the folder: {store_place.make_command(missing)}"
        return found("store_folder_missing", f"{missing} does not exist", advice=advice)
    folder = next(folder for folder in file.parents if os.path.exists(folder))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        return found("store_folder_unwritable", f"{file} does not exist and cannot be made in {folder}")
    return passed("store_new", f"{file} does not exist yet; the service will make it")


def _existing(file: Path) -> Iterator[CheckResult]:
    seconds = []
    try:
        for _ in range(TRIES):
            began = time.monotonic()
            version = sqlite_schema.try_out(file)
            seconds.append(time.monotonic() - began)
    except sqlite3.Error as error:
        yield found(_sqlite_code(error), f"{file} cannot be used: {error}")
        return
    if version not in (0, sqlite_schema.VERSION):
        yield found("store_of_other_version", f"{file} {sqlite_schema.other_version(version)}")
        return
    yield from _timed(f"{file}: schema {version}", min(seconds))


def _sqlite_code(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    # A full disk is SQLITE_FULL, or one of the many SQLITE_IOERR_… where the files beside the database grow.
    return "store_disk_failed" if name.startswith("SQLITE_IOERR") else _SQLITE.get(name, "store_unwritable")


async def _redis(inspection: Inspection) -> list[CheckResult]:
    """Check Redis. Neither its address nor a message of its client is shown: they may hold a password."""
    from proxy.stores.redis import RedisStore

    address = inspection.settings.store.shown
    seconds = []
    try:
        if inspection.store_error is not None:
            raise inspection.store_error  # of an earlier stage: each attempt may last until a timeout
        redis = RedisStore(inspection.settings.store.reveal(), inspection.clock)
        inspection.resources.push_async_callback(redis.aclose)
        for _ in range(TRIES):
            began = time.monotonic()
            info = await redis.try_out()
            seconds.append(time.monotonic() - began)
    except errors.StoreUnavailable as error:
        reasons = {type(cause).__name__ for cause in (error.__cause__, getattr(error.__cause__, "__cause__", None))}
        reason = next((name for name in _REDIS if name in reasons), type(error.__cause__).__name__)
        return [found(_REDIS.get(reason, "redis_failed"), f"{address} cannot be used: {reason}")]
    except errors.ConfigError as error:
        return [found("redis_unreachable", error.message)]
    return [*_redis_settings(info), *_timed(f"{address}: Redis {info.get('redis_version', '?')}", min(seconds))]


def _redis_settings(info: dict[str, Any]) -> Iterator[CheckResult]:
    policy = info.get("maxmemory_policy", "noeviction")
    # volatile-* evicts only keys with an expiry, which the ledger has none of.
    if info.get("maxmemory") and policy.startswith("allkeys"):
        yield found("redis_evicts", f"maxmemory-policy is {policy}")
    if not info.get("aof_enabled", 1):
        yield found("redis_not_durable", "appendonly is no")


def _timed(text: str, seconds: float) -> Iterator[CheckResult]:
    milliseconds = f"{seconds * 1000:.1f} ms a transaction"
    if seconds > SLOW_SECONDS:
        yield found("store_slow", f"{text}, {milliseconds}")
    else:
        yield passed("store_usable", f"{text}, writable, {milliseconds}")
