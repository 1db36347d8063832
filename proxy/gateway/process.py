"""What a process knows beside its configuration, so that a reload loses none of it: usage and quotas of accounts, rates
of API keys, flights, lists, and the state of the circuit breaker.

Nothing more is sent for a quota that the upstream refuses as exhausted until it is reset, by any process.
"""

import asyncio
import contextlib
import math
import random
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

import cachetools
import msgspec
import structlog
from prometheus_client.core import GaugeMetricFamily

from proxy import errors, model
from proxy.gateway.applications import NEVER_SECONDS, Application, ChargedAccount, Client, periods
from proxy.gateway.flights import Flight, Flights
from proxy.gateway.free_operations import Lists
from proxy.kit import counted, rfc3339
from proxy.kit.clock import Clock, SlidingWindow, Window
from proxy.mapping import loader
from proxy.metrics import Metrics
from proxy.planning.documents import ProjectionCache
from proxy.store.protocol import DAY_SECONDS, Account, Finish, Usage
from proxy.store.store import Store
from proxy.upstream import classify
from proxy.upstream.sending import CircuitBreaker

ADDRESSES_MAX = 4_096  # whose wrong keys are counted; the least recently used is forgotten
EXHAUSTED = "exhausted "  # how the keys of exhausted quotas begin; the account follows
RETRY_SECONDS = 900.0  # for which a refusal is taken on the 1st of a month, and of a tier without parts
NO_USAGE = Usage("", "")
GAUGES = {
    "used": "Parts used in the period",
    "uncertain": "Parts that may have been billed",
    "reserved": "Parts reserved by requests in flight",
    "remaining": "Parts remaining of the limit",
}

Booking = tuple[Flight, Finish]  # the end of a flight's reservation

# What the mappings are made of, and the mappings with their compiled projections.
Translation = tuple[tuple[str, str], loader.Mappings, ProjectionCache]

log = structlog.get_logger()


class _Exhausted(NamedTuple):
    """Refusal of the upstream: its message, and when its quota may have parts again, in seconds since 1970."""

    message: str
    until: float


_decode = msgspec.json.Decoder(_Exhausted).decode


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


@dataclass(eq=False)
class Quotas:
    """Usage and exhausted quotas of accounts in their present periods, as this process knows them: read from the store
    once a second, and exact for what the process itself books."""

    store: Store
    clock: Clock
    _usage: dict[tuple[str, str], Usage] = field(default_factory=dict)  # by account and period
    _exhausted: dict[str, _Exhausted] = field(default_factory=dict)  # by the application's account

    async def refresh(self, charged: Collection[ChargedAccount]) -> None:
        """Read the usage of accounts, and which of their quotas other processes have marked as exhausted, or cleared.
        Raises StoreUnavailable."""
        accounts, day = [*{each.id for each in charged}], self.clock.now() // DAY_SECONDS
        found = await self.store.usage({periods((each,), day).own[0][:2] for each in charged})
        self._usage = {row[:2]: row for row in found}
        texts = await self.store.values([f"{EXHAUSTED}{account}" for account in accounts])
        for account, marked in zip(accounts, texts, strict=True):
            if marked is None:
                self._exhausted.pop(account, None)
            else:
                self._exhausted[account] = _decode(marked)

    def add(self, accounts: Iterable[Account], used: int, uncertain: int) -> None:
        """Add what was booked to the usage of accounts in the periods that their limits apply to."""
        for account, period, _ in accounts:
            old = self._usage.get((account, period), NO_USAGE)
            parts = old.used + used, old.uncertain + uncertain, old.reserved
            self._usage[account, period] = Usage(account, period, *parts)

    async def mark_exhausted(self, client: Client, error: errors.QuotaExhausted) -> None:
        """Keep a refusal, for all processes. Where the store is unavailable, the next one is kept."""
        if self.refusal(client.application) is not None:
            return  # by several requests in flight
        now, account, limit = self.clock.now(), client.application.account, classify.part_limit(error.message)
        reset = periods(client.charged, now // DAY_SECONDS).reset
        # No date resets a limit of 0, only a larger tier does. At what hour a month begins upstream is not documented:
        # a refusal on the 1st may be about the month before.
        if limit == 0 or (reset and datetime.fromtimestamp(now, UTC).day == 1):
            until = now + RETRY_SECONDS
        else:
            until = reset or now + NEVER_SECONDS
        self._exhausted[account] = refused = _Exhausted(error.message, until)
        shown = datetime.fromtimestamp(until, UTC).isoformat()
        log.warning("quota exhausted", application=client.application.name, part_limit=limit, until=shown)
        with contextlib.suppress(errors.StoreUnavailable):
            text = msgspec.json.encode(refused).decode()
            await self.store.put_value(f"{EXHAUSTED}{account}", text, until - now)

    def refusal(self, application: Application) -> errors.QuotaExhausted | None:
        """Return the error of a request that the upstream would refuse; None if it would not."""
        exhausted = self._exhausted.get(application.account) if self._exhausted else None
        if exhausted is None or exhausted.until <= self.clock.now():
            return None
        wait = max(1, math.ceil(exhausted.until - self.clock.now()))
        has_no_parts = classify.part_limit(exhausted.message) == 0
        return errors.QuotaExhausted(exhausted.message, retry_after=None if has_no_parts else wait)

    def status(self, client: Client) -> model.QuotaStatus:
        """Return the status of the limit with the least remaining, or of the application where nothing is limited."""
        now = self.clock.now()
        _, own, reset = periods(client.charged, now // DAY_SECONDS)
        limited = [each for each in own if each.limit is not None] or own[:1]
        counted = [(sum(self._usage.get(each[:2], NO_USAGE)[2:4]), each.limit) for each in limited]
        used, limit = min(counted, key=lambda row: (row[1] or 0) - row[0])
        return model.QuotaStatus(used, limit, None if reset is None else math.ceil(reset - now))

    def rows(self, charged: Iterable[ChargedAccount]) -> list[UsageRow]:
        """Make a row for each account."""
        rows, day = [], self.clock.now() // DAY_SECONDS
        for each in charged:
            _, [account], reset = periods((each,), day)
            usage, refused = self._usage.get(account[:2]) or Usage(*account[:2]), self._exhausted.get(each.id)
            part_limit = classify.part_limit(refused.message) if refused else None
            # What the upstream says holds for the running period: it knows its plan, and who else uses it.
            limit = min((limit for limit in (each.limit, part_limit) if limit is not None), default=None)
            counted = usage.used + usage.uncertain
            application, _, key = each.name.partition("/")
            remaining = None if limit is None else max(0, limit - counted)
            percent = round(100 * counted / limit, 1) if limit else None
            ends = None if reset is None else rfc3339(reset), refused and rfc3339(refused.until)
            rows.append(UsageRow(application, key or None, *usage[1:], limit, remaining, percent, *ends, part_limit))
        return rows

    def gauges(self, charged: Iterable[ChargedAccount]) -> list[GaugeMetricFamily]:
        """Return the metrics of accounts."""
        rows, gauges = self.rows(charged), []
        for name, text in GAUGES.items():
            gauges.append(GaugeMetricFamily(f"v3bridge_parts_{name}", text, labels=("quota_account",)))
            for row in rows:
                if (parts := getattr(row, name)) is not None:
                    gauges[-1].add_metric((row.name,), parts)
        return gauges


class ProcessState:
    """The store, clock, random source and metrics of one of `workers`, and what its pipelines share: one after a
    reload joins the flights of the one before, and begins nothing while bookings of that one are `unfinished`, which
    the store has not taken, and which are repeated."""

    def __init__(self, store: Store, clock: Clock, rng: random.Random, metrics: Metrics, workers: int = 1) -> None:
        self.store, self.clock, self.rng, self.metrics, self.workers = store, clock, rng, metrics, workers
        self.started = clock.now()
        self.breaker = CircuitBreaker(clock=clock, rng=rng, metrics=metrics)
        self.flights = Flights()
        self.quotas = Quotas(store, clock)
        self.unfinished: list[Booking] = []
        self.repeating: asyncio.Task[None] | None = None
        self.lists: dict[tuple[str, ...], Lists] = {}  # by the mappings and the upstream that they are made with
        self.wrong_keys: cachetools.LRUCache[str, SlidingWindow] = cachetools.LRUCache(ADDRESSES_MAX)  # of addresses
        # When a key was last used from an address, by address and account, the latest last.
        self.recent_keys: dict[tuple[str, str], float] = {}
        self._rates: dict[tuple[str, int], SlidingWindow] = {}  # of API keys

    async def aclose(self) -> None:
        """Wait until all is booked."""
        if self.repeating is not None:
            await asyncio.wait((self.repeating,))

    def admit(self, client: Client) -> None:
        """Count a request against the rate of its API key, which has one, and of which each worker admits its part.
        Raises TooManyRequests. v3 limited its free tier to 3 a second (contract v3-rest.md §5)."""
        key = client.name, client.rate
        if key not in self._rates:
            own = Window(math.ceil(client.rate / self.workers), 1.0)
            self._rates[key] = SlidingWindow(own, self.clock)
        if self._rates[key].try_take():
            message = f"{client.name} may make no more than {counted(client.rate, 'request')} in a second"
            raise errors.TooManyRequests(message, retry_after=1)
