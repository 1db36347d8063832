"""Stage store: whether the state of workers and restarts can be kept where the configuration says.

A file that is missing is not made, and what is written is taken back in the same transaction.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from proxy import errors
from proxy.config import store_place
from proxy.doctor.findings import CheckResult, found, passed
from proxy.doctor.inspection import Inspection
from proxy.gateway.core import StoredState

SLOW_SECONDS = 0.25
_SQLITE = {
    "SQLITE_NOTADB": "store_damaged",
    "SQLITE_CORRUPT": "store_damaged",
    "SQLITE_BUSY": "store_busy",
    "SQLITE_LOCKED": "store_busy",
    "SQLITE_FULL": "store_disk_failed",
}
# By name: only proxy.store.redis imports the package. The specific ones come first, because the client wraps them.
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
    """Try the store out."""
    settings = inspection.settings
    file = store_place.file_of(settings.store)
    if settings.store.reveal() == "memory:":
        yield _memory(inspection)
    elif file is not None and await asyncio.to_thread(file.is_dir):
        yield found("store_unwritable", f"{file} is a folder", advice="name a file in it with store: sqlite:PATH")
    else:
        for finding in await _tried(inspection, file):
            yield finding


def _memory(inspection: Inspection) -> CheckResult:
    if inspection.is_embedded:
        return passed("store_memory", "in memory, because the embedded sandbox loses its state, too")
    return found("store_volatile", "usage and tokens are lost when the service stops")


async def _tried(inspection: Inspection, file: Path | None) -> list[CheckResult]:
    """Try out a file, or Redis, of which neither the address nor a message of its client is shown: they may have a
    password."""
    settings = inspection.settings
    try:
        if file is None and inspection.store_error is not None:
            raise inspection.store_error  # of an earlier stage: each attempt may last until a timeout
        trial = await StoredState.try_out(settings)
    except errors.ConfigError as error:
        return [found("redis_unreachable", error.message)]
    except errors.StoreUnavailable as error:
        if isinstance(error.__cause__, sqlite3.Error):
            return [found(_sqlite_code(error.__cause__), error.message)]
        return [_redis_failure(settings.store.shown, error)]
    if trial is None:
        return [] if file is None else [_place(file)]
    if trial.problem:
        return [found("store_of_other_program", trial.problem)]
    return [*_redis_settings(trial.settings), *_timed(trial.text, trial.seconds)]


def _place(file: Path) -> CheckResult:
    if (missing := store_place.missing_folder(file)) is not None:
        advice = f"correct the path, mount the disk, or make the folder: {store_place.make_command(missing)}"
        return found("store_folder_missing", f"{missing} does not exist", advice=advice)
    folder = next(folder for folder in file.parents if os.path.exists(folder))
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        return found("store_folder_unwritable", f"{file} does not exist and cannot be made in {folder}")
    return passed("store_new", f"{file} does not exist yet; the service will make it")


def _sqlite_code(error: sqlite3.Error) -> str:
    name = getattr(error, "sqlite_errorname", "")
    # A full disk is SQLITE_FULL, or one of the many SQLITE_IOERR_… where the files beside the database grow.
    return "store_disk_failed" if name.startswith("SQLITE_IOERR") else _SQLITE.get(name, "store_unwritable")


def _redis_failure(address: str, error: errors.StoreUnavailable) -> CheckResult:
    reasons = {type(cause).__name__ for cause in (error.__cause__, getattr(error.__cause__, "__cause__", None))}
    reason = next((name for name in _REDIS if name in reasons), type(error.__cause__).__name__)
    return found(_REDIS.get(reason, "redis_failed"), f"{address} cannot be used: {reason}")


def _redis_settings(info: Mapping[str, Any]) -> Iterator[CheckResult]:
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        yield found("redis_evicts", f"maxmemory-policy is {policy}, with which the service does not start")
    if not info.get("aof_enabled", 1):
        yield found("redis_not_durable", "appendonly is no, with which the service does not start")


def _timed(text: str, seconds: float) -> Iterator[CheckResult]:
    milliseconds = f"{seconds * 1000:.1f} ms a transaction"
    if seconds > SLOW_SECONDS:
        yield found("store_slow", f"{text}, {milliseconds}")
    else:
        yield passed("store_usable", f"{text}, writable, {milliseconds}")
