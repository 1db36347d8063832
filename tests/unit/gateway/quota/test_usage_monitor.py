"""Tests of usage warnings at 50, 80 and 95 %: each once per period, over all workers and restarts."""

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from unit.gateway.conftest import accounts

from proxy import errors
from proxy.gateway.quota import reservations, usage
from proxy.kit import clock

Quotas = Callable[..., reservations.Quota]

TO_DECEMBER = 1_388_800


def warnings(log_output: Any) -> Any:
    lines = map(json.loads, log_output.getvalue().splitlines())
    return [(line["percent"], line["quota_account"]) for line in lines if line["event"] == "quota threshold reached"]


async def spend(worker: Any, plan: Any, parts: Any) -> None:
    await (await worker.reserve(plan, parts)).settle(parts)
    await worker.refresh()


@pytest.mark.parametrize(
    "used,limit,expected",
    [
        (49, 100, []),
        (50, 100, [50]),
        (79, 100, [50]),
        (95, 100, [50, 80, 95]),
        (500, 100, [50, 80, 95]),
        (1, 2, [50]),
        (0, 0, []),
        (9, None, []),
    ],
)
def test_threshold_is_reached_at_its_share(used: int, limit: int | None, expected: Any) -> None:
    assert usage.reached(used, limit) == expected


async def test_each_threshold_is_logged_once_with_usage(quotas: Quotas, log_output: io.StringIO) -> None:
    plan = accounts(parts=100)
    worker = quotas(plan)
    for parts in (49, 1, 29, 1, 15, 1):
        await spend(worker, plan, parts)
    assert warnings(log_output) == [(50, "demo"), (80, "demo"), (95, "demo")]
    first = next(line for line in map(json.loads, log_output.getvalue().splitlines()) if line.get("percent") == 50)
    assert (first["level"], first["used"], first["uncertain"], first["limit"]) == ("warning", 50, 0, 100)
    assert first["period"] == "2023-11"


async def test_threshold_of_an_api_key_is_logged_by_name(quotas: Quotas, log_output: io.StringIO) -> None:
    plan = accounts(parts=1_000, own=10)
    worker = quotas(plan)
    await spend(worker, plan, 8)
    assert warnings(log_output) == [(50, "demo/erp"), (80, "demo/erp")]


async def test_threshold_is_logged_once_over_all_workers(quotas: Quotas, log_output: io.StringIO) -> None:
    plan = accounts(parts=100)
    for owner, parts in (("one", 60), ("other", 1), ("after a restart", 1)):
        await spend(quotas(plan, owner=owner), plan, parts)
    assert warnings(log_output) == [(50, "demo")]


async def test_threshold_is_logged_again_in_the_next_month(
    quotas: Quotas, log_output: io.StringIO, time: clock.ManualClock
) -> None:
    plan = accounts(parts=100)
    worker = quotas(plan)
    await spend(worker, plan, 60)
    time.advance(TO_DECEMBER)
    await worker.refresh()
    await spend(worker, plan, 60)
    assert warnings(log_output) == [(50, "demo")] * 2


async def test_unavailable_store_delays_a_warning(quotas: Quotas, store: Any, log_output: io.StringIO) -> None:
    plan = accounts(parts=100)
    worker = quotas(plan)
    await worker.refresh()
    held = await worker.reserve(plan, 60)
    store.away = True
    await held.settle(60)
    await worker.refresh()
    assert warnings(log_output) == []
    with pytest.raises(errors.QuotaExhausted):
        await worker.reserve(plan, 60)
    store.away = False
    await worker.refresh()
    assert warnings(log_output) == [(50, "demo")]
