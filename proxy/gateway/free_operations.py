"""Operations that cost no parts: lists, specs, counts. Equal ones under way are one, and what they return lives in
memory for five minutes.

They are never reserved, and sent without parts left, too.
"""

from typing import Any, NamedTuple

import cachetools
import msgspec

from proxy import errors
from proxy.gateway.applications import Application
from proxy.gateway.batches import Send
from proxy.kit.clock import Clock
from proxy.kit.single_flight import SingleFlight
from proxy.planning.operations import EncodedOperation

FRESH_SECONDS = 300.0
BYTES = 4_194_304  # of all responses that are kept; their data takes some times as much
RESPONSE_BYTES = 262_144  # of one


class _Kept(NamedTuple):
    data: Any
    size: int


class FreeOperations:
    """Executes operations that cost no parts, each within `seconds`."""

    def __init__(self, send: Send, clock: Clock, seconds: float) -> None:
        self._send = send
        self._clock = clock
        self._seconds = seconds
        self._kept: cachetools.TTLCache[tuple[str, bytes], _Kept] = cachetools.TTLCache(
            BYTES, FRESH_SECONDS, timer=clock.monotonic, getsizeof=lambda kept: kept.size
        )
        self._flights: SingleFlight[tuple[str, bytes], Any] = SingleFlight("free operation")

    async def execute(self, application: Application, operation: EncodedOperation, deadline: float) -> Any:
        """Return the data of an operation, which the caller waits for until `deadline` (monotonic seconds).

        Raises the errors of Sender.send.
        """
        key = application.account, operation.payload
        if kept := self._kept.get(key):
            return kept.data
        seconds = deadline - self._clock.monotonic()
        try:
            return await self._flights.run(key, lambda: self._fetch(key, application, operation), seconds)
        except TimeoutError:
            raise errors.DeadlineExceeded("the time limit of the request has passed") from None
        except errors.BridgeError as error:
            raise error.shared() from None

    async def aclose(self) -> None:
        """Cancel what is under way."""
        await self._flights.close()

    async def _fetch(self, key: tuple[str, bytes], application: Application, operation: EncodedOperation) -> Any:
        size, is_partial = 0, False

        def decode(body: bytes) -> Any:
            nonlocal size, is_partial
            envelope = operation.decode(body)
            size, is_partial = len(body), bool(envelope.errors)
            return envelope

        watched = msgspec.structs.replace(operation, decode=decode)
        data = await self._send(watched, application.credentials, self._seconds)
        if size <= RESPONSE_BYTES and not is_partial:
            self._kept[key] = _Kept(data, size)
        return data
