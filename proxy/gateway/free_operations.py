"""Operations that cost no parts: counts, and the lists of brands, sellers, categories and specs.

They are never reserved, and sent without parts left, too. Equal ones under way are one. A response lives in memory for
five minutes. A list is fetched whole and searched here; it is refreshed in the background when it is older than a day,
and where that fails the old list stays: it is better than none.
"""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import cachetools
import msgspec
import structlog

from proxy import errors
from proxy.gateway.applications import Application
from proxy.kit.clock import Clock
from proxy.kit.tasks import SingleFlight
from proxy.model import EncodedOperation
from proxy.planning.documents import ListDefinition, PartialData
from proxy.planning.listing import FRESH_SECONDS, Listing
from proxy.upstream.sending import Send
from proxy.upstream.tokens import Credentials

RESPONSE_SECONDS = 300.0
BYTES = 4_194_304  # of all responses that are kept; their data takes some times as much
RESPONSE_BYTES = 262_144  # of one
PAUSE_SECONDS = 60.0  # until the next refresh of a list, after one that failed or was incomplete

Lists = dict[str, tuple[Any, float]]  # each with when it is to be refreshed, in monotonic seconds

log = structlog.get_logger()


class FreeOperations:
    """Executes operations, each within `seconds`. Lists are by the name of their v3 object.

    A caller waits until its `deadline`, in monotonic seconds. Each raises the errors of Sender.send.
    """

    def __init__(
        self, send: Send, clock: Clock, seconds: float, definitions: Mapping[str, ListDefinition], lists: Lists
    ) -> None:
        self._send, self._clock, self._seconds = send, clock, seconds
        self._definitions, self._lists = definitions, lists
        self._kept: cachetools.TTLCache[tuple[str, bytes], tuple[Any, int]] = cachetools.TTLCache(
            BYTES, RESPONSE_SECONDS, timer=clock.monotonic, getsizeof=lambda kept: kept[1]
        )
        self._flights: SingleFlight[tuple[object, ...], Any] = SingleFlight("free operation")
        self.aclose = self._flights.close

    async def execute(self, application: Application, operation: EncodedOperation, deadline: float) -> Any:
        """Return the data of an operation."""
        key = application.account, operation.payload
        if kept := self._kept.get(key):
            return kept[0]
        return await self._landed(key, lambda: self._fetch(key, application.credentials, operation), deadline)

    async def listed(self, name: str, application: Application, deadline: float) -> Any:
        """Return a list: a Listing, or the names of all specs that the upstream has."""
        credentials = application.credentials
        if name not in self._lists:
            return await self._landed((name, credentials), lambda: self._fetch_list(name, credentials), deadline)
        listing, due = self._lists[name]
        if self._clock.monotonic() >= due:
            # The request gets the old list meanwhile: brands and categories change slowly.
            self._flights.start((name, credentials), lambda: self._fetch_list(name, credentials))
        return listing

    async def _landed(
        self, key: tuple[object, ...], work: Callable[[], Coroutine[Any, Any, Any]], deadline: float
    ) -> Any:
        try:
            return await self._flights.run(key, work, deadline - self._clock.monotonic())
        except TimeoutError:
            raise errors.DeadlineExceeded("the time limit of the request has passed") from None
        except errors.BridgeError as error:
            raise error.shared() from None

    async def _fetch(self, key: tuple[str, bytes], credentials: Credentials, operation: EncodedOperation) -> Any:
        size = 0

        def decode(body: bytes) -> Any:
            nonlocal size
            size = len(body)
            return operation.decode(body)

        data = await self._send(msgspec.structs.replace(operation, decode=decode), credentials, self._seconds)
        if size <= RESPONSE_BYTES and not isinstance(data, PartialData):
            self._kept[key] = data, size
        return data

    async def _fetch_list(self, name: str, credentials: Credentials) -> Any:
        """Fetch a list, and return the one to use: where that fails, errors come with it, or it is empty, that before,
        if there is one."""
        definition, is_refresh = self._definitions[name], name in self._lists
        try:
            data = await self._send(definition.document.operation({}, 0), credentials, self._seconds)
            data, reported = (data.data, data.reported) if isinstance(data, PartialData) else (data, ())
            try:
                # In a thread: tens of thousands of entries would block the event loop.
                listing = await asyncio.to_thread(definition.build, data)
            except ValueError as error:
                raise errors.UpstreamUnreadable("a list of the upstream cannot be translated") from error
        except Exception as error:  # whatever it is, the list at hand is better than none
            if not is_refresh:
                raise
            log.warning("list refresh failed", list=name, exc_info=error)
            self._lists[name] = self._lists[name][0], self._clock.monotonic() + PAUSE_SECONDS
            return self._lists[name][0]
        # A list lives for a day: without this every full collection would walk through it.
        gc.freeze()
        if isinstance(listing, Listing) and listing.skipped:
            log.warning("list entries skipped", list=name, entries=listing.skipped)
        seconds = FRESH_SECONDS
        if reported or not listing.size:
            log.warning("incomplete list received", list=name, entries=listing.size, errors=len(reported))
            before, seconds = self._lists.get(name, (None, 0.0))[0], PAUSE_SECONDS
            listing = before if before and before.size else listing
        self._lists[name] = listing, self._clock.monotonic() + seconds
        return listing
