"""Usage: what each API key has paid and avoided in a month, for chargeback."""

import time

import msgspec

from proxy import errors
from proxy.gateway.quota import chargeback
from proxy.gateway.quota.chargeback import Chargeback, ChargebackRow
from proxy.stores.protocols import MONTH
from proxy.web.admin.page import AdminContext, AdminPage, PageData, PageParameter, Query


class UsageTotals(msgspec.Struct, frozen=True):
    """Sums over all API keys and, of parts paid and uncertain, over other usage."""

    requests: int
    hits: int
    parts_paid: int
    uncertain: int
    avoided_by_cache: int
    avoided_by_coalescing: int


class UsagePage(PageData, frozen=True):
    """Usage of each API key in `month` (UTC), in the order of the configuration, with `totals`. `recorded`: requests of
    the month are on record. `months` has those to choose from, the newest first. `store_failure`: why the store cannot
    be used; no usage is known then.
    """

    month: str
    months: tuple[str, ...]
    recorded: bool
    totals: UsageTotals
    rows: tuple[ChargebackRow, ...]
    store_failure: str | None


async def _data(context: AdminContext, query: Query) -> UsagePage:
    gateway, month = context.service.gateway, _month(context, query)
    try:
        usages, requests = await gateway.store.all_usage(), await gateway.store.monthly_requests(month)
    except errors.StoreUnavailable as error:
        return UsagePage(month, (month,), False, _totals(()), (), error.message)
    made = chargeback.of_month(month, gateway.settings.applications, usages, requests)
    periods = {usage.entry.period for usage in usages if len(usage.entry.period) == MONTH}
    months = tuple(sorted(periods | {month, _current(context)}, reverse=True))
    return UsagePage(month, months, made.recorded, _totals(made.rows), made.rows, None)


async def _csv(context: AdminContext, query: Query) -> list[bytes]:
    return [(await _chargeback(context, query)).csv.encode()]


async def _chargeback(context: AdminContext, query: Query) -> Chargeback:
    gateway = context.service.gateway
    return await chargeback.read(gateway.store, gateway.settings.applications, _month(context, query))


def _month(context: AdminContext, query: Query) -> str:
    return chargeback.check_month(query.get("month") or _current(context))


def _current(context: AdminContext) -> str:
    return time.strftime("%Y-%m", time.gmtime(context.clock.now()))


def _totals(rows: tuple[ChargebackRow, ...]) -> UsageTotals:
    names = UsageTotals.__struct_fields__
    return UsageTotals(*(sum(getattr(row, name) or 0 for row in rows) for name in names))


PAGE = AdminPage(
    "usage",
    "Usage",
    "What each API key has used in a month: requests, parts paid, and parts avoided by cache and coalescing.",
    UsagePage,
    _data,
    parameters=(PageParameter("month", "Month (UTC), such as 2026-11; the current one if omitted."),),
    csv=_csv,
)
