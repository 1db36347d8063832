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
from proxy.doctor.findings import CheckResult
from proxy.doctor.inspection import Diagnosis, Inspection, passed
from proxy.stores import cache_ring, sqlite_schema
from proxy.stores import open as opening

STORE_VOLATILE = Diagnosis(
    "store_volatile",
    "store: memory: forgets usage and tokens at each restart, so that limits begin from zero",
    "set store: sqlite, or an address of Redis for several machines",
    "warning",
)
FOLDER_MISSING = Diagnosis(
    "store_folder_missing",
    "the path of store: sqlite:PATH is mistyped, or its disk is not mounted; the service does not start",
    "correct the path, mount the disk, or make the folder: mkdir -p FOLDER",
)
FOLDER_UNWRITABLE = Diagnosis(
    "store_folder_unwritable",
    "the store's file cannot be made, because this user must not write to the folder",
    "let the user that runs v3bridge write to it (chown), or choose another place with store: sqlite:PATH",
)
UNWRITABLE = Diagnosis(
    "store_unwritable",
    "the store's file belongs to another user, or is on a disk that is read-only",
    "run v3bridge as the same user as before, or give the file to this one (chown)",
)
DAMAGED = Diagnosis(
    "store_damaged",
    "the file is no SQLite database, or a damaged one",
    "restore it from a backup, or move it away: usage of the current month is then unknown, so set lower limits",
)
BUSY = Diagnosis(
    "store_busy",
    "another program holds a write transaction for seconds, such as a backup or an SQLite shell",
    "end that program; fuser FILE shows it",
)
DISK_FAILED = Diagnosis(
    "store_disk_failed",
    "the disk of the store is full, or has a failure",
    "free space on the disk (df FOLDER shows it), or put the store on another one with store: sqlite:PATH",
)
OTHER_VERSION = Diagnosis(
    "store_of_other_version",
    "the file was made by another version of v3bridge",
    "install that version again, or choose another file with store: sqlite:PATH",
)
SQLITE_OLD = Diagnosis(
    "sqlite_old", "the SQLite library of this Python is too old", "use a newer Python, or Redis as the store"
)
CACHE_UNWRITABLE = Diagnosis(
    "cache_file_unwritable",
    "the file of the shared cache belongs to another user",
    "delete the file, or give it to the user that runs v3bridge (chown)",
    "warning",
)
REDIS_UNREACHABLE = Diagnosis(
    "redis_unreachable",
    "Redis does not run, the address is wrong or another program's, or a firewall is between",
    "check with: redis-cli -u ADDRESS ping",
)
REDIS_REFUSED = Diagnosis(
    "redis_refused",
    "Redis wants another user or password, or does not let this user use the keys {v3bridge}:*",
    "correct user and password in the address: redis://USER:PASSWORD@HOST:PORT/0",
)
REDIS_READ_ONLY = Diagnosis(
    "redis_read_only", "the address is that of a replica, which cannot be written to", "use the address of the primary"
)
REDIS_FAILED = Diagnosis(
    "redis_failed",
    "Redis responds, but cannot be used: it is loading, out of memory, cannot write to its disk, or has no "
    "database of that number",
    "look at the log of Redis, and check the number of the database at the end of the address",
)
REDIS_EVICTS = Diagnosis(
    "redis_evicts",
    "Redis deletes keys when its memory is full, and with them the usage, so that limits are exceeded",
    "set maxmemory-policy noeviction in Redis, with maxmemory well above cache.shared_bytes",
    "warning",
)
REDIS_NOT_DURABLE = Diagnosis(
    "redis_not_durable",
    "Redis does not write to a file what it is told, so that its crash loses usage",
    "set appendonly yes in Redis",
    "warning",
)
SLOW = Diagnosis(
    "store_slow",
    "each booking waits for the store, and the store takes long: a slow disk, or Redis on another continent",
    "move the store nearer: a local disk, or Redis in the same data center",
    "warning",
)

SLOW_SECONDS = 0.25
TRIES = 3  # transactions that are timed; the fastest counts
_SQLITE = {
    "SQLITE_NOTADB": DAMAGED,
    "SQLITE_CORRUPT": DAMAGED,
    "SQLITE_BUSY": BUSY,
    "SQLITE_LOCKED": BUSY,
    "SQLITE_FULL": DISK_FAILED,
}
# By name: only proxy.stores.redis imports the package. The specific ones come first, because the client wraps them.
_REDIS = {
    "AuthenticationError": REDIS_REFUSED,
    "AuthorizationError": REDIS_REFUSED,
    "NoPermissionError": REDIS_REFUSED,
    "ReadOnlyError": REDIS_READ_ONLY,
    "ConnectionError": REDIS_UNREACHABLE,
    "InvalidResponse": REDIS_UNREACHABLE,  # another program, such as a web server
    "TimeoutError": REDIS_UNREACHABLE,
}


async def check(inspection: Inspection) -> AsyncIterator[CheckResult]:
    """Try the store out, and the file of the shared cache beside it."""
    settings = inspection.settings
    file = opening.file_of(settings.store, inspection.environ)
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
    return STORE_VOLATILE.finding("usage and tokens are lost when the service stops")


def _file(file: Path, environ: Mapping[str, str]) -> Iterator[CheckResult]:
    """Check the file of an SQLite store, or the place where it will be made."""
    if sqlite3.sqlite_version_info < sqlite_schema.LIBRARY:
        needed = ".".join(map(str, sqlite_schema.LIBRARY))
        yield SQLITE_OLD.finding(f"SQLite {needed} or later is needed, this Python has {sqlite3.sqlite_version}")
    elif os.path.isdir(file):
        yield UNWRITABLE.finding(f"{file} is a folder", advice="name a file in it with store: sqlite:PATH")
    elif not os.path.exists(file):
        yield _place(file, environ)
    else:
        yield from _existing(file)
        cache = cache_ring.beside(file)
        if os.path.exists(cache) and not os.access(cache, os.R_OK | os.W_OK):
            yield CACHE_UNWRITABLE.finding(f"{cache} cannot be read and written: nothing is shared between workers")
        elif os.path.exists(cache):
            yield passed("cache_file", f"{cache}: the shared cache, {cache.stat().st_size / 1e6:.1f} MB")


def _place(file: Path, environ: Mapping[str, str]) -> CheckResult:
    if (missing := opening.missing_folder(file, environ)) is not None:
        advice = f"correct the path, mount the disk, or make the folder: {opening.make_command(missing)}"
        return FOLDER_MISSING.finding(f"{missing} does not exist", advice=advice)
    folder = next(folder for folder in file.parents if os.path.exists(folder))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        return FOLDER_UNWRITABLE.finding(f"{file} does not exist and cannot be made in {folder}")
    return passed("store_new", f"{file} does not exist yet; the service will make it")


def _existing(file: Path) -> Iterator[CheckResult]:
    seconds = []
    try:
        for _ in range(TRIES):
            began = time.monotonic()
            version = sqlite_schema.try_out(file)
            seconds.append(time.monotonic() - began)
    except sqlite3.Error as error:
        yield _of_sqlite(error).finding(f"{file} cannot be used: {error}")
        return
    if version not in (0, sqlite_schema.VERSION):
        yield OTHER_VERSION.finding(f"{file} {sqlite_schema.other_version(version)}")
        return
    yield from _timed(f"{file}: schema {version}", min(seconds))


def _of_sqlite(error: sqlite3.Error) -> Diagnosis:
    name = getattr(error, "sqlite_errorname", "")
    # A full disk is SQLITE_FULL, or one of the many SQLITE_IOERR_… where the files beside the database grow.
    return DISK_FAILED if name.startswith("SQLITE_IOERR") else _SQLITE.get(name, UNWRITABLE)


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
        return [_REDIS.get(reason, REDIS_FAILED).finding(f"{address} cannot be used: {reason}")]
    except errors.ConfigError as error:
        return [REDIS_UNREACHABLE.finding(error.message)]
    return [*_redis_settings(info), *_timed(f"{address}: Redis {info.get('redis_version', '?')}", min(seconds))]


def _redis_settings(info: dict[str, Any]) -> Iterator[CheckResult]:
    policy = info.get("maxmemory_policy", "noeviction")
    # volatile-* evicts only keys with an expiry, which the ledger has none of.
    if info.get("maxmemory") and policy.startswith("allkeys"):
        yield REDIS_EVICTS.finding(f"maxmemory-policy is {policy}")
    if not info.get("aof_enabled", 1):
        yield REDIS_NOT_DURABLE.finding("appendonly is no")


def _timed(text: str, seconds: float) -> Iterator[CheckResult]:
    milliseconds = f"{seconds * 1000:.1f} ms a transaction"
    if seconds > SLOW_SECONDS:
        yield SLOW.finding(f"{text}, {milliseconds}")
    else:
        yield passed("store_usable", f"{text}, writable, {milliseconds}")
