"""Quota accounts, and the billing periods in which their usage is counted (contract graphql.md §6). Pure.

A quota account is an application (`demo`) or one of its API keys (`demo/erp`); a request is charged to both. Periods
are those of UTC, as upstream: usage is counted by day, by calendar month and for the lifetime of the account.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from proxy import config, errors
from proxy.kit.clock import Clock
from proxy.stores.protocols import LedgerEntry

LIFETIME = "lifetime"
DAY_SECONDS = 86_400


class BillingPeriods(NamedTuple):
    """The periods of a moment: their names, when the day begins, when day and month end, in seconds since 1970."""

    day: str
    month: str
    day_begins: float
    day_ends: float
    month_ends: float


@dataclass(frozen=True, slots=True)
class QuotaAccount:
    """Who is counted, by which period, and the most parts in it (None: unlimited)."""

    name: str
    limit: int | None
    period: config.Period

    def line(self, dates: BillingPeriods) -> LedgerEntry:
        """The line that the limit is about."""
        return LedgerEntry(self.name, dates.month if self.period == "month" else LIFETIME)

    def reset(self, dates: BillingPeriods, now: float) -> int | None:
        """Whole seconds until it begins anew; None where it never does."""
        return max(1, math.ceil(dates.month_ends - now)) if self.period == "month" else None

    def lines(self, dates: BillingPeriods) -> tuple[LedgerEntry, ...]:
        """Every line that a part counts on."""
        return tuple(LedgerEntry(self.name, period) for period in (dates.day, dates.month, LIFETIME))


@dataclass(frozen=True, slots=True, eq=False)
class ChargedAccounts:
    """The two accounts of a call. Made once for each apikey, and told apart by being another one."""

    application: QuotaAccount
    key: QuotaAccount

    @property
    def both(self) -> tuple[QuotaAccount, QuotaAccount]:
        """The application's first."""
        return self.application, self.key

    @property
    def limited(self) -> tuple[QuotaAccount, ...]:
        """Those that have a limit."""
        return tuple(account for account in self.both if account.limit is not None)


def application_account(name: str, entry: config.Application) -> QuotaAccount:
    """The account of a whole application."""
    return QuotaAccount(name, _limit(entry.parts), entry.period)


def charged_accounts(name: str, entry: config.Application) -> dict[str, ChargedAccounts]:
    """The accounts of each apikey of an application, by the key's name."""
    whole = application_account(name, entry)
    return {
        key: ChargedAccounts(whole, QuotaAccount(f"{name}/{key}", _limit(apikey.parts), entry.period))
        for key, apikey in entry.clients.items()
    }


def billing_periods(now: float) -> BillingPeriods:
    """The dates of a moment in seconds since 1970."""
    midnight = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begins = midnight.timestamp()
    return BillingPeriods(
        midnight.strftime("%Y-%m-%d"),
        midnight.strftime("%Y-%m"),
        begins,
        begins + DAY_SECONDS,
        begins + errors.seconds_to_next_month(begins),
    )


def last_days(now: float, count: int) -> list[str]:
    """The names of the last days, today's last."""
    today = datetime.fromtimestamp(now, UTC)
    return [(today - timedelta(days=back)).strftime("%Y-%m-%d") for back in reversed(range(count))]


class BillingCalendar:
    """The dates of this moment, worked out once a day."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._dates = billing_periods(clock.now())

    def today(self) -> BillingPeriods:
        """The same object all day long."""
        return self.at(self._clock.now())

    def at(self, now: float) -> BillingPeriods:
        """The same, for who has asked the clock already."""
        if not self._dates.day_begins <= now < self._dates.day_ends:
            self._dates = billing_periods(now)
        return self._dates


def _limit(parts: int | str) -> int | None:
    return parts if isinstance(parts, int) else None
