"""Fixtures: a store that can fail, a quota on it driven by the test, and projections of parts, compiled once."""

import io
from collections.abc import Callable, Iterator
from typing import Literal

import pytest
from support import log_lines

from proxy import errors, model
from proxy.gateway.cache.entries import ItemRenderer
from proxy.gateway.quota import accounts as quota_accounts
from proxy.gateway.quota import reservations
from proxy.kit import clock, shipped
from proxy.mapping import compiler, loader
from proxy.stores.open import MemoryStore
from proxy.telemetry import metrics


class Moody(MemoryStore):
    """A store in memory that raises StoreUnavailable while `away`; with `deaf`, after it has done the operation."""

    def __init__(self, time: clock.Clock) -> None:
        super().__init__(time)
        self.away = self.deaf = False
        self.operations: list[str] = []

    def __getattribute__(self, name: str) -> object:
        found = super().__getattribute__(name)
        if name.startswith("_") or not callable(found) or name in ("aclose", "journal"):
            return found

        async def moody(*values: object) -> object:
            self.operations.append(name)
            if self.away:
                raise errors.StoreUnavailable("the store is away")
            result = await found(*values)
            if self.deaf:
                raise errors.StoreUnavailable("the response was lost")
            return result

        return moody


@pytest.fixture
def time() -> clock.ManualClock:
    """2023-11-14T22:13:20Z, until it is turned."""
    return clock.ManualClock()


@pytest.fixture
def store(time: clock.ManualClock) -> Moody:
    return Moody(time)


@pytest.fixture
def counted() -> metrics.Metrics:
    return metrics.Metrics()


@pytest.fixture
def log_output() -> Iterator[io.StringIO]:
    """Fixture: captured log output."""
    with log_lines.collected() as stream:
        yield stream


def accounts(
    parts: int | None = None,
    own: int | None = None,
    period: Literal["month", "lifetime"] = "month",
    name: str = "demo",
    key: str = "erp",
) -> quota_accounts.ChargedAccounts:
    """Return the quota accounts of one API key."""
    return quota_accounts.ChargedAccounts(
        quota_accounts.QuotaAccount(name, parts, period), quota_accounts.QuotaAccount(f"{name}/{key}", own, period)
    )


@pytest.fixture
def quotas(store: Moody, time: clock.ManualClock, counted: metrics.Metrics) -> Callable[..., reservations.Quota]:
    """Makes a worker's quota, which looks only when it is told to."""

    def made(
        *plans_: quota_accounts.ChargedAccounts, owner: str = "worker", on: MemoryStore = store
    ) -> reservations.Quota:
        return reservations.Quota(on, plans_, owner, time, counted)

    return made


@pytest.fixture(scope="session")
def renderer() -> Callable[..., ItemRenderer]:
    """Return the compiled mapping of parts for a projection of these top-level fields."""
    book = loader.load(shipped.path("mappings"))
    known: dict[tuple[str, ...], ItemRenderer] = {}

    def read(*fields: str) -> ItemRenderer:
        if fields not in known:
            projection = model.Projection(show=frozenset((field,) for field in fields))
            part = compiler.compile_object(book, "Part", projection)
            known[fields] = ItemRenderer(projection, part, part.fields)
        return known[fields]

    return read
