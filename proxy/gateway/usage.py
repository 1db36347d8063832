"""Usage of accounts: as responses show it, as metrics, and as rows of `v3bridge usage` and of the status."""

from collections.abc import Iterable, Mapping

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric

from proxy import model
from proxy.gateway.applications import Applications, ChargedAccount, Client
from proxy.gateway.quota import Exhausted
from proxy.kit import wording
from proxy.kit.clock import Clock
from proxy.store.protocol import Account, Usage
from proxy.store.store import Store
from proxy.upstream import classify

Used = Mapping[tuple[str, str], Usage]  # by account and period


class KnownUsage:
    """Usage of accounts in their present periods, as this process knows it: read from the store once a second, and
    exact for what the process itself books."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._usage: dict[tuple[str, str], Usage] = {}
        self._statuses: dict[tuple[str, int], model.QuotaStatus] = {}  # of API keys, in a second

    async def refresh(self, charged: Iterable[ChargedAccount]) -> None:
        """Read the usage of accounts. Raises StoreUnavailable."""
        self._usage = await stored(self._store, charged, self._clock.now())
        self._statuses.clear()

    def add(self, accounts: Iterable[Account], used: int, uncertain: int) -> None:
        """Add what was booked."""
        self._statuses.clear()
        for pair in {account[:2] for account in accounts}:
            old = self._usage.get(pair) or Usage(*pair)
            self._usage[pair] = old._replace(used=old.used + used, uncertain=old.uncertain + uncertain)

    def status(self, client: Client) -> model.QuotaStatus:
        """Return the status of the limit with the least remaining, or of the application where nothing is limited."""
        now = self._clock.now()
        key = client.charged[-1].id, int(now)
        if key not in self._statuses:
            limited = [each for each in client.charged if each.limit is not None] or client.charged[:1]
            rows = [(each, _of(self._usage, each, now)) for each in limited]
            charged, usage = min(rows, key=lambda row: (row[0].limit or 0) - row[1].used - row[1].uncertain)
            status = model.QuotaStatus(usage.used + usage.uncertain, charged.limit, charged.reset_seconds(now))
            self._statuses[key] = status
        return self._statuses[key]

    def gauges(self, charged: Iterable[ChargedAccount]) -> list[Metric]:
        """Return the metrics of accounts."""
        used = _gauge("v3bridge_parts_used", "Parts used in the period")
        uncertain = _gauge("v3bridge_parts_uncertain", "Parts that may have been billed")
        reserved = _gauge("v3bridge_parts_reserved", "Parts reserved by requests in flight")
        remaining = _gauge("v3bridge_parts_remaining", "Parts remaining of the limit")
        for each in charged:
            usage = _of(self._usage, each, self._clock.now())
            used.add_metric((each.name,), usage.used)
            uncertain.add_metric((each.name,), usage.uncertain)
            reserved.add_metric((each.name,), usage.reserved)
            if each.limit is not None:
                remaining.add_metric((each.name,), max(0, each.limit - usage.used - usage.uncertain))
        return [used, uncertain, reserved, remaining]


class UsageRow(msgspec.Struct, frozen=True):
    """Usage of one account in its period. Times are RFC 3339 in UTC.

    `key` is null in the application's own row, `limit`, `remaining` and `percent` where nothing is limited, `resets_at`
    for a lifetime, `exhausted_until` where upstream has not refused the quota as exhausted; `part_limit` is the limit
    that it named then, 0 for a tier without parts. `limit` is that of the configuration, or `part_limit` where that is
    lower.
    """

    application: str
    key: str | None
    period: str
    used: int
    uncertain: int
    reserved: int
    limit: int | None
    remaining: int | None
    percent: float | None
    resets_at: str | None
    exhausted_until: str | None
    part_limit: int | None

    @property
    def name(self) -> str:
        """Name of the account, such as `demo` or `demo/erp`."""
        return self.application if self.key is None else f"{self.application}/{self.key}"


def rows(applications: Applications, usages: Used, exhausted: Mapping[str, Exhausted], now: float) -> list[UsageRow]:
    """Make a row for each application and one for each of its API keys, in the order of the configuration."""
    made: dict[tuple[str, str | None], UsageRow] = {}
    for client in applications.clients.values():
        for charged, key in zip(client.charged, (None, client.key), strict=True):
            usage, refusal = _of(usages, charged, now), exhausted.get(charged.id) if key is None else None
            part_limit = classify.part_limit(refusal.message) if refusal else None
            # What the upstream says holds for the running period: it knows its plan, and who else uses it.
            limit = min((each for each in (charged.limit, part_limit) if each is not None), default=None)
            counted, reset = usage.used + usage.uncertain, charged.reset_seconds(now)
            made[client.application.name, key] = UsageRow(
                client.application.name,
                key,
                *usage[1:],
                limit,
                remaining=None if limit is None else max(0, limit - counted),
                percent=None if not limit else round(100 * counted / limit, 1),
                resets_at=None if reset is None else wording.rfc3339(now + reset),
                exhausted_until=None if refusal is None else wording.rfc3339(refusal.until),
                part_limit=part_limit,
            )
    return [*made.values()]


async def stored(store: Store, charged: Iterable[ChargedAccount], now: float) -> dict[tuple[str, str], Usage]:
    """Return the usage of accounts in their present periods, where there is any. Raises StoreUnavailable."""
    return {row[:2]: row for row in await store.usage({each.in_period(now)[:2] for each in charged})}


def _of(usages: Used, charged: ChargedAccount, now: float) -> Usage:
    pair = charged.in_period(now)[:2]
    return usages.get(pair) or Usage(*pair)


def _gauge(name: str, meaning: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, labels=("quota_account",))
