"""Operations of clients that are sent as they stand, for what parts and results do not cover.

Each is reserved with the most parts that it can cost. What it returns is stored by document and variables, unless it
has errors, is private or cost nothing.
"""

import contextlib
from dataclasses import dataclass

from proxy import errors
from proxy.gateway import results
from proxy.gateway.applications import Client
from proxy.gateway.batches import Batches, Reserved, Sent
from proxy.gateway.bookings import Booking
from proxy.gateway.flights import Again, Flight
from proxy.gateway.lookups import Lookups
from proxy.gateway.process import ProcessState
from proxy.gateway.results import Answer
from proxy.planning.queries import PassedOn
from proxy.store.protocol import Begin


@dataclass(frozen=True, slots=True)
class PassingOn:
    """Sends operations that are passed on."""

    batches: Batches
    lookups: Lookups
    process: ProcessState

    async def fetch(
        self, client: Client, begin: Begin, flight: Flight, reserved: Reserved, passed_on: PassedOn
    ) -> Answer | Again:
        """Send an operation that is reserved, book what came of it, and return what its flight ends with."""
        parts, bookings = passed_on.operation.parts_max, self.process.bookings
        booking = Booking(client, begin, uncertain=parts)
        try:
            received = passed_on.read(await self.batches.pass_on(reserved, passed_on.operation))
        except errors.BridgeError as error:
            sent = Sent((), error, 1, parts, 1)
            uncertain = parts if sent.may_be_billed else 0
            await bookings.book(booking._replace(uncertain=uncertain))
            failed = await self._failed(client, flight, error, is_outage=sent.is_outage)
            return failed._replace(parts=uncertain) if isinstance(failed, Answer) else failed
        except BaseException:
            await bookings.book(booking)
            raise
        used, lost = received.parts, received.lost
        # A null without an error is a part that is unknown. Where errors have left no part, all may have been billed.
        uncertain = (lost or (0 if used else parts)) if received.reported else 0
        answer = results.passed_on(flight.query, received, used + uncertain)
        is_stored = used and not answer.is_partial and not passed_on.is_private
        stored = [answer.result] if answer.result and is_stored else []
        self.process.metrics.parts.labels(client.application.name).inc(used)
        await bookings.book(booking._replace(used=used, uncertain=uncertain, results=stored, flights=[flight]))
        return answer

    async def _failed(
        self, client: Client, flight: Flight, error: errors.BridgeError, *, is_outage: bool
    ) -> Answer | Again:
        if isinstance(error, errors.QuotaExhausted):
            with contextlib.suppress(errors.StoreUnavailable):
                await self.process.exhausted.mark(client, error)
        elif isinstance(error, errors.DeadlineExceeded) and not error.may_be_billed:
            return Again(error)
        elif is_outage:
            (stale,) = await self.lookups.stale(client, [flight.query])
            if stale is not None:
                return stale
        return Answer(None, error, "miss")
