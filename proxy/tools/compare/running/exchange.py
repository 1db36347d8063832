"""Exchange: one request sent to both sides, within the budget, and repeated where that gives information.

The baseline is first: it is free, and if it fails or refuses the API key, nothing is spent. Then the candidate; then
the baseline again, where the request is in the noise sample or the responses differ. The candidate is paid a second
time only where the baseline has changed meanwhile. A document costs parts also at the Nexar API as the baseline, which
is asked once.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterable, Iterator
from itertools import count, product
from typing import Any, NamedTuple

import msgspec

from proxy.redaction import Redaction
from proxy.tools.compare.judging.judge import Judge
from proxy.traffic import v3_response
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import ClickLinkOwners, ComparedSide, SideName, SideResponse
from proxy.upstream.replay import RecordedGraphQLResponse, ResponseRecorder


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

    `cost` is in parts, over all responses that are billed; `failure` is the reason why they cannot be compared, and
    `of` the side that failed, None where it only refused a client's API key; `notes` are the GraphQL operations behind
    the candidate's latest response.
    """

    baseline: SideResponse | None = None
    candidate: SideResponse | None = None
    baseline_again: SideResponse | None = None
    candidate_again: SideResponse | None = None
    cost: int = 0
    failure: str | None = None
    of: ComparedSide | None = None
    notes: tuple[RecordedGraphQLResponse, ...] = ()

    @property
    def freshest(self) -> tuple[SideResponse | None, SideResponse | None]:
        """Latest response of each side."""
        return self.baseline_again or self.baseline, self.candidate_again or self.candidate


class OutOfBudgetError(Exception):
    """The rest of the budget does not cover the request."""


class Exchanger:
    """Sends requests to both sides. `worst` computes the maximum cost of a request, `baseline_worst` that of its
    baseline; `paying` gets its id and such a maximum before that may be spent.
    """

    def __init__(
        self,
        sides: Sides,
        *,
        budget: ComparisonBudget,
        worst: Callable[[V3Request], int],
        baseline_worst: Callable[[V3Request], int] = lambda _: 0,
        paying: Callable[[str, int], None],
        redaction: Redaction,
        judge: Judge | None = None,
        upstream_recorder: ResponseRecorder | None = None,
    ) -> None:
        self._baseline, self._candidate = sides
        self._budget = budget
        self._worst = worst
        self._baseline_worst = baseline_worst
        self._paying = paying
        self._redaction = redaction
        self._judge = judge
        self._upstream_recorder = upstream_recorder
        self._process = secrets.token_hex(4)
        self._numbers = count(1)

    async def exchange(self, request: V3Request, *, twice: bool = False) -> Exchange:
        """Send a request to both sides. Raises OutOfBudgetError before anything is spent."""
        own = self._baseline_worst(request)
        reserved = await self._reserve(request, own)
        paid = own
        try:
            if own:
                self._paying(request.id, own)
            baseline = await self._fetch(self._baseline, request)
            paid = _cost(baseline, own) if own and baseline is not None else 0
        except BaseException:
            await self._budget.settle(reserved, 0)
            raise
        finally:
            await self._budget.settle(own, paid)
        exchange = _failed(Exchange(baseline, cost=paid), "baseline", baseline, self._baseline, request)
        # The candidate is not requested: without a baseline response its parts would be spent for nothing.
        if exchange.failure is not None:
            await self._budget.settle(reserved, 0)
            return exchange
        if self._candidate is None:
            return exchange
        candidate, cost, notes = await self._fetch_candidate(request, reserved)
        exchange = Exchange(baseline, candidate, cost=paid + cost, notes=notes)
        exchange = _failed(exchange, "candidate", candidate, self._candidate, request)
        if exchange.failure is not None or baseline is None or self._judge is None:
            return exchange
        return await self._repeat(self._judge, request, exchange, (baseline, candidate), twice)

    async def look_up(self, name: SideName, request: V3Request) -> Exchange:
        """Send a request that is free of charge to one side."""
        if name == "baseline":
            return Exchange(await self._fetch(self._baseline, request))
        candidate, _, notes = await self._fetch_candidate(request, 0)
        return Exchange(candidate=candidate, notes=notes)

    async def _repeat(
        self,
        judge: Judge,
        request: V3Request,
        exchange: Exchange,
        pair: tuple[SideResponse, SideResponse],
        twice: bool,
    ) -> Exchange:
        """Repeat the request where that gives information. A failed repetition is ignored."""
        baseline, candidate = pair
        # A recording gives the same response each time, so a repetition tells nothing.
        if self._baseline is None or not self._baseline.live or self._baseline_worst(request):
            return exchange
        differ = bool(judge.differences(request, baseline, candidate))
        if not (differ or twice):
            return exchange
        baseline_again = await self._fetch(self._baseline, request)
        if baseline_again is None or baseline_again.failure:
            return exchange
        exchange = exchange._replace(baseline_again=baseline_again)
        # Both baseline responses differ from the candidate and from each other: the data changes quickly, and only a
        # current response of the candidate can be compared with the current baseline.
        if (
            differ
            and judge.differences(request, baseline_again, candidate)
            and judge.differences(request, baseline, baseline_again)
        ):
            return await self._repeat_candidate(request, exchange)
        return exchange

    async def _repeat_candidate(self, request: V3Request, exchange: Exchange) -> Exchange:
        """Request the candidate's current response, if the budget covers it."""
        try:
            reserved = await self._reserve(request)
        except OutOfBudgetError:
            return exchange
        candidate_again, cost, notes = await self._fetch_candidate(request, reserved)
        exchange = exchange._replace(cost=exchange.cost + cost)
        return exchange if candidate_again.failure else exchange._replace(candidate_again=candidate_again, notes=notes)

    async def _reserve(self, request: V3Request, more: int = 0) -> int:
        """Reserve the maximum cost of the candidate's response, which is returned, and `more`."""
        worst = self._worst(request) if self._candidate is not None else 0
        if not await self._budget.hold(worst + more):
            raise OutOfBudgetError
        return worst

    async def _fetch_candidate(
        self, request: V3Request, reserved: int
    ) -> tuple[SideResponse, int, tuple[RecordedGraphQLResponse, ...]]:
        """Return the candidate's response, its cost, and its GraphQL operations. An unknown cost is booked as the
        maximum.
        """
        assert self._candidate is not None  # noqa: S101 - the callers check it
        # A request that is cancelled in flight may have been billed, so its maximum is booked.
        cost = reserved
        try:
            # Written before sending: after a crash these parts count as spent.
            if reserved:
                self._paying(request.id, reserved)
            request_id = self._id()
            response = await self._candidate.fetch(request, request_id)
            notes = self._upstream_recorder.take(request_id) if self._upstream_recorder else ()
            cost = _cost(response, reserved)
            owned = msgspec.structs.replace(self._redacted(response, request), click_links=click_link_owners(notes))
            return owned, cost, notes
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


def click_link_owners(responses: Iterable[RecordedGraphQLResponse]) -> ClickLinkOwners:
    """Return the owners of all click links in responses of the GraphQL API: the offers that they belong to. v3's
    responses cannot tell, because click links are opaque."""
    found: ClickLinkOwners = {}
    for response in responses:
        try:
            body = msgspec.json.decode(response.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # such a response has failed, so the candidate has no link of it
        for company, offer in _offers(body):
            link = offer.get("clickUrl")
            if type(link) is str:
                sellers = ("", *(str(company[name]) for name in ("id", "name") if company.get(name)))
                skus = ("", str(offer.get("sku") or ""))
                found[link] = found.get(link, frozenset()) | frozenset(product(sellers, skus))
    return found


def _offers(value: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield company and offer of each offer in a response."""
    left = [value]
    while left:
        node = left.pop()
        if type(node) is list:
            left += node
        elif type(node) is dict:
            left += node.values()
            company, offers = node.get("company"), node.get("offers")
            if type(company) is dict and type(offers) is list:
                yield from ((company, offer) for offer in offers if type(offer) is dict)
