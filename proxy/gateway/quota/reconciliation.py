"""Reconciliation of the ledger with upstream's own count: once a day for each application, over all workers.

Other programs may use the same application's parts, and uncertain usage may have been billed or not: upstream knows.
What it has counted is used, at the least; what was uncertain before is so no longer; an exhausted quota that has parts
left again is cleared. The configured limit is not changed: where upstream's differs, that is logged.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog

from proxy import config, errors
from proxy.gateway.quota import accounts as quota_accounts
from proxy.gateway.quota.accounts import BillingCalendar, QuotaAccount
from proxy.kit.clock import Clock
from proxy.stores.protocols import EntryUsage, Store
from proxy.upstream.supply_counts import PartCounts, SupplyCountsClient

INTERVAL_SECONDS = 86_400.0  # between two reconciliations of an application
CHECK_SECONDS = 60.0  # between two checks whether an interval is over

log = structlog.get_logger()


class ReconciledApplication(NamedTuple):
    """Application that can be reconciled: its quota account, and how to read upstream's count."""

    account: QuotaAccount
    source: config.ReconciliationSettings


def reconciled_applications(configured: Mapping[str, config.ApplicationSettings]) -> list[ReconciledApplication]:
    """Return the applications that have a `reconcile` block."""
    return [
        ReconciledApplication(quota_accounts.application_account(name, entry), entry.reconcile)
        for name, entry in configured.items()
        if entry.reconcile is not None
    ]


class Reconciler:
    """Background task of the reconciliation. Without applications to reconcile there is no task."""

    def __init__(
        self,
        store: Store,
        applications: Sequence[ReconciledApplication],
        counts: SupplyCountsClient,
        clock: Clock,
        *,
        interval: float = CHECK_SECONDS,
    ) -> None:
        self._store = store
        self._applications = tuple(applications)
        self._counts = counts
        self._calendar = BillingCalendar(clock)
        self._interval = interval
        self._without_token: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin at once, in the background."""
        if self._applications:
            self._task = asyncio.create_task(self._keep_reconciling(), name="reconcile")

    async def close(self) -> None:
        """Cancel the task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))

    async def reconcile(self) -> None:
        """Reconcile each application whose day is over. A failure is logged, and waits for the next day."""
        for application in self._applications:
            name = application.account.name
            # Before the claim: an application without a token must not use up its turn of the day.
            token = self._token(application)
            try:
                if token is not None and await self._store.claim_once(f"reconcile:{name}", INTERVAL_SECONDS):
                    await self._compare(application, token)
            except errors.StoreUnavailable:
                return  # the ledger has logged it
            except errors.BridgeError as error:
                log.warning("usage reconciliation failed", quota_account=name, exc_info=error)

    async def _keep_reconciling(self) -> None:
        while True:
            try:
                await self.reconcile()
            except Exception as error:  # a failure must not be the last one
                log.error("usage reconciliation failed", exc_info=error)
            await asyncio.sleep(self._interval)

    def _token(self, application: ReconciledApplication) -> config.Secret | None:
        """Read the user's token. That there is none is logged once."""
        name = application.account.name
        try:
            token = application.source.token.read()
        except ValueError as error:
            if name not in self._without_token:
                log.warning("usage reconciliation skipped", quota_account=name, reason=f"the token {error}")
            self._without_token.add(name)
            return None
        self._without_token.discard(name)
        return token

    async def _compare(self, application: ReconciledApplication, token: config.Secret) -> None:
        account = application.account
        entry = account.entry(self._calendar.today())
        # Read before the count: it settles only what was uncertain by then.
        (before,) = await self._store.usage([entry])
        counts = await self._counts.fetch(application.source.application_id, token)
        if counts is None:
            log.warning(
                "usage reconciliation skipped",
                quota_account=account.name,
                reason="the upstream counts no parts for this application_id",
            )
        elif entry == account.entry(self._calendar.today()):  # else another period has begun meanwhile
            await self._adjust(account, before, counts)

    async def _adjust(self, account: QuotaAccount, before: EntryUsage, counts: PartCounts) -> None:
        await self._store.adjust(before.entry, counts.used, before.uncertain)
        log.info(
            "usage reconciled",
            quota_account=account.name,
            period=before.entry.period,
            ledger=before.used,
            uncertain=before.uncertain,
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
        exhausted = {quota.account for quota in await self._store.exhausted_quotas()}
        if account.name in exhausted and counts.used < counts.limit:
            await self._store.clear_exhausted(account.name)
            log.info("exhausted quota cleared", quota_account=account.name)
