"""Usage of accounts: as responses show it, as metrics, and as rows of `v3bridge usage` and of the status."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from prometheus_client.core import GaugeMetricFamily, Metric

from proxy import model
from proxy.gateway.applications import Applications, ChargedAccount, Client
from proxy.gateway.quota import Exhausted
from proxy.kit import wording
from proxy.store.protocol import Account, Usage
from proxy.store.store import Store
from proxy.upstream import classify

Pair = tuple[str, str]  # account and period


class KnownUsage:
    """Usage of accounts in their present periods, as this process knows it: read from the store once a second, and
    exact for what the process itself books."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._usage: dict[Pair, Usage] = {}
        self._statuses: dict[str, model.QuotaStatus] = {}  # of API keys, in this second
        self._second = 0

    async def refresh(self, charged: Iterable[ChargedAccount], now: float) -> None:
        """Read the usage of accounts. Raises StoreUnavailable."""
        self._usage = await stored(self._store, charged, now)
        self._statuses.clear()

    def add(self, accounts: Iterable[Account], used: int, uncertain: int) -> None:
        """Add what was booked."""
        self._statuses.clear()
        for pair in {account[:2] for account in accounts}:
            old = self._usage.get(pair) or Usage(*pair, 0, 0, 0)
            self._usage[pair] = Usage(*pair, old.used + used, old.uncertain + uncertain, old.reserved)

    def status(self, client: Client, now: float) -> model.QuotaStatus:
        """Return the status of the limit with the least remaining, or of the application where nothing is limited."""
        if int(now) != self._second:
            self._second = int(now)
            self._statuses.clear()
        status = self._statuses.get(client.charged[-1].id)
        if status is None:
            limited = [each for each in client.charged if each.limit is not None] or client.charged[:1]
            used, charged = min(
                ((self._counted(each, now), each) for each in limited), key=lambda both: (both[1].limit or 0) - both[0]
            )
            status = model.QuotaStatus(used, charged.limit, charged.reset_seconds(now))
            self._statuses[client.charged[-1].id] = status
        return status

    def gauges(self, charged: Iterable[ChargedAccount], now: float) -> list[Metric]:
        """Return the metrics of accounts."""
        used = _gauge("v3bridge_parts_used", "Parts used in the period")
        uncertain = _gauge("v3bridge_parts_uncertain", "Parts that may have been billed")
        reserved = _gauge("v3bridge_parts_reserved", "Parts reserved by requests in flight")
        remaining = _gauge("v3bridge_parts_remaining", "Parts remaining of the limit")
        for each in charged:
            usage = _of(self._usage, each, now)
            used.add_metric((each.name,), usage.used)
            uncertain.add_metric((each.name,), usage.uncertain)
            reserved.add_metric((each.name,), usage.reserved)
            if each.limit is not None:
                remaining.add_metric((each.name,), max(0, each.limit - usage.used - usage.uncertain))
        return [used, uncertain, reserved, remaining]

    def _counted(self, charged: ChargedAccount, now: float) -> int:
        usage = _of(self._usage, charged, now)
        return usage.used + usage.uncertain


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


def rows(
    applications: Applications, usage: Mapping[Pair, Usage], exhausted: Mapping[str, Exhausted], now: float
) -> list[UsageRow]:
    """Make a row for each application and one for each of its API keys, in the order of the configuration."""
    made: list[UsageRow] = []
    for client in applications.clients.values():
        whole, key = client.charged
        name = client.application.name
        if not made or made[-1].application != name:
            made.append(_row((name, None), whole, _of(usage, whole, now), exhausted.get(whole.id), now))
        made.append(_row((name, client.key), key, _of(usage, key, now), None, now))
    return made


async def stored(store: Store, charged: Iterable[ChargedAccount], now: float) -> dict[Pair, Usage]:
    """Return the usage of accounts in their present periods. Raises StoreUnavailable."""
    pairs = {each.in_period(now)[:2] for each in charged}
    return {pair: Usage(*pair, 0, 0, 0) for pair in pairs} | {row[:2]: row for row in await store.usage(pairs)}


def charged(applications: Applications) -> Sequence[ChargedAccount]:
    """Return the accounts of applications and API keys, each once."""
    return [*dict.fromkeys(each for client in applications.clients.values() for each in client.charged)]


def _row(
    names: tuple[str, str | None], charged: ChargedAccount, usage: Usage, exhausted: Exhausted | None, now: float
) -> UsageRow:
    application, key = names
    counted = usage.used + usage.uncertain
    reset = charged.reset_seconds(now)
    part_limit = classify.part_limit(exhausted.message) if exhausted else None
    # What the upstream says holds for the running period: it knows its plan, and who else uses it.
    limit = min((each for each in (charged.limit, part_limit) if each is not None), default=None)
    return UsageRow(
        application=application,
        key=key,
        period=usage.period,
        used=usage.used,
        uncertain=usage.uncertain,
        reserved=usage.reserved,
        limit=limit,
        remaining=None if limit is None else max(0, limit - counted),
        percent=None if not limit else round(100 * counted / limit, 1),
        resets_at=None if reset is None else wording.rfc3339(now + reset),
        exhausted_until=None if exhausted is None else wording.rfc3339(exhausted.until),
        part_limit=part_limit,
    )


def _of(usages: Mapping[Pair, Usage], charged: ChargedAccount, now: float) -> Usage:
    pair = charged.in_period(now)[:2]
    return usages.get(pair) or Usage(*pair, 0, 0, 0)


def _gauge(name: str, meaning: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, meaning, labels=("quota_account",))
