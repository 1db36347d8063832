"""Daily budget (UTC) of the candidate while the old service answers clients, shared by all workers.

It is reserved in the usage ledger before a request is sent. The application's own quota is charged besides, as for any
request.
"""

from collections.abc import Callable
from itertools import count

from proxy import errors
from proxy.compare.requests import V3Request
from proxy.compare.responses import SideResponse
from proxy.gateway.quota.accounts import BillingCalendar
from proxy.gateway.quota.ledger import Ledger, RequestUsage
from proxy.kit.clock import Clock
from proxy.stores.protocols import EntryGroup, LedgerEntry, QuotaLimit, ReservationRecord, Store

QUOTA_ACCOUNT = "shadow:"  # no application has a colon in its name
LEASE_SECONDS = 10.0  # that the claims of a worker which is no longer heard are held


class DailyBudget:
    """At most `limit` parts a day (None: unlimited). `worst` says what a request can cost; `owner` is this process."""

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
        """Its worst case is held, and is to be settled; None: there is no room for it, or the store cannot be asked."""
        line = self._line()
        budgets = () if self._limit is None else (QuotaLimit(line, self._limit),)
        claim = ReservationRecord(
            f"{self._owner}-{next(self._numbers)}", self._owner, self._worst(request), budgets, (line,)
        )
        if not budgets or not claim.parts:
            return claim
        try:
            return claim if await self._ledger.hold(claim) is None else None
        except errors.StoreUnavailable:
            return None

    async def settle(self, claim: ReservationRecord, response: SideResponse | None, over: bool = True) -> None:
        """Book the real cost; where it is unknown, or the request was cut off, the worst case as uncertain usage."""
        used = response.parts or 0 if response else 0
        unknown = not over or (response is not None and response.parts is None and response.status >= 500)
        group = EntryGroup(claim.entries)
        await self._ledger.book(RequestUsage(group, used, claim.parts if unknown else 0, claim.id))

    async def look(self) -> None:
        """Say that this worker lives, and write what could not be written. Raises StoreUnavailable."""
        await self._store.heartbeat(self._owner, LEASE_SECONDS)
        await self._ledger.refresh([self._line()])

    async def close(self) -> None:
        """Write what is left."""
        await self._ledger.close()

    def _line(self) -> LedgerEntry:
        return LedgerEntry(QUOTA_ACCOUNT, self._calendar.today().day)
