"""Forecasts: quota accounts whose parts run out before their period ends, at the pace of the last days.

A forecast is reported when it is worth a message: not in the first days of a month or of usage, when the pace says
little, and not for the last day of a month. Once reported it stays until the parts last to the end, so that a pace that
changes over the day does not open and close it.
"""

from collections.abc import Collection
from typing import Any

from proxy.alerts import conditions
from proxy.alerts.conditions import AlertCondition
from proxy.gateway.assembly import Gateway
from proxy.gateway.quota import accounts, burn_down
from proxy.gateway.quota.accounts import DAY_SECONDS, QuotaAccount
from proxy.kit.wording import rfc3339
from proxy.stores.protocols import EntryUsage, LedgerEntry

FIRST_DAYS = 3  # of a month, and of usage, without a forecast
LIFETIME_DAYS = 14  # a quota that is never reset is reported if it runs out within these
MARGIN_DAYS = 1  # that parts must be missing at least


async def read(gateway: Gateway, known: Collection[str]) -> list[AlertCondition]:
    """Return the forecasts to report; `known` are keys of conditions that are reported already. Raises
    StoreUnavailable."""
    return [
        condition
        for account, usage in gateway.quota.usages()
        # Account by account: with hundreds of keys one transaction would keep others waiting.
        if account.limit and usage.used + usage.uncertain
        for condition in await _forecast(gateway, account, usage, known)
    ]


async def _forecast(
    gateway: Gateway, account: QuotaAccount, usage: EntryUsage, known: Collection[str]
) -> list[AlertCondition]:
    now = gateway.clock.now()
    periods = accounts.billing_periods(now)
    ends = periods.month_ends if account.period == "month" else None
    if ends is not None and int(periods.day[-2:]) <= FIRST_DAYS:
        return []
    names = accounts.last_days(now, burn_down.DAYS)
    entries = await gateway.store.usage([LedgerEntry(account.name, day) for day in names])
    days = [each.used + each.uncertain for each in entries]
    used = usage.used + usage.uncertain
    moment = burn_down.runs_out(used, account.limit, ends, days, now)
    if moment is None or not any(days[:-FIRST_DAYS]):
        return []
    key = f"forecast {account.name} {usage.entry.period} of {account.limit}"
    end = now + LIFETIME_DAYS * DAY_SECONDS if ends is None else ends
    # What is used up already is reported as exhausted.
    is_expected = moment < end if key in known else now < moment <= end - MARGIN_DAYS * DAY_SECONDS
    return [_condition(key, account, usage, moment, burn_down.parts_pace(days, now))] if is_expected else []


def _condition(key: str, account: QuotaAccount, usage: EntryUsage, moment: float, pace: float) -> AlertCondition:
    figures: dict[str, Any] = conditions.figures(account, usage)
    parts_per_day, at = pace * DAY_SECONDS, rfc3339(moment)
    return AlertCondition(
        key,
        "quota.forecast",
        "warning",
        f"{account.name} runs out on {at[:10]} at the present rate of {parts_per_day:,.0f} parts a day: "
        f"{figures['remaining']:,} of {account.limit:,} are left ({usage.entry.period}).",
        {**figures, "parts_per_day": round(parts_per_day, 1), "runs_out_at": at},
        over=f"{account.name} is no longer expected to run out ({usage.entry.period}).",
        flaps=True,
    )
