"""Tests of forecasts: when it is reported that parts run out, and when no longer."""

import datetime

import pytest
from service.alerts.conftest import MakeGateway
from support import alert_gateway

from proxy.alerts import forecasts
from proxy.alerts.conditions import AlertCondition
from proxy.gateway.assembly import Gateway
from proxy.gateway.quota import accounts
from proxy.gateway.quota.accounts import QuotaAccount
from proxy.kit import clock
from proxy.stores.open import MemoryStore
from proxy.stores.protocols import LedgerEntry, Settlement, UsageIncrement

PLAN = QuotaAccount("demo", 1_000, "month")
TRIAL = QuotaAccount("trial", 1_000, "lifetime")
KEY = "forecast demo 2023-11 of 1000"


def at(day: int, hour: int = 12) -> float:
    """A time in November 2023."""
    return datetime.datetime(2023, 11, day, hour, tzinfo=datetime.UTC).timestamp()


async def gateway(
    make_gateway: MakeGateway,
    time: clock.ManualClock,
    used: int,
    days: list[int],
    now: float,
    account: QuotaAccount = PLAN,
) -> Gateway:
    """A gateway at a time, with usage of the period, and that of the last days, today's last."""
    time.advance(now - time.now())
    made = make_gateway()
    names = accounts.last_days(now, len(days))
    booked = tuple(
        UsageIncrement(LedgerEntry(account.name, day), parts, 0) for day, parts in zip(names, days, strict=True)
    )
    await made.store.settle(Settlement("a worker", 1, (), booked))
    alert_gateway.quota(made).use(account, used, period="2023-11" if account.period == "month" else "lifetime")
    return made


async def events(made: Gateway, known: tuple[str, ...] = ()) -> list[AlertCondition]:
    return await forecasts.read(made, known)


async def test_account_that_runs_out_is_reported_with_day_and_rate(
    make_gateway: MakeGateway, time: clock.ManualClock
) -> None:
    made = await gateway(make_gateway, time, 600, [50] * 6 + [25], at(14))
    (condition,) = await events(made)
    assert (condition.key, condition.event, condition.severity) == (KEY, "quota.forecast", "warning")
    assert condition.title == (
        "demo runs out on 2023-11-22 at the present rate of 50 parts a day: 400 of 1,000 are left (2023-11)."
    )
    assert condition.details == {
        "quota_account": "demo",
        "period": "2023-11",
        "used": 600,
        "uncertain": 0,
        "limit": 1000,
        "remaining": 400,
        "parts_per_day": 50.0,
        "runs_out_at": "2023-11-22T12:00:00Z",
    }
    assert await events(made, (KEY,)) == [condition]


@pytest.mark.parametrize(
    "why, used, days, now, account",
    [
        ("the parts last", 100, [50] * 6 + [25], at(14), PLAN),
        ("nothing is used any more", 600, [0] * 7, at(14), PLAN),
        ("the first days of a month", 600, [50] * 6 + [25], at(3, 23), PLAN),
        ("the first days of usage", 600, [0, 0, 0, 0, 50, 50, 25], at(14), PLAN),
        ("used up: quota.exhausted says so", 1_000, [50] * 6 + [25], at(14), PLAN),
        ("it would be on the last day", 200, [50] * 6 + [25], at(14), PLAN),
        ("a lifetime lasts for weeks", 275, [50] * 6 + [25], at(14), TRIAL),
        ("no limit", 600, [50] * 6 + [25], at(14), QuotaAccount("demo", None, "month")),
        ("switched off", 1, [50] * 6 + [25], at(14), QuotaAccount("demo", 0, "month")),
    ],
)
async def test_nothing_is_reported_without_need(
    make_gateway: MakeGateway,
    time: clock.ManualClock,
    why: str,
    used: int,
    days: list[int],
    now: float,
    account: QuotaAccount,
) -> None:
    assert await events(await gateway(make_gateway, time, used, days, now, account)) == [], why


@pytest.mark.parametrize("day, reported", [(3, False), (4, True)])
async def test_a_month_has_forecasts_from_its_fourth_day(
    make_gateway: MakeGateway, time: clock.ManualClock, day: int, reported: bool
) -> None:
    made = await gateway(make_gateway, time, 600, [50] * 6 + [25], at(day))
    assert bool(await events(made)) == reported


async def test_lifetime_is_reported_two_weeks_before_its_end(
    make_gateway: MakeGateway, time: clock.ManualClock
) -> None:
    made = await gateway(make_gateway, time, 400, [50] * 6 + [25], at(14), TRIAL)
    (condition,) = await events(made)
    assert condition.details["runs_out_at"] == "2023-11-26T12:00:00Z"


@pytest.mark.parametrize("used, stays", [(200, True), (1_000, True), (100, False)])
async def test_reported_forecast_stays_until_the_parts_last(
    make_gateway: MakeGateway, time: clock.ManualClock, used: int, stays: bool
) -> None:
    made = await gateway(make_gateway, time, used, [50] * 6 + [25], at(14))
    assert [each.key for each in await events(made, (KEY,))] == ([KEY] if stays else [])


async def test_store_holds_the_usage_of_all_processes(
    make_gateway: MakeGateway, time: clock.ManualClock, store: MemoryStore
) -> None:
    made = await gateway(make_gateway, time, 600, [0] * 7, at(14))
    day = accounts.last_days(at(14), 5)[0]
    await store.settle(Settlement("another worker", 1, (), (UsageIncrement(LedgerEntry("demo", day), 0, 300),)))
    assert [each.key for each in await events(made)] == [KEY]
