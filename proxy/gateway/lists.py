"""Lists of brands, sellers, categories and specs: fetched whole, free of charge, and searched here.

A list is fetched when it is first needed, with the credentials of the application that needs it, and refreshed in the
background when it is older than a day. Where that fails the old list stays: it is better than none.
"""

import asyncio
import gc
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from proxy import errors
from proxy.gateway.batches import Send
from proxy.kit.clock import Clock
from proxy.kit.single_flight import SingleFlight
from proxy.mapping.tables import Tables
from proxy.planning.listing import FRESH_SECONDS, Listing
from proxy.planning.operations import PartialData
from proxy.planning.projection_cache import ATTRIBUTES, ListDefinition
from proxy.upstream.identity import Credentials

PAUSE_SECONDS = 60.0  # until the next refresh, after one that failed or returned a list that may be incomplete
SHRUNK = 0.5  # of the entries before: a list with fewer may be incomplete

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A list, when it is to be refreshed, and until when a list half its size counts as incomplete, in the clock's
    monotonic seconds."""

    listing: Any
    due: float
    doubted_until: float


class Lists:
    """Lists of one upstream, by the name of their v3 object. Fetching one may take `seconds`."""

    def __init__(self, definitions: Mapping[str, ListDefinition], send: Send, clock: Clock, seconds: float) -> None:
        self._definitions = definitions
        self._send = send
        self._clock = clock
        self._seconds = seconds
        self._kept: dict[str, _Kept] = {}
        self._flights: SingleFlight[tuple[str, Credentials], Any] = SingleFlight("list")

    def adopt(self, replaced: "Lists") -> None:
        """Take over the lists of those that these replace: of the same upstream, and the same mappings."""
        self._kept |= replaced._kept

    async def listing(self, name: str, credentials: Credentials, deadline: float) -> Listing:
        """Return the list of `name` objects, which the caller waits for until `deadline` (monotonic seconds).

        Raises the errors of Sender.send if there is no list yet.
        """
        listing: Listing = await self._list(name, credentials, deadline)
        return listing

    async def specs(self, credentials: Credentials, deadline: float) -> Tables:
        """Return the tables with all specs that upstream has. Raises the same errors as `listing`."""
        tables: Tables = await self._list(ATTRIBUTES, credentials, deadline)
        return tables

    async def aclose(self) -> None:
        """Cancel what is under way."""
        await self._flights.close()

    async def _list(self, name: str, credentials: Credentials, deadline: float) -> Any:
        kept, now = self._kept.get(name), self._clock.monotonic()
        if kept is None:
            try:
                return await self._flights.run(
                    (name, credentials), lambda: self._fetch(name, credentials), deadline - now
                )
            except TimeoutError:
                raise errors.DeadlineExceeded(f"no list of the service's for {name} in time") from None
            except errors.BridgeError as error:
                raise error.shared() from None
        if now >= kept.due:
            # The request gets the old list meanwhile: brands and categories change slowly.
            self._flights.start((name, credentials), lambda: self._refresh(name, credentials, kept))
        return kept.listing

    async def _refresh(self, name: str, credentials: Credentials, kept: _Kept) -> None:
        try:
            await self._fetch(name, credentials)
        except Exception as error:  # whatever it is, the list at hand is better than none
            log.warning("list refresh failed", list=name, exc_info=error)
            self._kept[name] = replace(kept, due=self._clock.monotonic() + PAUSE_SECONDS)

    async def _fetch(self, name: str, credentials: Credentials) -> Any:
        """Fetch a list, and return the one to use."""
        definition = self._definitions[name]
        data: Any = await self._send(definition.document.operation({}, 0), credentials, self._seconds)
        data, reported = (data.data, data.reported) if isinstance(data, PartialData) else (data, ())
        try:
            # In a thread: tens of thousands of entries would block the event loop.
            listing = await asyncio.to_thread(definition.build, data)
            # A list lives for a day: without this every full collection would walk through it.
            gc.freeze()
        except ValueError as error:
            raise errors.UpstreamUnreadable("a list of the upstream cannot be translated") from error
        if isinstance(listing, Listing) and listing.skipped:
            log.warning("list entries skipped", list=name, entries=listing.skipped)
        self._kept[name] = kept = self._chosen(name, listing, len(reported))
        return kept.listing

    def _chosen(self, name: str, listing: Any, failures: int) -> _Kept:
        """Choose the list to use: one that may be incomplete is refreshed soon, and does not replace a complete one.

        It may be incomplete where errors came with it, where it is empty, or where it has shrunk by half. One that
        stays small is believed when the list before has lived twice as long as usual.
        """
        before, now = self._kept.get(name), self._clock.monotonic()
        entries, previous = len(listing), len(before.listing) if before else 0
        shrunk = entries < SHRUNK * previous and before is not None and now < before.doubted_until
        if not (failures or not entries or shrunk):
            return _Kept(listing, now + FRESH_SECONDS, now + 2 * FRESH_SECONDS)
        log.warning("incomplete list received", list=name, entries=entries, previous_entries=previous, errors=failures)
        if before is None or (entries >= previous and not failures):
            return _Kept(listing, now + PAUSE_SECONDS, now)
        return replace(before, due=now + PAUSE_SECONDS)
