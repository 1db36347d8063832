"""Quota: usage and limits of every quota account, burn-down and forecast, exhausted quotas and reconciliation."""

from collections.abc import Sequence

import msgspec
import structlog

from proxy import config, errors
from proxy.gateway.quota import accounts, burn_down, reconciliation, usage
from proxy.gateway.quota.reconciliation import ReconciliationResult
from proxy.stores.protocols import EntryUsage, ExhaustedQuota, LedgerEntry
from proxy.web.admin.page import ActionResult, AdminAction, AdminContext, AdminPage, PageData, PageParameter, Query

log = structlog.get_logger()


class KeyQuota(msgspec.Struct, frozen=True):
    """Quota account of an API key. `share` is its part of the application's usage, 0 to 1; null where that is 0."""

    usage: usage.UsageRow
    share: float | None


class ApplicationQuota(msgspec.Struct, frozen=True, kw_only=True):
    """Quota accounts of an application and its API keys. `burn_down` is null while the store cannot be used.

    `exhausted_reason` is what the upstream said when it refused the quota, null where it has not. `reconciles`: whether
    the configuration has a `reconcile` block; `reconciliation` is its last result, null before the first.
    """

    usage: usage.UsageRow
    keys: tuple[KeyQuota, ...]
    burn_down: burn_down.BurnDown | None
    exhausted_reason: str | None
    reconciles: bool
    reconciliation: ReconciliationResult | None


class QuotaPage(PageData, frozen=True):
    """Quota accounts at the time `at` (seconds since 1970), in the order of the configuration.

    `store_failure`: why the store cannot be used; usage is then what the worker that responds knows, without the days
    that a forecast needs, and without results of reconciliations.
    """

    at: float
    applications: tuple[ApplicationQuota, ...]
    store_failure: str | None


async def _data(context: AdminContext, _: Query) -> QuotaPage:
    """Read the store that all workers and machines share; without it, what this worker knows."""
    gateway, store_failure = context.service.gateway, None
    store, now = gateway.store, gateway.clock.now()
    results: dict[str, ReconciliationResult] = {}
    usages: Sequence[EntryUsage]
    try:
        usages, exhausted = await store.all_usage(), await store.exhausted_quotas()
        results = await reconciliation.last_results(store)
    except errors.StoreUnavailable as error:
        usages = [entry_usage for _, entry_usage in gateway.quota.usages()]
        exhausted = gateway.quota.exhaustion.active()
        store_failure = error.message
    snapshot = _Snapshot(
        usage.rows(gateway.settings.applications, usages, exhausted, now),
        {entry_usage.entry: entry_usage for entry_usage in usages},
        {quota.account: quota for quota in exhausted},
        results,
        now,
        has_days=store_failure is None,
    )
    applications = tuple(
        snapshot.application_quota(*application) for application in gateway.settings.applications.items()
    )
    return QuotaPage(now, applications, store_failure)


class _Snapshot(msgspec.Struct, frozen=True):
    """Usage at one moment; `has_days` is whether that of every day is known."""

    rows: list[usage.UsageRow]
    usages: dict[LedgerEntry, EntryUsage]
    exhausted: dict[str, ExhaustedQuota]
    results: dict[str, ReconciliationResult]
    now: float
    has_days: bool

    def application_quota(self, name: str, settings: config.ApplicationSettings) -> ApplicationQuota:
        whole, *keys = [row for row in self.rows if row.application == name]
        account, periods = accounts.application_account(name, settings), accounts.billing_periods(self.now)
        exhausted = self.exhausted.get(name)
        return ApplicationQuota(
            usage=whole,
            keys=tuple(KeyQuota(row, _share(row, whole)) for row in keys),
            burn_down=burn_down.of_account(account, self._usage, periods, self.now) if self.has_days else None,
            exhausted_reason=exhausted.reason if exhausted else None,
            reconciles=settings.reconcile is not None,
            reconciliation=self.results.get(name) if settings.reconcile is not None else None,
        )

    def _usage(self, entry: LedgerEntry) -> EntryUsage:
        return self.usages.get(entry) or EntryUsage(entry, 0, 0, 0)


def _share(row: usage.UsageRow, whole: usage.UsageRow) -> float | None:
    total = whole.used + whole.uncertain
    return round((row.used + row.uncertain) / total, 3) if total else None


async def _reopen(context: AdminContext, fields: Query) -> ActionResult:
    gateway = context.service.gateway
    name = _application(gateway.settings, fields)
    await gateway.store.clear_exhausted(name)
    log.info("exhausted quota cleared", quota_account=name)
    return ActionResult(f"The quota of {name} is no longer exhausted: within a second requests are sent again.")


async def _reconcile(context: AdminContext, fields: Query) -> ActionResult:
    gateway = context.service.gateway
    name = _application(gateway.settings, fields)
    try:
        result = await gateway.reconciler.reconcile_now(name)
    except LookupError as error:
        raise errors.BadRequest(f"{name} has no `reconcile` block in the configuration") from error
    if result is None:
        return ActionResult(f"{name} was reconciled a moment ago.")
    if result.problem is not None:
        return ActionResult(f"{name} could not be reconciled: {result.problem}.")
    return ActionResult(
        f"{name} is reconciled: the ledger had {result.ledger} parts, Nexar has counted {result.upstream}."
    )


def _application(settings: config.Config, fields: Query) -> str:
    name = fields.get("application", "")
    if name not in settings.applications:
        raise errors.BadRequest("no application has this name")
    return name


_NAME = PageParameter("application", "Name of the application.", required=True)

PAGE = AdminPage(
    "quota",
    "Quota",
    "Usage and limits of every quota account, burn-down, exhausted quotas and reconciliation.",
    QuotaPage,
    _data,
)
ACTIONS = (
    AdminAction("/quota/reopen", "quota", "Send requests again for an exhausted quota.", _reopen, (_NAME,)),
    AdminAction("/quota/reconcile", "quota", "Compare the ledger with the upstream's count now.", _reconcile, (_NAME,)),
)
