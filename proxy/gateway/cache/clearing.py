"""Clearing of the response cache while the service runs, in all workers and machines that use the same store.

What is to be cleared is noted in the store; each process looks for new notes twice a second. What one process has
refreshed is noted at its next look, once the shared cache has it, and found at the next look of the others: within a
second.
"""

import secrets
from collections.abc import Mapping

import structlog

from proxy import errors
from proxy.gateway.cache.lookup import QueryCache
from proxy.kit.periodic import PeriodicTask
from proxy.stores.protocols import NoteStore

NOTES = "cache cleared"  # kind of the notes; the owner is the application
ALL = "*"  # owner of the note for all applications, whose names begin with a letter or a digit
LOOK_SECONDS = 0.5

log = structlog.get_logger()


async def note_clearing(store: NoteStore, application: str | None) -> None:
    """Let every process clear the entries of an application, or all, in its memory. Raises StoreUnavailable."""
    await store.put_note(NOTES, application or ALL, secrets.token_hex(8))


class CacheClearing:
    """Task that clears the memory of this process of what new notes name, and notes what was refreshed here."""

    def __init__(self, store: NoteStore, cache: QueryCache) -> None:
        self._store = store
        self._cache = cache
        self._known: Mapping[str, str] | None = None  # notes that were there before, or are done
        self._looking = PeriodicTask(
            "cache clearing", self.refresh, LOOK_SECONDS, delay=LOOK_SECONDS, logged=errors.StoreUnavailable
        )

    async def start(self) -> None:
        """Read the notes that are there already, and start to look for new ones."""
        await self._looking.call()
        self._looking.start()

    async def close(self) -> None:
        """Stop the task."""
        await self._looking.close()

    async def refresh(self) -> None:
        """Note what was refreshed here, and clear what new notes name. Raises StoreUnavailable."""
        if self._cache.shared is not None and self._cache.refreshed:
            await self._cache.shared.flush()  # else the others would read the older form there again
        while self._cache.refreshed:
            application = self._cache.refreshed.pop()
            try:
                await note_clearing(self._store, application)
            except errors.StoreUnavailable:
                self._cache.refreshed.add(application)
                raise
        notes = await self._store.notes(NOTES)
        # What was cleared before this process began, its memory never had.
        known, self._known = notes if self._known is None else self._known, notes
        for application, mark in notes.items():
            if known.get(application) != mark:
                self._cache.clear(None if application == ALL else application)
                log.info("response cache cleared", application="all" if application == ALL else application)
