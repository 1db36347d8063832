"""What applications and their keys may spend, and the dates by which it is counted (contract graphql.md §6). Pure.

An account is an application (`demo`) or one of its keys (`demo/erp`); a call counts on both. Dates are those of UTC, as
the service's are: parts are counted by day, by calendar month and for ever.
"""

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from proxy import config, errors
from proxy.kit.clock import Clock
from proxy.stores.base import Line

LIFETIME = "lifetime"
DAY_SECONDS = 86_400


class Dates(NamedTuple):
    """The periods of a moment: their names, when the day begins, when day and month end, in seconds since 1970."""

    day: str
    month: str
    day_begins: float
    day_ends: float
    month_ends: float


@dataclass(frozen=True, slots=True)
class Account:
    """Who is counted, by which period, and the most parts in it (None: unlimited)."""

    name: str
    limit: int | None
    period: config.Period

    def line(self, dates: Dates) -> Line:
        """The line that the limit is about."""
        return Line(self.name, dates.month if self.period == "month" else LIFETIME)

    def reset(self, dates: Dates, now: float) -> int | None:
        """Whole seconds until it begins anew; None where it never does."""
        return max(1, math.ceil(dates.month_ends - now)) if self.period == "month" else None

    def lines(self, dates: Dates) -> tuple[Line, ...]:
        """Every line that a part counts on."""
        return tuple(Line(self.name, period) for period in (dates.day, dates.month, LIFETIME))


@dataclass(frozen=True, slots=True, eq=False)
class Accounts:
    """The two accounts of a call. Made once for each apikey, and told apart by being another one."""

    application: Account
    key: Account

    @property
    def both(self) -> tuple[Account, Account]:
        """The application's first."""
        return self.application, self.key

    @property
    def limited(self) -> tuple[Account, ...]:
        """Those that have a limit."""
        return tuple(account for account in self.both if account.limit is not None)


def application(name: str, entry: config.Application) -> Account:
    """The account of a whole application."""
    return Account(name, _limit(entry.parts), entry.period)


def accounts(name: str, entry: config.Application) -> dict[str, Accounts]:
    """The accounts of each apikey of an application, by the key's name."""
    whole = application(name, entry)
    return {
        key: Accounts(whole, Account(f"{name}/{key}", _limit(apikey.parts), entry.period))
        for key, apikey in entry.clients.items()
    }


def dates(now: float) -> Dates:
    """The dates of a moment in seconds since 1970."""
    midnight = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begins = midnight.timestamp()
    return Dates(
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


class Calendar:
    """The dates of this moment, worked out once a day."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._dates = dates(clock.now())

    def today(self) -> Dates:
        """The same object all day long."""
        return self.at(self._clock.now())

    def at(self, now: float) -> Dates:
        """The same, for who has asked the clock already."""
        if not self._dates.day_begins <= now < self._dates.day_ends:
            self._dates = dates(now)
        return self._dates


def _limit(parts: int | str) -> int | None:
    return parts if isinstance(parts, int) else None
