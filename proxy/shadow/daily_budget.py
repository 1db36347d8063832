"""Daily budget (UTC) of the candidate while the old service answers clients, shared by all workers.

Parts are reserved in the usage ledger before a request is sent. The application's own quota is charged in addition, as
for any request.
"""

from collections.abc import Callable
from itertools import count

from proxy import errors
from proxy.gateway.quota.accounts import BillingCalendar
from proxy.gateway.quota.ledger import Ledger, RequestUsage
from proxy.kit.clock import Clock
from proxy.stores.protocols import EntryGroup, LedgerEntry, QuotaLimit, ReservationRecord, Store
from proxy.traffic.v3_request import V3Request
from proxy.traffic.v3_response import SideResponse

QUOTA_ACCOUNT = "shadow:"  # application names cannot contain a colon
LEASE_SECONDS = 10.0  # after which reservations of a worker without heartbeat are released


class DailyBudget:
    """Budget of `limit` parts a day (None: unlimited). `worst` computes the maximum cost; `owner` identifies this
    process."""

    def __init__(
        self, store: Store, owner: str, limit: int | None, worst: Callable[[V3Request], int], clock: Clock
    ) -> None:
        self._store = store
        self._owner = owner
        self._limit = limit
        self._worst = worst
        self._calendar = BillingCalendar(clock)
        self._ledger = Ledger(store, owner)
        self._numbers = count(1)

    async def reserve(self, request: V3Request) -> ReservationRecord | None:
        """Reserve the maximum cost; the result must be settled. None if the budget is exhausted or the store
        unreachable."""
        line = self._line()
        budgets = () if self._limit is None else (QuotaLimit(line, self._limit),)
        claim = ReservationRecord(
            f"{self._owner}-{next(self._numbers)}", self._owner, self._worst(request), budgets, (line,)
        )
        if not budgets or not claim.parts:
            return claim
        try:
            return claim if await self._ledger.reserve(claim) is None else None
        except errors.StoreUnavailable:
            return None

    async def settle(self, claim: ReservationRecord, response: SideResponse | None, over: bool = True) -> None:
        """Book the actual cost; if it is unknown or the request was cancelled (`over` is false), the maximum as
        uncertain usage."""
        used = response.parts or 0 if response else 0
        unknown = not over or (response is not None and response.parts is None and response.status >= 500)
        group = EntryGroup(claim.entries)
        await self._ledger.book(RequestUsage(group, used, claim.parts if unknown else 0, claim.id))

    async def refresh(self) -> None:
        """Renew the lease of this worker and retry failed writes. Raises StoreUnavailable."""
        await self._store.heartbeat(self._owner, LEASE_SECONDS)
        await self._ledger.refresh([self._line()])

    async def close(self) -> None:
        await self._ledger.close()

    def _line(self) -> LedgerEntry:
        return LedgerEntry(QUOTA_ACCOUNT, self._calendar.today().day)
