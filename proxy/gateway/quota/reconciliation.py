"""Reconciliation of the ledger with upstream's own count: once a day for each application, over all workers.

Other programs may use the same application's parts, and uncertain usage may have been billed or not: upstream knows.
What it has counted is used, at the least; what was uncertain before is so no longer; an exhausted quota that has parts
left again is cleared. The configured limit is not changed: where upstream's differs, that is logged. The last result of
each application is kept in the store.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec
import structlog

from proxy import config, errors
from proxy.gateway.quota import accounts as quota_accounts
from proxy.gateway.quota.accounts import BillingCalendar, QuotaAccount
from proxy.kit.clock import Clock
from proxy.kit.periodic import PeriodicTask
from proxy.stores.protocols import EntryUsage, NoteStore, Store
from proxy.upstream.supply_counts import PartCounts, SupplyCountsClient

INTERVAL_SECONDS = 86_400.0  # between two reconciliations of an application
CHECK_SECONDS = 60.0  # between two checks whether an interval is over
EXCLUSIVE_SECONDS = 10.0  # in which an application is reconciled once, by whichever worker
RESULTS = "reconciliation"  # kind of the notes with the last results

log = structlog.get_logger()


class ReconciledApplication(NamedTuple):
    """Application that can be reconciled: its quota account, and how to read upstream's count."""

    account: QuotaAccount
    source: config.ReconciliationSettings


class ReconciliationResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one reconciliation. `at` is in seconds since 1970; `ledger` and `uncertain` are usage as it was before.

    With a `problem` nothing was compared, and the counts are null.
    """

    at: float
    problem: str | None = None
    period: str | None = None
    ledger: int | None = None
    uncertain: int | None = None
    upstream: int | None = None
    difference: int | None = None
    upstream_limit: int | None = None


async def last_results(store: NoteStore) -> dict[str, ReconciliationResult]:
    """Read the last result of each application. Raises StoreUnavailable."""
    notes = await store.notes(RESULTS)
    results = {}
    for application, text in notes.items():
        with suppress(msgspec.DecodeError):  # written by another version
            results[application] = msgspec.json.decode(text, type=ReconciliationResult)
    return results


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
        self._clock = clock
        self._calendar = BillingCalendar(clock)
        self._without_token: set[str] = set()
        self._reconciling = PeriodicTask("reconcile", self.reconcile, interval)

    def start(self) -> None:
        """Begin at once, in the background."""
        if self._applications:
            self._reconciling.start()

    async def close(self) -> None:
        """Cancel the task."""
        await self._reconciling.close()

    async def reconcile(self) -> None:
        """Reconcile each application whose day is over. A failure is logged, and waits for the next day."""
        for application in self._applications:
            # Before the claim: an application without a token must not use up its turn of the day.
            token = self._token(application)
            try:
                if isinstance(token, config.Secret) and await self._claim_day(application):
                    await self._compare(application, token)
            except errors.StoreUnavailable:
                return  # the ledger has logged it

    async def reconcile_now(self, name: str) -> ReconciliationResult | None:
        """Reconcile an application whether its day is over or not, which then begins. Returns None while another worker
        does, or did so a moment ago. Raises LookupError for one without `reconcile`, and StoreUnavailable."""
        application = next((each for each in self._applications if each.account.name == name), None)
        if application is None:
            raise LookupError(f"{name!r} has no `reconcile` block")
        token = self._token(application)
        if not isinstance(token, config.Secret):
            return await self._keep(application, ReconciliationResult(at=self._clock.now(), problem=token))
        await self._claim_day(application)
        return await self._compare(application, token)

    async def _claim_day(self, application: ReconciledApplication) -> bool:
        """Return True to the first worker of this day: the vendor asks for one such request a day."""
        return await self._store.claim_once(f"reconcile:{application.account.name}", INTERVAL_SECONDS)

    def _token(self, application: ReconciledApplication) -> config.Secret | str:
        """Read the user's token; return why there is none, which is logged once."""
        name = application.account.name
        try:
            token = application.source.token.read()
        except ValueError as error:
            reason = f"the token {error}"
            if name not in self._without_token:
                log.warning("usage reconciliation skipped", quota_account=name, reason=reason)
            self._without_token.add(name)
            return reason
        self._without_token.discard(name)
        return token

    async def _compare(self, application: ReconciledApplication, token: config.Secret) -> ReconciliationResult | None:
        """Compare the counts, and keep the result; None where another worker does at this moment."""
        account = application.account
        # Of two at once the second would take off uncertain usage that is newer than upstream's count.
        if not await self._store.claim_once(f"reconciling:{account.name}", EXCLUSIVE_SECONDS):
            return None
        try:
            return await self._keep(application, await self._compared(application, token))
        except errors.StoreUnavailable:
            raise
        except errors.BridgeError as error:
            log.warning("usage reconciliation failed", quota_account=account.name, exc_info=error)
            return await self._keep(application, ReconciliationResult(at=self._clock.now(), problem=error.message))

    async def _compared(self, application: ReconciledApplication, token: config.Secret) -> ReconciliationResult:
        account, now = application.account, self._clock.now()
        entry = account.entry(self._calendar.today())
        # Read before the count: it settles only what was uncertain by then.
        (before,) = await self._store.usage([entry])
        counts = await self._counts.fetch(application.source.application_id, token)
        if counts is None:
            reason = "the upstream counts no parts for this application_id"
            log.warning("usage reconciliation skipped", quota_account=account.name, reason=reason)
            return ReconciliationResult(at=now, problem=reason)
        if entry != account.entry(self._calendar.today()):
            return ReconciliationResult(at=now, problem="another period began meanwhile")
        await self._adjust(account, before, counts)
        return ReconciliationResult(
            at=now,
            period=entry.period,
            ledger=before.used,
            uncertain=before.uncertain,
            upstream=counts.used,
            difference=counts.used - before.used,
            upstream_limit=counts.limit,
        )

    async def _keep(self, application: ReconciledApplication, result: ReconciliationResult) -> ReconciliationResult:
        await self._store.put_note(RESULTS, application.account.name, msgspec.json.encode(result).decode())
        return result

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
