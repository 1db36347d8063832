"""Tests of fair share: an API key has a share in per cent of its application."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from service.gateway.quota.conftest import NOVEMBER, TO_DECEMBER, Quotas, refused, state

from proxy import config, errors
from proxy.gateway.quota import accounts, reservations
from proxy.kit import clock
from proxy.stores.open import MemoryStore
from proxy.telemetry import metrics

LIMIT = 100


def plan(period: config.Period = "month") -> Sequence[accounts.ChargedAccounts]:
    """Quota accounts of the keys nightly, with 30 % of 100 parts, and erp."""
    entry = config.ApplicationSettings(
        apikeys=(
            config.ApiKeySettings(config.digest("a"), name="nightly", parts="30%"),
            config.ApiKeySettings(config.digest("b"), name="erp"),
        ),
        parts=LIMIT,
        period=period,
    )
    return list(accounts.charged_accounts("demo", entry).values())


async def use(worker: Any, charged: accounts.ChargedAccounts, parts: int) -> None:
    await (await worker.reserve(charged, parts)).settle(parts)


async def test_share_ends_at_its_percentage_and_says_so(quotas: Quotas) -> None:
    nightly, erp = plan()
    worker = quotas(nightly, erp)
    await use(worker, nightly, 28)
    error = await refused(worker, nightly, 3)
    assert (error.status, error.retry_after) == (429, TO_DECEMBER)
    assert error.message == (
        "demo/nightly has 2 of 30 parts left, its share of 30 % of demo (2023-11), and this request may cost 3; "
        "it is reset on 2023-12-01"
    )
    await use(worker, nightly, 2)
    await use(worker, erp, 70)


async def test_parts_that_others_hold_count_against_what_is_left(quotas: Quotas) -> None:
    nightly, erp = plan()
    worker = quotas(nightly, erp)
    held = await worker.reserve(erp, 96)
    assert (await refused(worker, nightly, 5)).retry_after == 1
    await held.settle(10)
    await use(worker, nightly, 5)


async def test_lifetime_is_never_reset(quotas: Quotas) -> None:
    nightly, erp = plan("lifetime")
    worker = quotas(nightly, erp)
    await use(worker, nightly, 30)
    assert (await refused(worker, nightly)).message.endswith("and this request may cost 1; it is never reset")


async def test_status_is_that_of_the_share_with_the_least_remaining(quotas: Quotas) -> None:
    nightly, erp = plan()
    worker = quotas(nightly, erp)
    await worker.refresh()
    assert worker.status(nightly)[:2] == (0, 30)
    await use(worker, erp, 80)
    assert worker.status(nightly)[:2] == (80, 100)
    assert worker.status(erp)[:2] == (80, 100)


REQUESTS = st.lists(
    st.tuples(
        st.booleans(),
        st.booleans(),
        st.integers(1, 20),
        st.integers(0, 20),
        st.sampled_from(["settle", "hold", "fail"]),
    ),
    max_size=60,
)


@given(requests=REQUESTS)
@settings(max_examples=60, deadline=None)
async def test_shares_hold_over_workers_in_any_order(
    requests: list[tuple[bool, bool, int, int, str]],
) -> None:
    """Two workers, two keys: what is used, uncertain or held never exceeds the limit, that of nightly never
    30."""
    time = clock.ManualClock()
    store, charged = MemoryStore(time), plan()
    counted = metrics.Metrics()
    workers = [reservations.Quota(store, charged, owner, time, counted) for owner in ("one", "two")]
    for worker in workers:
        await worker.refresh()
    nightly_entry = NOVEMBER._replace(account="demo/nightly")
    for is_other, is_erp, parts, returned, end in requests:
        try:
            reservation = await workers[is_other].reserve(charged[is_erp], parts)
        except errors.QuotaExhausted:
            continue
        total, of_nightly = [sum(await state(store, entry)) for entry in (NOVEMBER, nightly_entry)]
        assert total <= LIMIT
        assert of_nightly <= 30
        if end == "settle":
            await reservation.settle(min(returned, parts))
        elif end == "fail":
            await reservation.release(errors.UpstreamUnreachable("gone", may_be_billed=True))
    assert sum(await state(store)) <= LIMIT


@pytest.mark.parametrize("parts, limit", [("30%", 30), ("1 %", 1), (12, 12), ("unlimited", None)])
def test_share_is_rounded_down(parts: Any, limit: int | None) -> None:
    key = config.ApiKeySettings(config.digest("a"), name="k", parts=parts)
    entry = config.ApplicationSettings(apikeys=(key,), parts=101)
    assert accounts.charged_accounts("demo", entry)["k"].key.limit == limit
