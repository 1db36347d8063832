"""Lists of brands, sellers, categories and specs: fetched whole, free of charge, and searched here.

A list is fetched when it is first needed, with the credentials of the application that needs it, and refreshed in the
background when it is older than a day. Where that fails the old list stays: it is better than none.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import structlog

from proxy import errors, model
from proxy.kit import garbage
from proxy.kit.clock import Clock
from proxy.kit.single_flight import SingleFlight
from proxy.mapping.tables import Tables
from proxy.planning.listing import Listing
from proxy.planning.operations import PartialData
from proxy.planning.projection_cache import ATTRIBUTES, ListDefinition
from proxy.upstream.auth.identity import Credentials
from proxy.upstream.graphql import GraphQLClient

PAUSE_SECONDS = 60.0  # until the next refresh, after one that failed or returned a list that may be incomplete
SHRUNK = 0.5  # of the entries before: a list with fewer may be incomplete

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _CachedList:
    """A list, when it is to be refreshed, and until when a list half its size counts as incomplete, in the clock's
    monotonic seconds."""

    listing: Any
    due: float
    doubted_until: float


class Directory:
    """Lists of one upstream, by the name of their v3 object. They are refreshed after `seconds`; a request has
    `total_seconds` to wait for one."""

    def __init__(
        self,
        list_definitions: dict[str, ListDefinition],
        upstream: GraphQLClient,
        seconds: float,
        total_seconds: float,
        clock: Clock,
    ) -> None:
        self._definitions = list_definitions
        self._upstream = upstream
        self._seconds = seconds
        self._total_seconds = total_seconds
        self._clock = clock
        self._lists: dict[str, _CachedList] = {}
        self._flights: SingleFlight[tuple[str, Credentials], Any] = SingleFlight("listing")

    def adopt(self, replaced: "Directory") -> None:
        """Take over the lists of a directory that this one replaces: of the same upstream, and the same mappings."""
        self._lists |= replaced._lists

    async def listing(self, name: str, credentials: Credentials, since: float) -> Listing:
        """Return the list of `name` objects, within the time that began at `since`, in the clock's monotonic seconds.

        Raises the errors of GraphQLClient if there is no list yet.
        """
        listing: Listing = await self._list(name, credentials, since)
        return listing

    async def specs(self, credentials: Credentials, since: float) -> Tables:
        """Return the tables with all specs that upstream has. Raises the same errors as `listing`."""
        tables: Tables = await self._list(ATTRIBUTES, credentials, since)
        return tables

    async def _list(self, name: str, credentials: Credentials, since: float) -> Any:
        cached = self._lists.get(name)
        if cached is None:
            return await self._fetch_first(name, credentials, since)
        if self._clock.monotonic() >= cached.due:
            # The request gets the old list meanwhile: brands and categories change slowly.
            self._flights.start((name, credentials), lambda: self._refresh(name, credentials, cached))
        return cached.listing

    async def close(self) -> None:
        """Cancel fetches in flight."""
        await self._flights.close()

    async def _fetch_first(self, name: str, credentials: Credentials, since: float) -> Any:
        """Fetch a list once for all waiting requests, each within its own time limit. The fetch goes on without
        them, so that the next request has the list."""
        try:
            async with asyncio.timeout(self._total_seconds - (self._clock.monotonic() - since)):
                return await self._flights.run((name, credentials), lambda: self._fetch(name, credentials))
        except TimeoutError as error:
            raise errors.UpstreamUnreachable(f"no list of the service's for {name} in time") from error

    async def _fetch(self, name: str, credentials: Credentials) -> Any:
        definition = self._definitions[name]
        partial_errors: list[model.GraphQLError] = []
        data: Any = await self._upstream.execute(
            definition.document.operation({}, 0), credentials, partial_errors=partial_errors
        )
        data = data.data if isinstance(data, PartialData) else data
        try:
            # In a thread: tens of thousands of entries would block the event loop.
            listing = await asyncio.to_thread(definition.build, data)
            # A list lives for a day: without this every full collection would walk through it.
            garbage.exempt()
        except ValueError as error:
            raise errors.UpstreamUnreadable("a list of the upstream cannot be translated") from error
        if isinstance(listing, Listing) and listing.skipped:
            log.warning("list entries skipped", list=name, entries=listing.skipped)
        return self._choose(name, listing, len(partial_errors))

    def _choose(self, name: str, listing: Any, failures: int) -> Any:
        """Choose the list to use: one that may be incomplete is refreshed soon, and does not replace a complete one.

        It may be incomplete where errors came with it, where it is empty, or where it has shrunk by half. One that
        stays small is believed when the list before has lived twice as long as usual.
        """
        before, now = self._lists.get(name), self._clock.monotonic()
        entries, previous = len(listing), len(before.listing) if before else 0
        shrunk = entries < SHRUNK * previous and before is not None and now < before.doubted_until
        if not (failures or not entries or shrunk):
            self._store(name, listing, self._seconds)
            return listing
        log.warning("incomplete list received", list=name, entries=entries, previous_entries=previous, errors=failures)
        if before is None or (entries >= previous and not failures):
            self._lists[name] = _CachedList(listing, now + PAUSE_SECONDS, now)
            return listing
        self._lists[name] = _CachedList(before.listing, now + PAUSE_SECONDS, before.doubted_until)
        return before.listing

    async def _refresh(self, name: str, credentials: Credentials, cached: _CachedList) -> Any:
        try:
            return await self._fetch(name, credentials)
        except Exception as error:  # whatever it is, the list at hand is better than none
            log.warning("list refresh failed", list=name, exc_info=error)
            self._lists[name] = _CachedList(
                cached.listing, self._clock.monotonic() + PAUSE_SECONDS, cached.doubted_until
            )
            return cached.listing

    def _store(self, name: str, listing: Any, seconds: float) -> None:
        now = self._clock.monotonic()
        self._lists[name] = _CachedList(listing, now + seconds, now + 2 * seconds)
