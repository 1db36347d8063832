"""Quotas as a process knows them: usage of accounts, and those that the upstream refuses as exhausted: nothing more is
sent for one until it is reset, by any process."""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
import structlog
from prometheus_client.core import GaugeMetricFamily, Metric

from proxy import errors, model
from proxy.gateway.applications import NEVER_SECONDS, Application, ChargedAccount, Client
from proxy.kit.clock import Clock
from proxy.store.protocol import Account, Usage
from proxy.store.store import Store
from proxy.upstream import classify

EXHAUSTED = "exhausted "  # how the keys of exhausted quotas begin; the account follows
RETRY_SECONDS = 900.0  # for which a refusal is taken on the 1st of a month, and of a tier without parts
GAUGES = {
    "used": "Parts used in the period",
    "uncertain": "Parts that may have been billed",
    "reserved": "Parts reserved by requests in flight",
    "remaining": "Parts remaining of the limit",
}

log = structlog.get_logger()


class Exhausted(NamedTuple):
    """Refusal of the upstream: its message, and when its quota may have parts again, in seconds since 1970."""

    message: str
    until: float


_decode = msgspec.json.Decoder(Exhausted).decode


class ExhaustedQuotas:
    """Quotas that the upstream has refused, by the application's account."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._exhausted: dict[str, Exhausted] = {}
        self._unsaved: dict[str, Exhausted] = {}

    def error(self, application: Application) -> errors.QuotaExhausted | None:
        """Return the error of a request that would be refused."""
        exhausted = self._exhausted.get(application.account) if self._exhausted else None
        if exhausted is None or exhausted.until <= self._clock.now():
            return None
        wait = max(1, math.ceil(exhausted.until - self._clock.now()))
        has_no_parts = classify.part_limit(exhausted.message) == 0
        return errors.QuotaExhausted(exhausted.message, retry_after=None if has_no_parts else wait)

    async def mark(self, client: Client, error: errors.QuotaExhausted) -> None:
        """Keep a refusal, for all processes; where the store is unavailable, with the next refresh."""
        if self.error(client.application) is not None:
            return  # by several requests in flight
        now, account, limit = self._clock.now(), client.application.account, classify.part_limit(error.message)
        date = datetime.fromtimestamp(now, UTC)
        # No date resets a limit of 0, only a larger tier does. At what hour a month begins upstream is not documented:
        # a refusal on the 1st may be about the month before.
        if limit == 0 or (client.charged[0].period == "month" and date.day == 1):
            seconds = RETRY_SECONDS
        else:
            seconds = client.charged[0].reset_seconds(now) or NEVER_SECONDS
        self._exhausted[account] = self._unsaved[account] = Exhausted(error.message, now + seconds)
        until = datetime.fromtimestamp(now + seconds, UTC).isoformat()
        log.warning("quota exhausted", application=client.application.name, part_limit=limit, until=until)
        with contextlib.suppress(errors.StoreUnavailable):
            await self._save()

    async def refresh(self, accounts: Sequence[str]) -> None:
        """Learn what other processes have marked, and what was cleared. Raises StoreUnavailable."""
        await self._save()
        marked = await stored_exhausted(self._store, accounts)
        for account in accounts:
            self._exhausted.pop(account, None)
        self._exhausted |= marked

    async def _save(self) -> None:
        for account, refused in list(self._unsaved.items()):
            text, seconds = msgspec.json.encode(refused).decode(), refused.until - self._clock.now()
            await self._store.put_value(f"{EXHAUSTED}{account}", text, seconds)
            self._unsaved.pop(account, None)  # another task may have saved it meanwhile


Usages = Mapping[tuple[str, str], Usage]  # by account and period


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
        self._usage = await stored_usage(self._store, charged, self._clock.now())
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
            rows = [(each, usage_of(self._usage, each, now)) for each in limited]
            charged, usage = min(rows, key=lambda row: (row[0].limit or 0) - row[1].used - row[1].uncertain)
            status = model.QuotaStatus(usage.used + usage.uncertain, charged.limit, charged.reset_seconds(now))
            self._statuses[key] = status
        return self._statuses[key]

    def gauges(self, charged: Iterable[ChargedAccount]) -> list[Metric]:
        """Return the metrics of accounts."""
        gauges = {
            name: GaugeMetricFamily(f"v3bridge_parts_{name}", meaning, labels=("quota_account",))
            for name, meaning in GAUGES.items()
        }
        for each in charged:
            usage = usage_of(self._usage, each, self._clock.now())
            if each.limit is not None:
                gauges["remaining"].add_metric((each.name,), max(0, each.limit - usage.used - usage.uncertain))
            for name in ("used", "uncertain", "reserved"):
                gauges[name].add_metric((each.name,), getattr(usage, name))
        return [*gauges.values()]


async def stored_exhausted(store: Store, accounts: Sequence[str]) -> Mapping[str, Exhausted]:
    """Return the quotas of accounts that are marked as exhausted. Raises StoreUnavailable."""
    texts = await store.values([f"{EXHAUSTED}{account}" for account in accounts])
    return {account: _decode(text) for account, text in zip(accounts, texts, strict=True) if text is not None}


async def stored_usage(store: Store, charged: Iterable[ChargedAccount], now: float) -> dict[tuple[str, str], Usage]:
    """Return the usage of accounts in their present periods, where there is any. Raises StoreUnavailable."""
    return {row[:2]: row for row in await store.usage({each.in_period(now)[:2] for each in charged})}


def usage_of(usages: Usages, charged: ChargedAccount, now: float) -> Usage:
    """Return the usage of an account in its present period."""
    pair = charged.in_period(now)[:2]
    return usages.get(pair) or Usage(*pair)
