"""How every account stands, as rows: what was used, what is left, when it begins anew, when it runs out. Pure.

Used by `v3bridge usage`, which reads the store and shows them. Keys that the configuration no longer has are part of
their application's figures and have no row.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from proxy import config
from proxy.gateway.quota import accounts as quota_accounts
from proxy.gateway.quota import forecast
from proxy.gateway.quota.exhaustion import FAR
from proxy.stores.protocols import EntryUsage, ExhaustedQuota, LedgerEntry


class UsageRow(msgspec.Struct, frozen=True):
    """One account in its period. Moments are RFC 3339 in UTC.

    `key` is null in the application's own row, `limit`, `left` and `percent` are where nothing is limited, `resets` is
    for a lifetime. `runs_out` is null where the parts last until then, `closed_until` where the service has not refused
    ("ever": until it is opened again).
    """

    application: str
    key: str | None
    period: str
    used: int
    in_doubt: int
    reserved: int
    limit: int | None
    left: int | None
    percent: float | None
    resets: str | None
    runs_out: str | None
    closed_until: str | None


def rows(
    applications: Mapping[str, config.Application],
    states: Iterable[EntryUsage],
    closures: Iterable[ExhaustedQuota],
    now: float,
) -> list[UsageRow]:
    """A row for each application and one for each of its keys, in the order of the configuration."""
    known = _Known(
        {state.line: state for state in states},
        {closure.account: closure for closure in closures},
        quota_accounts.billing_periods(now),
        now,
    )
    found = []
    for name, entry in applications.items():
        found.append(_row(quota_accounts.application_account(name, entry), name, None, known))
        found += [
            _row(accounts.key, name, key, known)
            for key, accounts in quota_accounts.charged_accounts(name, entry).items()
        ]
    return found


class _Known(NamedTuple):
    """What there is to know at one moment."""

    states: Mapping[LedgerEntry, EntryUsage]
    closures: Mapping[str, ExhaustedQuota]
    dates: quota_accounts.BillingPeriods
    now: float

    def state(self, line: LedgerEntry) -> EntryUsage:
        return self.states.get(line) or EntryUsage(line, 0, 0, 0)

    def spent(self, account: str, day: str) -> int:
        state = self.state(LedgerEntry(account, day))
        return state.used + state.doubtful


def _row(account: quota_accounts.QuotaAccount, application: str, key: str | None, known: _Known) -> UsageRow:
    state = known.state(account.line(known.dates))
    spent = state.used + state.doubtful
    ends = known.dates.month_ends if account.period == "month" else None
    days = [known.spent(account.name, day) for day in quota_accounts.last_days(known.now, forecast.DAYS)]
    closure = known.closures.get(account.name)
    return UsageRow(
        application=application,
        key=key,
        period=state.line.period,
        used=state.used,
        in_doubt=state.doubtful,
        reserved=state.reserved,
        limit=account.limit,
        left=None if account.limit is None else max(0, account.limit - spent),
        percent=None if not account.limit else round(100 * spent / account.limit, 1),
        resets=_moment(ends),
        runs_out=_moment(forecast.runs_out(spent, account.limit, ends, days, known.now)),
        closed_until=_moment(closure.until if closure else None),
    )


def _moment(seconds: float | None) -> str | None:
    """Whole seconds; None stays None. What is too far off for a date is "ever"."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds < FAR else "ever"
