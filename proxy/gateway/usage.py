"""How every account stands, as rows: what was used, what is left, when it begins anew, when it runs out. Pure.

Used by `v3bridge usage`, which reads the store and shows them. Keys that the configuration no longer has are part of
their application's figures and have no row.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from proxy import config
from proxy.gateway import forecast, plans
from proxy.gateway.closures import FAR
from proxy.stores.base import Closure, Line, State


class Row(msgspec.Struct, frozen=True):
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
    states: Iterable[State],
    closures: Iterable[Closure],
    now: float,
) -> list[Row]:
    """A row for each application and one for each of its keys, in the order of the configuration."""
    known = _Known(
        {state.line: state for state in states},
        {closure.account: closure for closure in closures},
        plans.dates(now),
        now,
    )
    found = []
    for name, entry in applications.items():
        found.append(_row(plans.application(name, entry), name, None, known))
        found += [_row(accounts.key, name, key, known) for key, accounts in plans.accounts(name, entry).items()]
    return found


class _Known(NamedTuple):
    """What there is to know at one moment."""

    states: Mapping[Line, State]
    closures: Mapping[str, Closure]
    dates: plans.Dates
    now: float

    def state(self, line: Line) -> State:
        return self.states.get(line) or State(line, 0, 0, 0)

    def spent(self, account: str, day: str) -> int:
        state = self.state(Line(account, day))
        return state.used + state.doubtful


def _row(account: plans.Account, application: str, key: str | None, known: _Known) -> Row:
    state = known.state(account.line(known.dates))
    spent = state.used + state.doubtful
    ends = known.dates.month_ends if account.period == "month" else None
    days = [known.spent(account.name, day) for day in plans.last_days(known.now, forecast.DAYS)]
    closure = known.closures.get(account.name)
    return Row(
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
