"""Exchange: one request sent to both sides, within the budget.

The baseline is first: it is free, and if it fails or refuses the API key, nothing is spent. Then the candidate; then
the baseline again, where a price or stock differs, which may have changed meanwhile.
"""

import asyncio
import secrets
from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import msgspec

from proxy.redaction import Redaction
from proxy.tools.compare.judging.judge import Judge
from proxy.traffic import v3_response
from proxy.traffic.clients import SideName
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import ComparedSide, SideResponse


class ComparisonBudget:
    """Budget in parts; `limit` None is unlimited. `spent` includes the cost of a resumed run so far."""

    def __init__(self, limit: int | None, spent: int = 0) -> None:
        self.limit = limit
        self.spent = spent
        self._held = 0
        self._changed = asyncio.Condition()

    async def hold(self, parts: int) -> bool:
        """Reserve the maximum cost of a request; return False where the rest of the budget cannot cover it.

        Waits while requests in flight may yet cost less than they have reserved.
        """
        async with self._changed:
            while not self._covers(parts):
                if not self._held or not self._could_cover(parts):
                    return False
                await self._changed.wait()
            self._held += parts
            return True

    async def settle(self, reserved: int, cost: int) -> None:
        """Release a reservation and book the actual cost."""
        async with self._changed:
            self._held -= reserved
            self.spent += cost
            self._changed.notify_all()

    def _covers(self, parts: int) -> bool:
        return self.limit is None or not parts or self.spent + self._held + parts <= self.limit

    def _could_cover(self, parts: int) -> bool:
        return self.limit is None or self.spent + parts <= self.limit


class Sides(NamedTuple):
    """Sides of a run. One of them may be None: then responses are only recorded."""

    baseline: ComparedSide | None
    candidate: ComparedSide | None


class Exchange(NamedTuple):
    """Responses to one request.

    `cost` is in parts; `failure` is the reason why they cannot be compared, and `of` the side that failed, None where
    it only refused a client's API key.
    """

    baseline: SideResponse | None = None
    candidate: SideResponse | None = None
    baseline_again: SideResponse | None = None
    cost: int = 0
    failure: str | None = None
    of: ComparedSide | None = None


class OutOfBudgetError(Exception):
    """The rest of the budget does not cover the request."""


class Exchanger:
    """Sends requests to both sides. `worst` computes the maximum cost of a request; `paying` gets its id and this
    maximum before that may be spent.
    """

    def __init__(
        self,
        sides: Sides,
        *,
        budget: ComparisonBudget,
        worst: Callable[[V3Request], int],
        paying: Callable[[str, int], None],
        redaction: Redaction,
        judge: Judge | None = None,
    ) -> None:
        self._baseline, self._candidate = sides
        self._budget = budget
        self._worst = worst
        self._paying = paying
        self._redaction = redaction
        self._judge = judge
        self._process = secrets.token_hex(4)
        self._numbers = count(1)

    async def exchange(self, request: V3Request) -> Exchange:
        """Send a request to both sides. Raises OutOfBudgetError before anything is spent."""
        reserved = await self._reserve(request)
        try:
            baseline = await self._fetch(self._baseline, request)
        except BaseException:
            await self._budget.settle(reserved, 0)
            raise
        exchange = _failed(Exchange(baseline), "baseline", baseline, self._baseline, request)
        # The candidate is not requested: without a baseline response its parts would be spent for nothing.
        if exchange.failure is not None:
            await self._budget.settle(reserved, 0)
            return exchange
        if self._candidate is None:
            return exchange
        candidate, cost = await self._fetch_candidate(request, reserved)
        exchange = _failed(Exchange(baseline, candidate, cost=cost), "candidate", candidate, self._candidate, request)
        if exchange.failure is not None or baseline is None or self._judge is None:
            return exchange
        return await self._repeat(self._judge, request, exchange, baseline, candidate)

    async def look_up(self, name: SideName, request: V3Request) -> Exchange:
        """Send a request that is free of charge to one side."""
        if name == "baseline":
            return Exchange(await self._fetch(self._baseline, request))
        candidate, _ = await self._fetch_candidate(request, 0)
        return Exchange(candidate=candidate)

    async def _repeat(
        self, judge: Judge, request: V3Request, exchange: Exchange, baseline: SideResponse, candidate: SideResponse
    ) -> Exchange:
        """Send the request to the baseline again where a price or stock may have changed. A failed repetition is
        ignored."""
        # A recording gives the same response each time, so a repetition tells nothing.
        if self._baseline is None or not self._baseline.live:
            return exchange
        if not judge.may_have_moved(request, baseline, candidate):
            return exchange
        again = await self._fetch(self._baseline, request)
        return exchange if again is None or again.failure else exchange._replace(baseline_again=again)

    async def _reserve(self, request: V3Request) -> int:
        """Reserve the maximum cost of the candidate's response, which is returned."""
        worst = self._worst(request) if self._candidate is not None else 0
        if not await self._budget.hold(worst):
            raise OutOfBudgetError
        return worst

    async def _fetch_candidate(self, request: V3Request, reserved: int) -> tuple[SideResponse, int]:
        """Return the candidate's response and its cost. An unknown cost is booked as the maximum."""
        assert self._candidate is not None  # noqa: S101 - the callers check it
        # A request that is cancelled in flight may have been billed, so its maximum is booked.
        cost = reserved
        try:
            # Written before sending: after a crash these parts count as spent.
            if reserved:
                self._paying(request.id, reserved)
            response = await self._candidate.fetch(request, self._id())
            cost = _cost(response, reserved)
            return self._redacted(response, request), cost
        finally:
            await self._budget.settle(reserved, cost)

    async def _fetch(self, side: ComparedSide | None, request: V3Request) -> SideResponse | None:
        return None if side is None else self._redacted(await side.fetch(request, self._id()), request)

    def _redacted(self, response: SideResponse, request: V3Request) -> SideResponse:
        """Redact a response: sides may echo the API key, which is no difference and must not be stored."""
        hidden = self._redaction.including(request.target())
        body = hidden.body(response.body)
        failure = None if response.failure is None else hidden.text(response.failure)
        if (body, failure) == (response.body, response.failure):
            return response
        return msgspec.structs.replace(response, body=body, failure=failure)

    def _id(self) -> str:
        return f"{self._process}-{next(self._numbers)}"


def _failed(
    exchange: Exchange, name: SideName, response: SideResponse | None, side: ComparedSide | None, request: V3Request
) -> Exchange:
    """Return the exchange, as a failure where the response of a side cannot be compared."""
    reason = response and (response.failure or v3_response.refusal(response, request.client))
    if response is None or not reason:
        return exchange
    # A refused key is the client's failure: the side still serves other clients.
    of = None if response.status in v3_response.KEY_STATUSES else side
    return exchange._replace(failure=f"the {name} {reason}", of=of)


def _cost(response: SideResponse, worst: int) -> int:
    """Return the cost of a response: as stated, 0 for a rejected request, else the maximum."""
    return worst if response.price is None else response.price
