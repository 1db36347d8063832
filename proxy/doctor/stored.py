"""State that the service keeps in the store, as far as the stages before the stage store use it.

Nothing of it is needed: where the store cannot be used, there is no stored state, and the stage store says why. A file
that does not exist is not made: it would belong to whoever runs the check.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from proxy import errors
from proxy.config import store_place
from proxy.doctor.inspection import Inspection
from proxy.stores import open as opening
from proxy.stores import sqlite_schema
from proxy.stores.protocols import Store

T = TypeVar("T")


async def use(inspection: Inspection, work: Callable[[Store], Awaitable[T]], default: T) -> T:
    """Return what `work` does with the store, or the default where the store cannot be used."""
    store = await _opened(inspection)
    if store is None:
        return default
    try:
        return await work(store)
    except errors.StoreUnavailable as error:
        # Not tried again: each attempt may last until a timeout.
        inspection.store, inspection.store_error = None, error
        return default


async def _opened(inspection: Inspection) -> Store | None:
    if not inspection.has_tried_store:
        inspection.has_tried_store = True
        inspection.store = await _open(inspection)
    return inspection.store


async def _open(inspection: Inspection) -> Store | None:
    address = inspection.settings.store
    file = store_place.file_of(address, inspection.environ)
    if address.reveal() == "memory:" or (file is not None and not await asyncio.to_thread(_is_current, file)):
        return None
    try:
        store = await opening.open_store(address, inspection.clock, inspection.environ)
    except errors.BridgeError:
        return None
    inspection.resources.push_async_callback(store.aclose)
    return store


def _is_current(file: Path) -> bool:
    """Return whether a file can be used as it is: to open one of an earlier version would convert it, perhaps under a
    service that is running."""
    try:
        return file.exists() and sqlite_schema.try_out(file) == sqlite_schema.VERSION
    except (sqlite3.Error, OSError):
        return False
