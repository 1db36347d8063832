"""Limits of applications and API keys: over two processes, for a lifetime, and where a month ends."""

import concurrent.futures
import datetime
import time
from collections import Counter

from acceptance import bills, running

DAY = 86_400.0
LIMIT = 40


def statuses(service: running.Service, wanted: list[str], key: str) -> Counter[int]:
    """Request numbers with a key, each alone and all at once, and count the statuses."""
    responses = bills.at_once(service.get, [bills.match(number, key=key, limit=1) for number in wanted])
    assert all(each.json["__class__"] == "ClientErrorResponse" for each in responses if each.status == 429)
    return Counter(each.status for each in responses)


def test_limits_of_application_and_keys_hold_over_two_processes(processes: running.Processes) -> None:
    sandbox = bills.sandbox(processes)
    keys = "[{key: erp, name: erp, parts: 7}, {key: nightly, name: nightly, parts: 30%}, {key: shop, name: shop}]"
    demo = bills.application(sandbox, f"parts: {LIMIT}, apikeys: {keys}")
    service = processes.service(bills.configuration(sandbox, demo=demo), "--workers", "2")
    lines = bills.numbers(90)
    assert statuses(service, lines[:20], "erp") == {200: 7, 429: 13}
    assert statuses(service, lines[20:40], "nightly") == {200: 12, 429: 8}  # 30 % of 40
    assert statuses(service, lines[40:70], "shop") == {200: 21, 429: 9}
    assert sandbox.parts == LIMIT
    usage = bills.usage(service)
    assert usage.pop("demo") == (LIMIT, 0, 0, LIMIT)
    assert usage == {"demo/erp": (7, 0, 0, 7), "demo/nightly": (12, 0, 0, 12), "demo/shop": (21, 0, 0, None)}


def is_served(service: running.Service, number: str, key: str, limit: int = 1) -> bool:
    """Request a part; return whether it came, and was not refused by the limit."""
    response = service.get(bills.match(number, key=key, limit=limit))
    assert response.status in (200, 429), response.text
    return response.status == 200


def next_month(clock: running.Clock) -> float:
    """Return when the clock's next month begins, in seconds since 1970."""
    today = datetime.datetime.fromtimestamp(time.time() + clock.ahead, datetime.UTC)
    later = today.replace(day=1, hour=0, minute=0, second=0, microsecond=0) + datetime.timedelta(days=31)
    return later.replace(day=1).timestamp()


def test_month_is_renewed_also_under_a_request_and_a_lifetime_is_not(
    processes: running.Processes, clock: running.Clock
) -> None:
    sandbox = bills.sandbox(processes, clock=clock)
    monthly = bills.application(sandbox, "apikeys: [monthly], parts: 8")
    lifetime = bills.application(sandbox, "apikeys: [lifetime], parts: 3, period: lifetime", second=True)
    text = bills.configuration(sandbox, monthly=monthly, lifetime=lifetime)
    service = processes.service(text, clock=clock)
    lines = iter(bills.numbers(90))
    assert [is_served(service, next(lines), "lifetime") for _ in range(4)] == [True] * 3 + [False]
    assert [is_served(service, next(lines), "monthly") for _ in range(9)] == [True] * 8 + [False]
    clock.turn_to(next_month(clock))
    assert is_served(service, next(lines), "monthly")
    assert not is_served(service, next(lines), "lifetime")
    clock.turn_to(next_month(clock) - 3)
    sandbox.inject("latency ms=6000 count=1")
    with concurrent.futures.ThreadPoolExecutor(1) as client:
        assert client.submit(
            is_served, service, "SN74S74N", "monthly", limit=3
        ).result()  # three parts, in the next month
    before = bills.usage(service)["monthly"]
    assert (before.used, before.reserved) == (3, 0)
    assert [is_served(service, next(lines), "monthly") for _ in range(6)] == [True] * 5 + [False]
    assert bills.billed(sandbox) == [8 + 1 + 3 + 5, 3]
    after = bills.usage(service)
    assert (after["monthly"].used, after["lifetime"].used) == (8, 3)
