"""Quota: reserves parts before a request and settles them after it, per account and period (contract graphql.md §6).

A request of an account with a limit reserves its worst case in the store, so that all workers together stay within the
limit, and settles what was returned. For accounts without a limit the worst case is recorded before anything is sent,
so that it becomes uncertain usage where the worker dies. What may have been billed, though nothing was returned, is
booked as uncertain and counts against the limit. Where upstream refuses a quota as exhausted, nothing more is sent
until it is reset.
"""

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

import structlog

from proxy import errors
from proxy.gateway.quota.accounts import BillingCalendar, BillingPeriods, ChargedAccounts, QuotaAccount
from proxy.gateway.quota.exhaustion import WITHOUT_END_SECONDS, ExhaustedQuotas
from proxy.gateway.quota.ledger import Ledger, RequestUsage
from proxy.kit.clock import Clock
from proxy.kit.periodic import PeriodicTask
from proxy.kit.wording import counted, rfc3339
from proxy.model import QuotaStatus
from proxy.stores.protocols import (
    EntryGroup,
    EntryUsage,
    LedgerEntry,
    QuotaLimit,
    ReservationRecord,
    Store,
)
from proxy.telemetry.metrics import Metrics

LEASE_SECONDS = 10.0  # that reservations of a worker without heartbeat are held
DAYS_KEPT = 62  # of each account: a month twice, so that a clock that was ahead for some days takes none from its chart
MONTHS_KEPT = 24
REFRESH_SECONDS = 1.0  # between two readings of what other workers have used

log = structlog.get_logger()


class Reservation:
    """Parts held for one request. It ends once, with `settle` or `release`; a second call changes nothing."""

    __slots__ = ("_accounts", "_id", "_intent", "_open", "_parts", "_quota")

    def __init__(
        self, quota: "Quota", accounts: ChargedAccounts, parts: int, id_: str = "", intent: int | None = None
    ) -> None:
        self._quota = quota
        self._accounts = accounts
        self._parts = parts
        self._id = id_
        self._intent = intent
        self._open = True

    async def settle(self, returned: int) -> None:
        """Book the parts that were returned: durably, or in memory until the store is available."""
        if self._open:
            # First, before anything is awaited: settle and release may both be called when a request is cancelled.
            self._open = False
            await self._quota.book(self._accounts, returned, 0, self._id, self._intent)

    async def release(self, error: BaseException) -> int:
        """End a request that failed. If it may have been billed, book its worst case as uncertain; return these
        parts."""
        if not self._open:
            return 0
        self._open = False
        # The worst case: what was returned is unknown, and a limit must hold even if all of it was billed.
        uncertain = self._parts if may_be_billed(error) else 0
        await self._quota.book(self._accounts, 0, uncertain, self._id, self._intent)
        if isinstance(error, errors.QuotaExhausted):
            await self._quota.mark_exhausted(self._accounts, error)
        return uncertain


class Quota:
    """Quotas of all API keys. `owner` is this process in the store: no other, before or after, has the same.
    `exhaustion` is what upstream has refused."""

    def __init__(
        self,
        store: Store,
        charged: Sequence[ChargedAccounts],
        owner: str,
        clock: Clock,
        metrics: Metrics,
        *,
        lease: float = LEASE_SECONDS,
        interval: float = REFRESH_SECONDS,
    ) -> None:
        self._store, self._owner = store, owner
        self._charged = [charged]  # of each configuration
        self._accounts = _accounts(self._charged)
        self._clock = clock
        self._lease = lease
        self._calendar = BillingCalendar(clock)
        self._ledger = Ledger(store, owner)
        self.exhaustion = ExhaustedQuotas(store, clock)
        self._metrics = metrics
        self._numbers = count(1)
        self._periods = self._calendar.today()
        self._pruned: BillingPeriods | None = None
        self._charges: dict[ChargedAccounts, _Charge] = {}
        self._moment: tuple[float, int] | None = None  # second and state of the ledger that the statuses are of
        self._statuses: dict[ChargedAccounts, QuotaStatus] = {}
        self._refreshing = PeriodicTask("quota", self.refresh, interval, delay=interval)

    async def start(self) -> None:
        """Read the ledger, and start refreshing it. A store that is unavailable does not delay the start."""
        await self.refresh()
        self._refreshing.start()

    async def track(self, charged: Sequence[ChargedAccounts]) -> None:
        """Add the accounts of another configuration, until `untrack`. Then their usage is known here."""
        if not any(tracked is charged for tracked in self._charged):
            self._charged.append(charged)
            self._accounts = _accounts(self._charged)
            await self.refresh()

    async def untrack(self, charged: Sequence[ChargedAccounts]) -> None:
        """Forget the accounts of a configuration that no request uses any more."""
        self._charged = [tracked for tracked in self._charged if tracked is not charged]
        self._accounts = _accounts(self._charged)
        self._charges.clear()  # filled again by the next requests

    async def close(self) -> None:
        """Stop refreshing, and write all usage."""
        await self._refreshing.close()
        await self._ledger.close()

    async def reserve(self, accounts: ChargedAccounts, parts: int) -> Reservation:
        """Reserve `parts`, the most that a request can cost. Raises QuotaExhausted and StoreUnavailable."""
        self.exhaustion.check(accounts.application)
        charge = self._charge(accounts, self._calendar.today())
        # Such as a search with limit=0: free, and not worth a transaction.
        if not parts:
            return Reservation(self, accounts, parts)
        if not charge.limits:
            return await self._record(accounts, parts, charge)
        for account, entry in charge.visible:  # spares the store a flood of requests beyond the limit
            self._check(accounts, account, self._ledger.usage(entry), parts)
        record = self._reservation_record(parts, charge)
        exceeded = await self._ledger.reserve(record)
        if exceeded is not None:
            account = next(account for account, entry in charge.visible if entry == exceeded)
            await self._refuse(accounts, account, exceeded, parts)
        return Reservation(self, accounts, parts, record.id)

    def free(self, accounts: ChargedAccounts) -> Reservation:
        """Return a reservation of no parts, for what is free of charge whatever is left."""
        return Reservation(self, accounts, 0)

    def status(self, accounts: ChargedAccounts) -> QuotaStatus:
        """Return the status that a response shows: as of the last refresh, exact for what this process used."""
        now = self._clock.now()
        # The same until the second ends or usage changes.
        moment = now // 1, self._ledger.changes
        if moment != self._moment:
            self._moment = moment
            self._statuses.clear()
        status = self._statuses.get(accounts)
        if status is None:
            status = self._statuses[accounts] = self._status(accounts, now)
        return status

    def _status(self, accounts: ChargedAccounts, now: float) -> QuotaStatus:
        periods = self._calendar.at(now)
        visible = self._charge(accounts, periods).visible
        used, account = (
            self._counted(visible[0]) if len(visible) == 1 else min(map(self._counted, visible), key=_remaining)
        )
        return QuotaStatus(used, account.limit, account.reset(periods, now))

    def usages(self) -> list[tuple[QuotaAccount, EntryUsage]]:
        """Return the usage of each account in its current period, as of the last refresh."""
        periods = self._calendar.today()
        return [(account, self._ledger.usage(account.entry(periods))) for account in self._accounts]

    async def book(
        self, accounts: ChargedAccounts, used: int, uncertain: int, reservation: str, intent: int | None
    ) -> None:
        """Book usage on both accounts, and end the reservation. Raises nothing: usage that cannot be written stays
        in memory."""
        if not (used or uncertain or reservation or intent is not None):
            return
        # Of the moment of booking: a request that runs over midnight is counted on the day that its response came.
        group = self._charge(accounts, self._calendar.today()).group
        await self._ledger.book(RequestUsage(group, used, uncertain, reservation, intent))

    async def mark_exhausted(self, accounts: ChargedAccounts, error: errors.QuotaExhausted) -> None:
        """Mark an application's quota as exhausted, for its reservation."""
        try:
            await self.exhaustion.mark(accounts.application, self._calendar.today(), error)
        except errors.StoreUnavailable as failure:
            self._ledger.store_failed(failure)

    async def refresh(self) -> None:
        """Send a heartbeat, prune, write pending usage, and read the usage of other workers."""
        periods = self._calendar.today()
        is_written = False
        try:
            # The lease covers several refreshes, so that one that fails or is late loses no reservation.
            await self._store.heartbeat(self._owner, self._lease)
            await self.exhaustion.refresh()
            if periods is not self._pruned:  # once a day
                await self._store.prune(DAYS_KEPT, MONTHS_KEPT)
                self._pruned = periods
            is_written = True
        except errors.StoreUnavailable as error:
            self._ledger.store_failed(error)
        # Only now: a reload may have added accounts meanwhile, and a refresh forgets the entries that it does not read.
        entries = [account.entry(periods) for account in self._accounts]
        await self._ledger.refresh(entries, is_proof=is_written)
        self._metrics.store_unavailable.set(not self._ledger.is_available)

    async def _record(self, accounts: ChargedAccounts, parts: int, charge: "_Charge") -> Reservation:
        """Record the worst case of a request without holding quota: in the journal, which is faster, or in the
        store. A store that is unavailable delays no request."""
        intent = self._ledger.open_intent(parts, charge.group)
        if intent is not None:
            return Reservation(self, accounts, parts, intent=intent)
        record = self._reservation_record(parts, charge)
        return Reservation(self, accounts, parts, record.id if await self._ledger.record(record) else "")

    def _reservation_record(self, parts: int, charge: "_Charge") -> ReservationRecord:
        id_ = f"{self._owner}-{next(self._numbers)}"
        return ReservationRecord(id_, self._owner, parts, charge.limits, charge.group.entries)

    def _charge(self, accounts: ChargedAccounts, periods: BillingPeriods) -> "_Charge":
        """Return the entries and limits that requests of these accounts are charged to, computed once a day."""
        if periods is not self._periods:
            self._periods = periods
            self._charges.clear()
        charge = self._charges.get(accounts)
        if charge is None:
            charge = self._charges[accounts] = _charge(accounts, periods)
        return charge

    def _counted(self, visible: tuple[QuotaAccount, LedgerEntry]) -> tuple[int, QuotaAccount]:
        account, entry = visible
        return self._ledger.counted(entry), account

    def _check(self, accounts: ChargedAccounts, account: QuotaAccount, usage: EntryUsage, parts: int) -> None:
        """Raise QuotaExhausted if the parts exceed the remaining quota even without open reservations."""
        remaining = max(0, (account.limit or 0) - usage.used - usage.uncertain)
        if parts > remaining:
            periods = self._calendar.today()
            reset = account.reset(periods, self._clock.now())
            end = "it is never reset" if reset is None else f"it is reset on {rfc3339(periods.month_ends)[:10]}"
            raise errors.QuotaExhausted(
                f"{accounts.left(account, remaining)} ({usage.entry.period}), and this request may cost {parts}; {end}",
                retry_after=WITHOUT_END_SECONDS if reset is None else reset,
            )

    async def _refuse(self, accounts: ChargedAccounts, account: QuotaAccount, entry: LedgerEntry, parts: int) -> None:
        """Raise the reason for a failed reservation: the quota is used, or reserved by open requests, which may
        release some."""
        (usage,) = await self._ledger.stored_usage([entry])
        self._check(accounts, account, usage, parts)
        raise errors.QuotaExhausted(
            f"what {account.name} has left of its {counted(account.limit or 0, 'part')} ({entry.period}) is held by "
            f"requests under way, and this one may cost {parts}",
            retry_after=1,
        )


def may_be_billed(error: BaseException) -> bool:
    """Return whether upstream may have billed parts for a request that ended with this error; True if unknown."""
    if isinstance(error, errors.ServerError):
        return error.may_be_billed
    # A cancellation or a bug says nothing about what the upstream did.
    return not isinstance(error, errors.BridgeError)


class _Charge(NamedTuple):
    """Charge of a request: the entries that it is booked on, its limits, and the accounts whose quota its client
    sees (those with a limit, else the application's)."""

    group: EntryGroup
    limits: tuple[QuotaLimit, ...]
    visible: tuple[tuple[QuotaAccount, LedgerEntry], ...]


def _accounts(charged: Sequence[Sequence[ChargedAccounts]]) -> tuple[QuotaAccount, ...]:
    """Return all accounts once; of those with the same name only the last, whose limit is the current one."""
    latest = {account.name: account for each in charged for accounts in each for account in accounts.both}
    return tuple(latest.values())


def _charge(accounts: ChargedAccounts, periods: BillingPeriods) -> _Charge:
    group = EntryGroup(accounts.application.entries(periods) + accounts.key.entries(periods))
    limits = tuple(QuotaLimit(account.entry(periods), account.limit or 0) for account in accounts.limited)
    visible = accounts.limited or (accounts.application,)
    return _Charge(group, limits, tuple((account, account.entry(periods)) for account in visible))


def _remaining(counted_of: tuple[int, QuotaAccount]) -> int:
    used, account = counted_of
    return (account.limit or 0) - used
