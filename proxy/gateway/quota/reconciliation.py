"""The ledger beside the service's own count, once a day an application, over all workers.

Other programs may spend the same application's parts, and a part in doubt may have been billed or not: the service
knows. What it has counted is used, at the least; what was in doubt before it was asked is so no longer; an application
that it had refused and that has room again is opened. The configured limit stays what it is: a plan that says otherwise
is a line in the log.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog

from proxy import config, errors
from proxy.gateway.quota import accounts as quota_accounts
from proxy.gateway.quota.accounts import BillingCalendar, QuotaAccount
from proxy.kit.clock import Clock
from proxy.kit.windows import Window
from proxy.stores.protocols import EntryUsage, LedgerEntry, Store
from proxy.upstream.supply_counts import PartCounts, SupplyCountsClient

DAILY = (Window(1, 86_400.0),)
LOOK_SECONDS = 60.0  # between two looks at whether the day is over

log = structlog.get_logger()


class ReconciledApplication(NamedTuple):
    """An application that can be reconciled: its account, and how the service is asked about it."""

    account: QuotaAccount
    source: config.Reconcile


def watched(configured: Mapping[str, config.Application]) -> list[ReconciledApplication]:
    """The applications that have a `reconcile` block."""
    return [
        ReconciledApplication(quota_accounts.application_account(name, entry), entry.reconcile)
        for name, entry in configured.items()
        if entry.reconcile is not None
    ]


class Reconciler:
    """Compares when a day is over. Where nothing can be reconciled, it has nothing to do and no task."""

    def __init__(
        self,
        store: Store,
        watched: Sequence[ReconciledApplication],
        counts: SupplyCountsClient,
        clock: Clock,
        *,
        every: float = LOOK_SECONDS,
    ) -> None:
        self._store = store
        self._watched = tuple(watched)
        self._counts = counts
        self._calendar = BillingCalendar(clock)
        self._every = every
        self._without_token: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin at once, in the background."""
        if self._watched:
            self._task = asyncio.create_task(self._keep_looking(), name="reconcile")

    async def close(self) -> None:
        """End what is under way."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def look(self) -> None:
        """Compare each application whose day is over. Trouble is logged, and waits for the next day."""
        for each in self._watched:
            token = self._token(each)
            try:
                if token is not None and await self._store.take(f"reconcile:{each.account.name}", DAILY) == 0.0:
                    await self._compare(each, token)
            except errors.StoreUnavailable:
                return  # quota.py has told of it
            except errors.BridgeError as error:
                log.warning("usage reconciliation failed", quota_account=each.account.name, exc_info=error)

    async def _keep_looking(self) -> None:
        while True:
            try:
                await self.look()
            except Exception as error:  # a look that fails must not be the last one
                log.error("usage reconciliation failed", exc_info=error)
            await asyncio.sleep(self._every)

    def _token(self, each: ReconciledApplication) -> config.Secret | None:
        """The user's token of this moment. That there is none is said once."""
        name = each.account.name
        try:
            token = each.source.token.read()
        except ValueError as error:
            if name not in self._without_token:
                log.warning("usage reconciliation skipped", quota_account=name, reason=f"the token {error}")
            self._without_token.add(name)
            return None
        self._without_token.discard(name)
        return token

    async def _compare(self, each: ReconciledApplication, token: config.Secret) -> None:
        line = each.account.line(self._calendar.today())
        (before,) = await self._store.states([line])
        counts = await self._counts.fetch(each.source.application_id, token)
        if counts is None:
            log.warning(
                "usage reconciliation skipped",
                quota_account=each.account.name,
                reason="the upstream counts no parts for this application_id",
            )
        elif line == each.account.line(self._calendar.today()):  # else the period has turned meanwhile
            await self._adjust(each.account, line, before, counts)

    async def _adjust(self, account: QuotaAccount, line: LedgerEntry, before: EntryUsage, counts: PartCounts) -> None:
        await self._store.adjust(line, counts.used, before.doubtful)
        log.info(
            "usage reconciled",
            quota_account=account.name,
            period=line.period,
            ledger=before.used,
            uncertain=before.doubtful,
            upstream=counts.used,
            difference=counts.used - before.used,
            upstream_limit=counts.limit,
        )
        if account.limit is not None and account.limit != counts.limit:
            log.warning(
                "part limit mismatch detected",
                quota_account=account.name,
                configured=account.limit,
                upstream=counts.limit,
            )
        closed = {closure.account for closure in await self._store.closures()}
        if account.name in closed and counts.used < counts.limit:
            await self._store.reopen(account.name)
            log.info("exhausted quota cleared", quota_account=account.name)
