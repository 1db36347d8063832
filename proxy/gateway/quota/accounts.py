"""Quota accounts, and the billing periods in which their usage is counted (contract graphql.md §6). Pure.

A quota account is an application (`demo`) or one of its API keys (`demo/erp`); a request is charged to both. Periods
are those of UTC, as upstream: usage is counted by day, by calendar month and for the lifetime of the account.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from proxy import config, errors
from proxy.kit.clock import Clock
from proxy.kit.wording import counted
from proxy.stores.protocols import LedgerEntry

LIFETIME = "lifetime"
DAY_SECONDS = 86_400


class BillingPeriods(NamedTuple):
    """Billing periods of a moment: the names of day and month, the start of the day, the ends of day and month (seconds
    since 1970)."""

    day: str
    month: str
    day_begins: float
    day_ends: float
    month_ends: float


@dataclass(frozen=True, slots=True)
class QuotaAccount:
    """Quota account: its name, the most parts in a period (None: unlimited), and that period."""

    name: str
    limit: int | None
    period: config.Period

    def entry(self, periods: BillingPeriods) -> LedgerEntry:
        """Return the ledger entry that the limit applies to."""
        return LedgerEntry(self.name, periods.month if self.period == "month" else LIFETIME)

    def reset(self, periods: BillingPeriods, now: float) -> int | None:
        """Return whole seconds until the quota is reset; None where it never is."""
        # At least 1: a Retry-After of 0 would be tried at once, before the reset.
        return max(1, math.ceil(periods.month_ends - now)) if self.period == "month" else None

    def entries(self, periods: BillingPeriods) -> tuple[LedgerEntry, ...]:
        """Return every ledger entry that usage is booked on."""
        # All three whatever the limit: a changed `period` finds past usage.
        return tuple(LedgerEntry(self.name, period) for period in (periods.day, periods.month, LIFETIME))


@dataclass(frozen=True, slots=True, eq=False)
class ChargedAccounts:
    """The two quota accounts that a request is charged to. Made once for each API key, and compared by identity.

    `share` is the key's limit in per cent of the application's, None for a fixed limit.
    """

    application: QuotaAccount
    key: QuotaAccount
    share: int | None = None

    @property
    def both(self) -> tuple[QuotaAccount, QuotaAccount]:
        """Quota accounts of the application and of the key, in this order."""
        return self.application, self.key

    @property
    def limited(self) -> tuple[QuotaAccount, ...]:
        """Quota accounts that have a limit."""
        return tuple(account for account in self.both if account.limit is not None)

    def left(self, account: QuotaAccount, remaining: int) -> str:
        """Say what is left of a limited account, and of whose share of what."""
        text = f"{account.name} has {remaining:,} of {counted(account.limit or 0, 'part')} left"
        if account.name == self.key.name and self.share is not None:
            return f"{text}, its share of {self.share} % of {self.application.name}"
        return text


def application_account(name: str, entry: config.ApplicationSettings) -> QuotaAccount:
    """Return the quota account of a whole application."""
    return QuotaAccount(name, _limit(entry.parts), entry.period)


def charged_accounts(name: str, entry: config.ApplicationSettings) -> dict[str, ChargedAccounts]:
    """Return the quota accounts of each API key of an application, by the key's name."""
    whole = application_account(name, entry)
    return {
        key: ChargedAccounts(whole, QuotaAccount(f"{name}/{key}", entry.parts_of(apikey), entry.period), apikey.share)
        for key, apikey in entry.clients.items()
    }


def all_accounts(applications: Mapping[str, config.ApplicationSettings]) -> list[QuotaAccount]:
    """Return the quota accounts of applications and all their API keys."""
    found = []
    for name, entry in applications.items():
        found += [application_account(name, entry), *(each.key for each in charged_accounts(name, entry).values())]
    return found


def billing_periods(now: float) -> BillingPeriods:
    """Return the billing periods of a moment in seconds since 1970."""
    midnight = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begins = midnight.timestamp()
    return BillingPeriods(
        midnight.strftime("%Y-%m-%d"),
        midnight.strftime("%Y-%m"),
        begins,
        begins + DAY_SECONDS,
        begins + errors.seconds_to_next_month(begins),
    )


class BillingCalendar:
    """Billing periods of the current moment, computed once a day."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._periods = billing_periods(clock.now())

    def today(self) -> BillingPeriods:
        """Return the periods of now: the same object all day long."""
        return self.at(self._clock.now())

    def at(self, now: float) -> BillingPeriods:
        """Return the periods of a moment that was just read from the clock."""
        # Also backwards: a clock that was set back is in another day, too.
        if not self._periods.day_begins <= now < self._periods.day_ends:
            self._periods = billing_periods(now)
        return self._periods


def _limit(parts: int | str) -> int | None:
    return parts if isinstance(parts, int) else None
