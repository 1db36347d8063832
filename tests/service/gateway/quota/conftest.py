"""Fixtures of the quota tests: a worker's quota with a limit of 100 parts, and what the store has of it."""

from collections.abc import Callable
from typing import Any

import pytest
from service.gateway.conftest import accounts

from proxy import errors
from proxy.gateway.quota import reservations
from proxy.stores.protocols import LedgerEntry

Quotas = Callable[..., reservations.Quota]

NOVEMBER, DECEMBER = LedgerEntry("demo", "2023-11"), LedgerEntry("demo", "2023-12")
TO_DECEMBER = 1_388_800  # seconds from 2023-11-14T22:13:20Z
USED_UP = "You have exceeded your part limit of 100."


async def state(store: Any, entry: Any = NOVEMBER) -> Any:
    """Return used, uncertain and reserved parts, as the store has them."""
    (usage,) = await store.usage([entry])
    return usage[1:]


async def refused(worker: Any, plan: Any, parts: int = 1) -> Any:
    """Return the error of a reservation that is refused."""
    with pytest.raises(errors.QuotaExhausted) as caught:
        await worker.reserve(plan, parts)
    return caught.value


@pytest.fixture
def small_plan() -> Any:
    return accounts(parts=100)


@pytest.fixture
async def worker(quotas: Quotas, small_plan: Any) -> Any:
    quota = quotas(small_plan)
    await quota.refresh()
    return quota
