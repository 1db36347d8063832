"""Failures of operations: what they cost, and what may help."""

from collections.abc import Sequence

from proxy import errors, model
from proxy.gateway.bookings import Booking
from proxy.gateway.features import Features
from proxy.gateway.flights import NO_FEATURES, Again, Flight
from proxy.gateway.lookups import Lookups
from proxy.gateway.process import ProcessState
from proxy.gateway.results import Answer


class Failures:
    """Ends flights whose operation has failed."""

    def __init__(self, process: ProcessState, features: Features, lookups: Lookups) -> None:
        self._flights = process.flights
        self._bookings = process.bookings
        self._exhausted = process.exhausted
        self._features = features
        self._lookups = lookups

    async def end(self, flights: Sequence[Flight], error: errors.BridgeError) -> Sequence[Flight]:
        """Book an operation without data, and end its flights; return them instead where another attempt may help."""
        is_billed = _may_be_billed(error)
        for flight in flights:
            flight.spent += flight.parts if is_billed else 0
        await self._bookings.book([Booking(each, uncertain=each.parts if is_billed else 0) for each in flights])
        if isinstance(error, errors.QuotaExhausted):
            await self._exhausted.mark(flights[0].client, error)
        elif isinstance(error, errors.DeadlineExceeded) and not error.may_be_billed:
            self._flights.end(flights, Again(error))
            return ()
        elif isinstance(error, errors.OversizedOperation) and len(flights) > 1:
            parts = sum(flight.parts for flight in flights)
            await self._features.keep_parts_max(flights[0].client.application, max(1, parts // 2))
            return flights
        elif isinstance(error, errors.QueryRefused) and self._is_fetched_otherwise(flights, error):
            return flights
        asked = [(flight.client, flight.query) for flight in flights]
        stale = await self._lookups.stale(asked) if _is_outage(error) else [None] * len(flights)
        for flight, answer in zip(flights, stale, strict=True):
            self._flights.end([flight], answer if answer and not flight.anew else Answer(None, error, "miss"))
        return ()

    def _is_fetched_otherwise(self, flights: Sequence[Flight], error: errors.QueryRefused) -> bool:
        """Let flights be fetched without the features that the errors name, or without all if they name none; return
        whether that may help."""
        without = flights[0].without
        # A null takes the fields around it along, so that another attempt may name further features.
        named = self._features.named(error.reported, flights[0].selected)
        lacking = named or (NO_FEATURES if without else flights[0].selected.features)
        if flights[0].query.passed_on:
            return False
        if not (named or without) and len({id(flight.request) for flight in flights}) > 1:
            for flight in flights:  # the query of another caller may be the reason
                flight.apart = flight.request
            return True
        for flight in flights:
            flight.apart, flight.without, flight.is_guess = error, without | lacking, not named
        return bool(lacking)


def _may_be_billed(error: errors.BridgeError) -> bool:
    """Return whether parts may have been billed without data: of a refused operation unless all its errors are of
    validation."""
    if isinstance(error, errors.QueryRefused):
        return not all(map(_is_validation, error.reported))
    return isinstance(error, errors.ServerError) and error.may_be_billed


def _is_outage(error: errors.BridgeError) -> bool:
    """Return whether the upstream fails, as opposed to a query that it refuses or a quota that is exhausted."""
    refused = isinstance(error, errors.QueryRefused | errors.OversizedOperation)
    return not refused and isinstance(error, errors.ServerError | errors.TooManyRequests)


def _is_validation(error: model.GraphQLError) -> bool:
    return error.path is None or "specifiedBy" in (error.extensions or {})
