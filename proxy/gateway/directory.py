"""The lists of brands, sellers, categories and specs: fetched whole, free of charge, and searched here.

A list is fetched when it is first needed, with the credentials of whoever needs it, and again in the background when
it is older than the configuration allows. It is kept when that fails: an old list is better than none.
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
from proxy.planning.projection_cache import ATTRIBUTES, ListDefinition
from proxy.upstream.auth.identity import Credentials
from proxy.upstream.graphql import GraphQLClient

PAUSE_SECONDS = 60.0  # after a refresh that failed, or a list that may be incomplete
SHRUNK = 0.5  # of the entries before: a list with fewer may be incomplete

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Kept:
    """A list, when it is to be fetched again, and until when a smaller one may be incomplete, in the clock's monotonic
    seconds."""

    listing: Any
    due: float
    believed: float


class Directory:
    """The lists of one upstream, by the name of their v3 object. They are kept for `seconds`; a caller has
    `total_seconds` for all that it asks."""

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
        self._kept: dict[str, Kept] = {}
        self._flights: SingleFlight[tuple[str, Credentials], Any] = SingleFlight("listing")

    async def listing(self, name: str, credentials: Credentials, since: float) -> Listing:
        """The list of `name` objects, waited for in the time that began at `since`, in the clock's monotonic seconds.

        Raises what asking the service raises, while there is none at all.
        """
        found: Listing = await self._list(name, credentials, since)
        return found

    async def specs(self, credentials: Credentials, since: float) -> Tables:
        """The tables with all specs that the service has. Raises the same."""
        found: Tables = await self._list(ATTRIBUTES, credentials, since)
        return found

    async def _list(self, name: str, credentials: Credentials, since: float) -> Any:
        kept = self._kept.get(name)
        if kept is None:
            return await self._first(name, credentials, since)
        if self._clock.monotonic() >= kept.due:
            self._flights.start((name, credentials), lambda: self._refresh(name, credentials, kept))
        return kept.listing

    async def close(self) -> None:
        """End what is under way."""
        await self._flights.close()

    async def _first(self, name: str, credentials: Credentials, since: float) -> Any:
        """Fetched for all who wait, each no longer than it has time. The fetch itself has a whole time of its own, so
        that it comes to something for the others and the next."""
        try:
            async with asyncio.timeout(self._total_seconds - (self._clock.monotonic() - since)):
                return await self._flights.run((name, credentials), lambda: self._fetch(name, credentials))
        except TimeoutError as error:
            raise errors.UpstreamUnreachable(f"no list of the service's for {name} in time") from error

    async def _fetch(self, name: str, credentials: Credentials) -> Any:
        definition = self._definitions[name]
        beside: list[model.GraphQLError] = []
        data: Any = await self._upstream.execute(
            definition.document.operation({}, 0), credentials, partial_errors=beside
        )
        try:
            listing = await asyncio.to_thread(definition.build, data)  # tens of thousands of makers take a while
            garbage.exempt()
        except ValueError as error:
            raise errors.UpstreamUnreadable("a list of the upstream cannot be translated") from error
        if isinstance(listing, Listing) and listing.skipped:
            log.warning("list entries skipped", list=name, entries=listing.skipped)
        return self._chosen(name, listing, len(beside))

    def _chosen(self, name: str, listing: Any, failures: int) -> Any:
        """The list that is kept: a new one that may be incomplete is not kept for long, and replaces none that is not.

        It may be incomplete where errors came with it, where it is empty, or where it has shrunk by half. One that
        stays small is believed when the list before has lived twice as long as usual.
        """
        before, now = self._kept.get(name), self._clock.monotonic()
        entries, known = len(listing), len(before.listing) if before else 0
        shrunk = entries < SHRUNK * known and before is not None and now < before.believed
        if not (failures or not entries or shrunk):
            self._keep(name, listing, self._seconds)
            return listing
        log.warning("incomplete list received", list=name, entries=entries, previous_entries=known, errors=failures)
        if before is None or (entries >= known and not failures):
            self._kept[name] = Kept(listing, now + PAUSE_SECONDS, now)
            return listing
        self._kept[name] = Kept(before.listing, now + PAUSE_SECONDS, before.believed)
        return before.listing

    async def _refresh(self, name: str, credentials: Credentials, kept: Kept) -> Any:
        try:
            return await self._fetch(name, credentials)
        except Exception as error:  # whatever it is, the list at hand is better than none
            log.warning("list refresh failed", list=name, exc_info=error)
            self._kept[name] = Kept(kept.listing, self._clock.monotonic() + PAUSE_SECONDS, kept.believed)
            return kept.listing

    def _keep(self, name: str, listing: Any, seconds: float) -> None:
        now = self._clock.monotonic()
        self._kept[name] = Kept(listing, now + seconds, now + 2 * seconds)
